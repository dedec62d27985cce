import Foundation

/// Deletes many rows in one transaction, without loading them.
///
/// ```swift
/// let read = NSFetchRequest<Post>(entityName: "Post")
/// read.predicate = NSPredicate(format: "isRead == YES")
/// try context.execute(NSBatchDeleteRequest(fetchRequest: read))
/// ```
///
/// Run it with `execute(_:)` of a context, on the context's queue. The context's objects are not
/// updated; `mergeChanges(fromRemoteContextSave:into:)` accepts the identifiers of the result.
///
/// Delete rules are applied in the store: cascades delete further rows, and nullified inverses lose
/// their value. If a rule is deny, or an inverse to nullify is not optional, the request fails with
/// `NSPersistentStoreSaveError` and nothing is deleted. Other validation, such as the minimum count
/// of a to-many, is skipped.
///
/// The result contains the rows that the request matched, not those deleted by a cascade; the
/// persistent history has both.
open class NSBatchDeleteRequest: NSPersistentStoreRequest {
  /// The rows to delete; its limit, offset and order are applied.
  public let fetchRequest: NSFetchRequest<any NSFetchRequestResult>
  /// The kind of the result: a status, the number of rows, or their identifiers.
  open var resultType: NSBatchDeleteRequestResultType = .resultTypeStatusOnly

  private let objectIDs: [NSManagedObjectID]?

  /// Creates a request that deletes the results of a fetch request.
  public init(fetchRequest fetch: NSFetchRequest<any NSFetchRequestResult>) {
    fetchRequest = fetch
    objectIDs = nil
    super.init()
    affectedStores = fetch.affectedStores
  }

  /// Creates a request that deletes the results of a fetch request with any result type.
  @_disfavoredOverload
  public convenience init<ResultType>(fetchRequest fetch: NSFetchRequest<ResultType>) {
    self.init(fetchRequest: NSFetchRequest<any NSFetchRequestResult>(sameAs: fetch))
  }

  /// Creates a request that deletes objects by their identifiers, which must be of one entity.
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
    // Without identifiers there is no entity, and nothing to delete.
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
