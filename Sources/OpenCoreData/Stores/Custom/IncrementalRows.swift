import Foundation

/// The rows of an incremental store for one context.
///
/// Nothing is cached here: the objects keep the values that were read.
final class IncrementalRows: ObjectRowStore, @unchecked Sendable {
  // Sendable: immutable except for `registered`, which is used on the context's lane.

  let connection: IncrementalConnection
  /// Nil for the coordinator, which needs entity numbers only.
  private weak var context: NSManagedObjectContext?
  private var registered: Set<NSManagedObjectID> = []

  init(connection: IncrementalConnection, context: NSManagedObjectContext?) {
    self.connection = connection
    self.context = context
  }

  deinit {
    unregister(Array(registered))
  }

  private func requireContext() throws -> NSManagedObjectContext {
    if let context { return context }
    throw CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "An incremental store is asked by contexts alone."
    )
  }

  // MARK: Numbers and keys

  func number(of entity: NSEntityDescription) throws -> Int32 {
    try connection.entities.number(of: entity)
  }

  func layout(number: Int32) -> EntityLayout? { connection.entities.layout(number: number) }

  /// The store assigns the keys of objects in ``references(for:)``.
  func reserveKeys(for entity: NSEntityDescription, count: Int) throws -> Range<Int64> {
    throw CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "An incremental store inserts objects, not rows."
    )
  }

  func references(for objects: [NSManagedObject]) throws -> [RowReference] {
    try connection.withStore { store, binding in
      let identifiers = try store.obtainPermanentIDs(for: objects)
      guard identifiers.count == objects.count else {
        throw CoreDataError.make(
          NSPersistentStoreOperationError,
          "The store \(store) gave \(identifiers.count) permanent IDs for \(objects.count) objects."
        )
      }
      return identifiers.map { binding.adopted($0.key.reference, from: $0.binding) }
    }
  }

  // MARK: Reading

  func row(_ reference: RowReference) throws -> RowAnswer {
    let context = try requireContext()
    return try connection.withStore { store, binding in
      guard let layout = layout(number: reference.entityNumber),
        let identifier = binding.objectID(of: reference)
      else { return .absent }
      let node = try store.newValuesForObject(with: identifier, with: context)
      let row = try CustomRow.make(
        reference,
        version: Int64(clamping: node.version),
        layout: layout,
        in: binding
      ) { property in
        if let value = node.value(for: property) { return value }
        guard let relationship = property as? NSRelationshipDescription else { return nil }
        return try store.newValue(
          forRelationship: relationship,
          forObjectWith: identifier,
          with: context
        )
      }
      return .row(row)
    }
  }

  func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    let context = try requireContext()
    return try connection.withStore { store, binding in
      var result: [RowReference: [RowReference]] = [:]
      for source in sources {
        guard let identifier = binding.objectID(of: source) else { continue }
        let value = try store.newValue(
          forRelationship: relationship,
          forObjectWith: identifier,
          with: context
        )
        result[source] = CustomRow.references(in: value, binding)
      }
      return result
    }
  }

  func fetch(_ request: RowFetch) throws -> RowFetchResult {
    let context = try requireContext()
    return try connection.withStore { store, binding in
      let result = try store.execute(IncrementalFetch.request(request, store), with: context)
      return try IncrementalFetch.result(result, of: request, binding)
    }
  }

  func forget(_ references: [RowReference]) {}

  func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void) {
    connection.observe(observer)
  }

  // MARK: Writing

  func commit(_ changes: RowChanges) throws -> RowCommit {
    throw CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "An incremental store saves objects, not rows."
    )
  }

  func commit(_ changes: RowChanges, of objects: SavedObjects) throws -> RowCommit {
    let context = try requireContext()
    try connection.withStore { store, binding in
      let request = NSSaveChangesRequest(
        inserted: Self.set(objects.inserted),
        updated: Self.set(objects.updated),
        deleted: Self.set(objects.deleted),
        locked: Self.set(objects.locked)
      )
      do {
        _ = try store.execute(request, with: context)
      } catch {
        throw try conflict(in: error, changes, context) ?? error
      }
    }
    connection.announce(StoreCommit(contextSave: changes))
    let inserted = changes.inserted.map {
      Row(reference: $0.reference, version: 1, values: $0.values)
    }
    let updated = changes.updated.map {
      Row(reference: $0.reference, version: $0.expectedVersion + 1, values: $0.values)
    }
    return RowCommit(rows: inserted + updated, transactionNumber: nil)
  }

  private static func set(_ objects: [NSManagedObject]) -> Set<NSManagedObject> {
    Set(objects)
  }

  /// The merge policy resolves the conflicts that the store reports, unless it is the error policy.
  private func conflict(
    in error: any Error,
    _ changes: RowChanges,
    _ context: NSManagedObjectContext
  ) throws -> RowConflictError? {
    guard context.policy.mergeType != .errorMergePolicyType,
      let list = (error as NSError).userInfo[NSPersistentStoreSaveConflictsErrorKey]
        as? [NSMergeConflict], !list.isEmpty
    else { return nil }
    let versions = Dictionary(
      changes.updated.map { ($0.reference, $0.expectedVersion) }
        + changes.deleted.map { ($0.reference, $0.expectedVersion) },
      uniquingKeysWith: { first, _ in first }
    )
    let conflicts = try list.compactMap { conflict -> RowConflictError.Conflict? in
      let reference = conflict.sourceObject.key.reference
      guard let version = versions[reference] else { return nil }
      let isGone = conflict.newVersionNumber == 0
      return RowConflictError.Conflict(
        reference: reference,
        expectedVersion: version,
        persisted: isGone ? nil : try row(reference).found
      )
    }
    return conflicts.isEmpty ? nil : RowConflictError(conflicts: conflicts)
  }

  // MARK: Registration

  func register(_ identifier: NSManagedObjectID) {
    guard registered.insert(identifier).inserted else { return }
    try? connection.withStore { store, _ in
      store.managedObjectContextDidRegisterObjects(with: [identifier])
    }
  }

  func unregister(_ identifiers: [NSManagedObjectID]) {
    let known = identifiers.filter { registered.remove($0) != nil }
    guard !known.isEmpty else { return }
    // A deallocated store needs no notification.
    try? connection.withStore { store, _ in
      store.managedObjectContextDidUnregisterObjects(with: known)
    }
  }
}
