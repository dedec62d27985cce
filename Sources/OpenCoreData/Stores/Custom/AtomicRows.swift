import Foundation

/// The rows of an atomic store: its cache nodes with keys and versions.
final class AtomicRows: ObjectRowStore, @unchecked Sendable {
  // Sendable: `lock` guards the mutable state, and the store is called with it held.

  private weak var store: NSAtomicStore?
  private let entities: CustomStoreEntities
  private let lock = NSRecursiveLock()
  /// The versions of rows that were changed since they were loaded; all others have version 1.
  private var versions: [RowReference: Int64] = [:]
  private var rows: [RowReference: Row] = [:]
  private var observers: [@Sendable (StoreCommit) -> Void] = []
  private var lastKey: Int64 = 0
  /// Whether another store has replaced this one.
  private var isClosed = false

  init(store: NSAtomicStore, entities: CustomStoreEntities) {
    self.store = store
    self.entities = entities
  }

  private func withStore<Result>(
    _ body: (NSAtomicStore, StoreBinding) throws -> Result
  ) throws -> Result {
    try lock.withLock {
      guard !isClosed, let store, let binding = store.binding else {
        throw CoreDataError.make(
          NSPersistentStoreOperationError,
          "The store was removed from its coordinator."
        )
      }
      return try body(store, binding)
    }
  }

  // MARK: Numbers and keys

  func number(of entity: NSEntityDescription) throws -> Int32 { try entities.number(of: entity) }

  func layout(number: Int32) -> EntityLayout? { entities.layout(number: number) }

