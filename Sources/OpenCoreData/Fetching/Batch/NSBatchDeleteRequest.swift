import Foundation

/// Deletes many rows in one transaction, without loading them.
///
/// Run it with `execute(_:)` of a context, on the context's queue. The context's objects learn
/// nothing of it; `mergeChanges(fromRemoteContextSave:into:)` takes the identifiers of the result.
///
/// Delete rules are applied in the store: cascades delete on, nullified inverses lose their value,
/// and where a rule says deny, or an inverse that would be nullified is not optional, the request
/// fails with `NSPersistentStoreSaveError` and nothing is deleted. Other validation, such as the
/// least number of a to-many's members, is skipped.
///
/// The result names the rows that the request asked for, not those that went by a cascade; the
/// persistent history has both.
open class NSBatchDeleteRequest: NSPersistentStoreRequest {
  /// What is deleted; its limit, offset and order count.
  public let fetchRequest: NSFetchRequest<any NSFetchRequestResult>
  /// What the result says: whether it worked, how many rows there were, or their identifiers.
  open var resultType: NSBatchDeleteRequestResultType = .resultTypeStatusOnly

  private let objectIDs: [NSManagedObjectID]?

  /// Creates a request that deletes what a fetch request finds.
  public init(fetchRequest fetch: NSFetchRequest<any NSFetchRequestResult>) {
    fetchRequest = fetch
    objectIDs = nil
    super.init()
    affectedStores = fetch.affectedStores
  }

  /// Creates a request that deletes what a fetch request of any result type finds.
  @_disfavoredOverload
  public convenience init<ResultType>(fetchRequest fetch: NSFetchRequest<ResultType>) {
    self.init(fetchRequest: NSFetchRequest<any NSFetchRequestResult>(sameAs: fetch))
  }

  /// Creates a request that deletes the objects of identifiers, which are of one entity.
  public convenience init(objectIDs objects: [NSManagedObjectID]) {
    self.init(identifiers: objects, fetch: Self.fetch(for: objects))
  }

  private init(
    identifiers: [NSManagedObjectID]?,
    fetch: NSFetchRequest<any NSFetchRequestResult>
  ) {
    fetchRequest = fetch
    objectIDs = identifiers
    super.init()
    affectedStores = fetch.affectedStores
  }

  private static func fetch(
    for objects: [NSManagedObjectID]
  ) -> NSFetchRequest<any NSFetchRequestResult> {
    let fetch = NSFetchRequest<any NSFetchRequestResult>()
    guard let entity = objects.first?.entity else { return fetch }
    precondition(
      objects.allSatisfy { $0.entity.layout.rootEntity === entity.layout.rootEntity },
      "mismatched objectIDs in batch delete initializer"
    )
    let isUniform = objects.allSatisfy { $0.entity === entity }
    fetch.entity = isUniform ? entity : entity.layout.rootEntity
    fetch.predicate = NSPredicate(format: "SELF IN %@", objects)
    return fetch
  }

  /// A deletion of many rows.
  open override var requestType: NSPersistentStoreRequestType { .batchDeleteRequestType }

  /// Copies the request.
  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = NSBatchDeleteRequest(identifiers: objectIDs, fetch: fetchRequest)
    copy.affectedStores = affectedStores
    copy.resultType = resultType
    return copy
  }
}

extension NSBatchDeleteRequest: BatchRequest {
  func run(for caller: BatchCaller) throws -> NSPersistentStoreResult {
    var count = 0
    var identifiers: [NSManagedObjectID] = []
    // Without identifiers there is no entity, and nothing to do.
    if objectIDs?.isEmpty != true {
      let plan = try FetchPlan(fetchRequest, model: caller.model)
      for binding in try caller.stores(of: plan.entity, affectedStores ?? plan.stores) {
        let gone = try caller.sqliteStore(binding, self).deleteBatch(
          plan.rowFetch(.references),
          author: caller.author,
          contextName: caller.contextName
        )
        count += gone.count
        if resultType == .resultTypeObjectIDs {
          identifiers += caller.identifiers(gone, binding)
        }
      }
    }
    let result: Any
    switch resultType {
    case .resultTypeStatusOnly: result = NSNumber(value: true)
    case .resultTypeCount: result = NSNumber(value: count)
    case .resultTypeObjectIDs: result = identifiers
    }
    return NSBatchDeleteResult(resultType: resultType, result: result)
  }
}
