import Foundation

/// Changes attributes of many rows in one transaction, without loading them.
///
/// ```swift
/// let update = NSBatchUpdateRequest(entityName: "Post")
/// update.predicate = NSPredicate(format: "title BEGINSWITH %@", "T")
/// update.propertiesToUpdate = ["isRead": true]
/// update.resultType = .updatedObjectsCountResultType
/// let updated = try context.execute(update) as? NSBatchUpdateResult
/// let count = updated?.result as? Int
/// ```
///
/// Run it with `execute(_:)` of a context, on the context's queue. The context's objects are not
/// updated, and nothing is validated; `mergeChanges(fromRemoteContextSave:into:)` accepts the
/// identifiers of the result. Each row's version is incremented, so that a context that has changed
/// the same object finds a conflict when it saves.
///
/// **Differs from Core Data:** an expression that gives a required attribute no value in a row, or a
/// number beyond the attribute's type, fails the request with the codes of validation, and no row is
/// changed. An object that is refreshed after the request reads the new values at any `stalenessInterval`.
open class NSBatchUpdateRequest: NSPersistentStoreRequest {
  private let named: String?
  private let described: NSEntityDescription?

  /// The condition for the rows; nil updates all rows.
  open var predicate: NSPredicate?
  /// Whether rows of subentities are updated too.
  open var includesSubentities = true
  /// The kind of the result: a status, the number of rows, or their identifiers.
  open var resultType: NSBatchUpdateRequestResultType = .statusOnlyResultType
  /// New values by attribute: keys are names or `NSAttributeDescription`s, values are constants,
  /// `NSNull` for none, or an `NSExpression` over the row as it was before.
  ///
  /// Relationships cannot be changed this way.
  open var propertiesToUpdate: [AnyHashable: Any]?

  /// Creates a request that changes rows of the entity of a name.
  public init(entityName: String) {
    named = entityName
    described = nil
    super.init()
  }

  /// Creates a request that changes rows of an entity.
  public init(entity: NSEntityDescription) {
    named = nil
    described = entity
    super.init()
  }

  /// The name of the entity.
  open var entityName: String { named ?? described?.name ?? "" }

  /// The entity.
  ///
  /// It is unknown for a request that was created with a name.
  open var entity: NSEntityDescription {
    if let described { return described }
    fatalError(
      "This batch update request was created with a string name (\(entityName)), and cannot "
        + "respond to -entity until used by an NSManagedObjectContext"
    )
  }

  /// A change of many rows.
  open override var requestType: NSPersistentStoreRequestType { .batchUpdateRequestType }

  /// Copies the request.
  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy =
      described.map { NSBatchUpdateRequest(entity: $0) }
      ?? NSBatchUpdateRequest(entityName: entityName)
    copy.affectedStores = affectedStores
    copy.predicate = predicate
    copy.includesSubentities = includesSubentities
    copy.resultType = resultType
    copy.propertiesToUpdate = propertiesToUpdate
    return copy
  }
}

extension NSBatchUpdateRequest: BatchRequest {
  func run(for caller: BatchCaller) throws -> NSPersistentStoreResult {
    let entity = try caller.entity(described, named: entityName)
    let assignments = try BatchAssignment.all(propertiesToUpdate ?? [:], of: entity)
    var count = 0
    var identifiers: [NSManagedObjectID] = []
    for binding in try caller.stores(of: entity, affectedStores) {
      var fetch = RowFetch(entity: entity, kind: .references)
      fetch.predicate = predicate
      fetch.includesSubentities = includesSubentities
      let changed = try caller.sqliteStore(binding, self).updateBatch(
        fetch,
        assignments,
        author: caller.author,
        contextName: caller.contextName
      )
      count += changed.count
      if resultType == .updatedObjectIDsResultType {
        identifiers += caller.identifiers(changed, binding)
      }
    }
    let result: Any
    switch resultType {
    case .statusOnlyResultType: result = NSNumber(value: true)
    case .updatedObjectsCountResultType: result = NSNumber(value: count)
    case .updatedObjectIDsResultType: result = identifiers
    }
    return NSBatchUpdateResult(resultType: resultType, result: result)
  }
}