  /// The store assigns the keys of objects in ``references(for:)``.
  func reserveKeys(for entity: NSEntityDescription, count: Int) throws -> Range<Int64> {
    throw CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "An atomic store inserts objects, not rows."
    )
  }

  func references(for objects: [NSManagedObject]) throws -> [RowReference] {
    try withStore { store, _ in
      objects.map { object in
        let reference = store.objectID(
          for: object.template.layout.entity,
          withReferenceObject: store.newReferenceObject(for: object)
        )
        .key.reference
        lastKey = max(lastKey, reference.key)
        return reference
      }
    }
  }

  /// The last key that was assigned, even if its object was not saved or was deleted.
  ///
  /// Only the file of a binary store keeps those that were assigned before it was opened.
  var lastGivenKey: Int64 {
    lock.withLock { max(lastKey, (store as? BinaryStore)?.highestReference ?? 0) }
  }

  // MARK: Reading

  func row(_ reference: RowReference) throws -> RowAnswer {
    try withStore { store, binding in
      RowAnswer(store.node(of: reference).flatMap { row(reference, $0, binding) })
    }
  }

  private func row(
    _ reference: RowReference,
    _ node: NSAtomicStoreCacheNode,
    _ binding: StoreBinding
  ) -> Row? {
    if let known = rows[reference] { return known }
    guard let layout = entities.layout(number: reference.entityNumber) else { return nil }
    let row = CustomRow.make(
      reference,
      version: versions[reference] ?? 1,
      layout: layout,
      in: binding
    ) { node.storedValue(forKey: $0.name) }
    rows[reference] = row
    return row
  }

  func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try withStore { store, binding in
      var result: [RowReference: [RowReference]] = [:]
      for source in sources {
        guard let value = store.node(of: source)?.value(forKey: relationship.name) else { continue }
        var found = CustomRow.references(in: value, binding)
        if !relationship.isOrdered { found.sort { $0.key < $1.key } }
        // A destination without a node was deleted.
        result[source] = found.filter { store.node(of: $0) != nil }
      }
      return result
    }
  }

  func fetch(_ request: RowFetch) throws -> RowFetchResult {
    try withStore { store, binding in
      let numbers = entities.numbers(
        of: request.entity,
        includingSubentities: request.includesSubentities
      )
      let fetch = MemoryFetch(request)
      let matches = fetch.matches(among: store.nodes(of: numbers))
      switch request.kind {
      case .rows:
        return .rows(matches.compactMap { row($0.objectID.key.reference, $0, binding) })
      case .references:
        return .references(matches.map(\.objectID.key.reference))
      case .count:
        return .count(matches.count)
      case .dictionaries(let shape):
        return .dictionaries(MemoryDictionaries(shape, request).dictionaries(of: matches))
      }
    }
  }

  func forget(_ references: [RowReference]) {}

  func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void) {
    lock.withLock { observers.append(observer) }
  }

  /// Sets the versions of rows that were copied from another store.
  func take(_ known: [RowReference: Int64]) {
    lock.withLock { versions = known }
  }

  // MARK: Writing

  func commit(_ changes: RowChanges) throws -> RowCommit {
    throw CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "An atomic store saves objects, not rows."
    )
  }

  /// Runs the body while no save uses the store.
  func withoutWrites<Result>(_ body: () throws -> Result) throws -> Result {
    try lock.withLock(body)
  }

  /// Refuses all later requests: the store was moved, and a waiting save uses the new one.
  func close() {
    lock.withLock { isClosed = true }
  }

  func commit(_ changes: RowChanges, of objects: SavedObjects) throws -> RowCommit {
    let saved = try withStore { store, binding in
      try requireVersions(changes, store, binding)
      return try save(changes, objects, store, binding)
    }
    let commit = StoreCommit(contextSave: changes)
    for observer in lock.withLock({ observers }) { observer(commit) }
    return saved
  }

  private func requireVersions(
    _ changes: RowChanges,
    _ store: NSAtomicStore,
    _ binding: StoreBinding
  ) throws {
    let expected =
      changes.updated.map { ($0.reference, $0.expectedVersion) }
      + changes.deleted.map { ($0.reference, $0.expectedVersion) }
      + changes.checks.map { ($0.reference, $0.expectedVersion) }
    let conflicts = expected.compactMap { reference, version -> RowConflictError.Conflict? in
      let node = store.node(of: reference)
      if node != nil, versions[reference] ?? 1 == version { return nil }
      return RowConflictError.Conflict(
        reference: reference,
        expectedVersion: version,
        persisted: node.flatMap { row(reference, $0, binding) }
      )
    }
    guard conflicts.isEmpty else { throw RowConflictError(conflicts: conflicts) }
  }

  /// Applies the changes to the nodes, then the store writes its file; if that fails, the nodes are
  /// restored.
  private func save(
    _ changes: RowChanges,
    _ objects: SavedObjects,
    _ store: NSAtomicStore,
    _ binding: StoreBinding
  ) throws -> RowCommit {
    let table = store.nodeTable()
    var caches: [(NSAtomicStoreCacheNode, NSMutableDictionary?)] = []
    for object in objects.updated {
      guard let node = table[object.key.reference] else { continue }
      caches.append((node, node.propertyCache?.mutableCopy() as? NSMutableDictionary))
    }
    for object in objects.inserted {
      store.addCacheNodes([store.newCacheNode(for: object)])
    }
    store.linkNodes()
    for object in objects.updated {
      guard let node = store.node(of: object.key.reference) else { continue }
      store.updateCacheNode(node, from: object)
    }
    store.linkNodes()
    let gone = changes.deleted.map(\.reference)
    let goneNodes = gone.compactMap { store.node(of: $0) }
    if !goneNodes.isEmpty {
      store.willRemoveCacheNodes(Set(goneNodes))
      store.removeNodes(gone)
    }
    do {
      try store.save()
    } catch {
      for (node, cache) in caches { node.propertyCache = cache }
      store.restore(table)
      throw error
    }
    return took(changes, store, binding)
  }

  private func took(
    _ changes: RowChanges,
    _ store: NSAtomicStore,
    _ binding: StoreBinding
  ) -> RowCommit {
    for update in changes.updated {
      versions[update.reference] = update.expectedVersion + 1
      rows[update.reference] = nil
    }
    for deletion in changes.deleted {
      versions[deletion.reference] = nil
      rows[deletion.reference] = nil
    }
    let written = changes.inserted.map(\.reference) + changes.updated.map(\.reference)
    let found = written.compactMap { reference in
      store.node(of: reference).flatMap { row(reference, $0, binding) }
    }
    return RowCommit(rows: found, transactionNumber: nil)
  }
}
