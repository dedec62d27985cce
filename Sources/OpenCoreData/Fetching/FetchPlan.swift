import Foundation

/// A fetch request with its entity resolved and without its generic type.
struct FetchPlan {
  var entity: NSEntityDescription
  var predicate: NSPredicate?
  var sortDescriptors: [NSSortDescriptor]
  var limit: Int
  var offset: Int
  var batchSize: Int
  var includesSubentities: Bool
  var includesPendingChanges: Bool
  var includesPropertyValues: Bool
  var returnsObjectsAsFaults: Bool
  var refreshesObjects: Bool
  var prefetchedKeyPaths: [String]
  var stores: [NSPersistentStore]?

  init<ResultType>(
    _ request: NSFetchRequest<ResultType>,
    model: NSManagedObjectModel
  ) throws {
    entity = try request.entity(in: model)
    predicate = request.predicate
    sortDescriptors = request.sortDescriptors ?? []
    limit = request.fetchLimit
    offset = request.fetchOffset
    batchSize = request.fetchBatchSize
    includesSubentities = request.includesSubentities
    includesPendingChanges = request.includesPendingChanges
    includesPropertyValues = request.includesPropertyValues
    returnsObjectsAsFaults = request.returnsObjectsAsFaults
    refreshesObjects = request.shouldRefreshRefetchedObjects
    prefetchedKeyPaths = request.relationshipKeyPathsForPrefetching ?? []
    stores = request.affectedStores
  }

  /// Whether an object has the fetched entity, or a subentity that is included.
  func covers(_ object: NSManagedObject) -> Bool { covers(object.template.layout) }

  func covers(_ layout: EntityLayout) -> Bool {
    includesSubentities ? layout.isMemberOrSub(of: entity) : layout.entity === entity
  }

  func isAffected(_ binding: StoreBinding) -> Bool {
    guard let stores else { return true }
    return stores.contains { $0 === binding.persistentStore }
  }

  /// The fetch for one store, without the parts that the context evaluates itself.
  func rowFetch(_ kind: RowFetch.Kind, sorted: Bool = true, limited: Bool = true) -> RowFetch {
    var fetch = RowFetch(entity: entity, kind: kind)
    fetch.includesSubentities = includesSubentities
    fetch.predicate = predicate
    if sorted { fetch.sortDescriptors = sortDescriptors }
    if limited {
      fetch.limit = limit
      fetch.offset = offset
    }
    return fetch
  }

  /// A plan that fetches `replaced` more rows and has no offset, for a caller that replaces up to that many rows of
  /// the result and applies offset and limit itself.
  ///
  /// Only a replaced row can leave the results or move in them, so the results within limit and offset are
  /// among the ones that are found.
  func widened(by replaced: Int) -> FetchPlan {
    var plan = self
    plan.offset = 0
    if limit > 0 {
      let (first, isHuge) = limit.addingReportingOverflow(offset)
      plan.limit = isHuge || first > Int.max - replaced ? 0 : first + replaced
    }
    return plan
  }

  /// How many of a number of matches are within offset and limit.
  func window(count: Int) -> Int {
    let rest = max(0, count - offset)
    return limit > 0 ? min(rest, limit) : rest
  }

  /// The part of a list within offset and limit.
  func window<Element>(_ elements: [Element]) -> [Element] {
    guard limit > 0 || offset > 0 else { return elements }
    let rest = elements.dropFirst(offset)
    return Array(limit > 0 ? rest.prefix(limit) : rest)
  }
}
