import Foundation

/// A request that changes the rows of stores without the objects of contexts.
protocol BatchRequest: NSPersistentStoreRequest {
  func run(for caller: BatchCaller) throws -> NSPersistentStoreResult
}

/// The state of the context that executes a batch request.
///
/// A child context's request uses the stores, like its root's.
struct BatchCaller {
  let coordinator: NSPersistentStoreCoordinator
  let policy: NSMergePolicyType
  let author: String?
  let contextName: String?

  init(_ context: NSManagedObjectContext, _ coordinator: NSPersistentStoreCoordinator) {
    self.coordinator = coordinator
    policy = context.policy.mergeType
    // The author of the nearest context that has one, up to the root. Each context is read on its
    // own lane, where the app sets it.
    var nearest = context.transactionAuthor
    var ancestor = context.parent
    while nearest == nil, let asked = ancestor {
      nearest = asked.performForChild { asked.transactionAuthor }
      ancestor = asked.parent
    }
    author = nearest
    contextName = context.name
  }

  var model: NSManagedObjectModel { coordinator.managedObjectModel }

  /// The entity in the coordinator's model; the request may have another copy of it.
  func entity(_ described: NSEntityDescription?, named name: String) throws -> NSEntityDescription {
    if let entity = model.entitiesByName[name] ?? described { return entity }
    throw CoreDataError.make(
      NSCoreDataError,
      "A batch request names the entity '\(name)', which the model does not have."
    )
  }

  /// The stores of the entity or its subentities.
  func stores(
    of entity: NSEntityDescription,
    _ affected: [NSPersistentStore]?
  ) throws -> [StoreBinding] {
    try requireStores()
    return try coordinator.bindings(of: entity).filter { binding in
      affected?.contains { $0 === binding.persistentStore } ?? true
    }
  }

  /// The store for new rows of the entity.
  func insertionStore(
    for entity: NSEntityDescription,
    _ affected: [NSPersistentStore]?
  ) throws -> StoreBinding {
    guard !entity.isAbstract else {
      throw CoreDataError.make(
        NSCoreDataError,
        "The entity '\(entity.name ?? "")' is abstract, so nothing can be inserted of it."
      )
    }
    if affected == nil, let binding = coordinator.binding(forInsertionOf: entity) {
      return binding
    }
    let candidates = try stores(of: entity, affected).filter { $0.holds(entity) }
    if let binding = candidates.first { return binding }
    throw CoreDataError.make(
      NSPersistentStoreSaveError,
      "No writable store of the coordinator holds the entity '\(entity.name ?? "")'."
    )
  }

  private func requireStores() throws {
    guard coordinator.bindings.isEmpty else { return }
    throw CoreDataError.make(
      NSCoreDataError,
      "This NSPersistentStoreCoordinator has no persistent stores. It cannot perform a batch "
        + "operation."
    )
  }

  /// The SQLite store of a binding.
  func sqliteStore(
    _ binding: StoreBinding,
    _ request: NSPersistentStoreRequest
  ) throws -> SQLiteStore {
    if let store = binding.persistentStore as? SQLiteStore { return store }
    throw CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "The store \(binding.persistentStore?.url?.path ?? binding.identifier) does not know the "
        + "request \(type(of: request))."
    )
  }

  /// The identifiers of rows.
  func identifiers(_ references: [RowReference], _ binding: StoreBinding) -> [NSManagedObjectID] {
    var template: (number: Int32, template: ObjectTemplate)?
    return references.compactMap { reference in
      if template?.number != reference.entityNumber {
        template = binding.template(number: reference.entityNumber)
          .map { (reference.entityNumber, $0) }
      }
      return template.map {
        NSManagedObjectID(
          key: ObjectKey(store: binding.number, reference: reference),
          binding: binding,
          template: $0.template
        )
      }
    }
  }
}
