import Foundation

extension NSPersistentStoreCoordinator {
  /// Makes a store of a registered class, loads it and adds it.
  ///
  /// The order of the calls is Core Data's: the initializer, `loadMetadata()`, the check of the
  /// versions, for an atomic store `load()`, and `didAdd(to:)` when the coordinator has it.
  func open(
    _ storeClass: any CustomStore.Type,
    _ storeType: String,
    _ configuration: String?,
    _ url: URL,
    _ options: [AnyHashable: Any]?
  ) throws -> NSPersistentStore {
    let (store, binding) = try load(storeClass, storeType, configuration, url, options)
    add(store, binding)
    return store
  }

  /// Makes a store of a registered class and loads it, without adding it to the coordinator.
  ///
  /// A store of another model version is migrated first, if the options request it.
  func load(
    _ storeClass: any CustomStore.Type,
    _ storeType: String,
    _ configuration: String?,
    _ url: URL,
    _ options: [AnyHashable: Any]?
  ) throws -> (any CustomStore, StoreBinding) {
    do {
      return try loadAsItIs(storeClass, storeType, configuration, url, options)
    } catch let error as NSError where error.code == NSPersistentStoreIncompatibleVersionHashError {
      guard let storeClass = storeClass as? NSAtomicStore.Type,
        let migration = AtomicStoreMigration(
          storeClass: storeClass,
          type: storeType,
          model: managedObjectModel,
          configuration: configuration,
          url: url,
          options: options ?? [:],
          effects: effects
        )
      else { throw error }
      try migration.run()
      return try loadAsItIs(storeClass, storeType, configuration, url, options)
    }
  }

  private func loadAsItIs(
    _ storeClass: any CustomStore.Type,
    _ storeType: String,
    _ configuration: String?,
    _ url: URL,
    _ options: [AnyHashable: Any]?
  ) throws -> (any CustomStore, StoreBinding) {
    let opening = NSPersistentStoreOpening(
      coordinator: self,
      configurationName: configuration,
      url: url,
      options: options
    )
    let store = storeClass.init(_opening: opening)
    store.registeredType = storeType
    let binding = StoreBinding(custom: store, model: managedObjectModel)
    do {
      try store.loadMetadata()
      try requireVersions(of: store, options)
      completeMetadata(of: store)
      binding.takeIdentifier()
      try store.loadContents()
    } catch {
      binding.detach()
      throw error
    }
    return (store, binding)
  }

  private func requireVersions(of store: any CustomStore, _ options: [AnyHashable: Any]?) throws {
    let metadata = store.metadata ?? [:]
    guard NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) != nil,
      !NSPersistentStore.flag(NSIgnorePersistentStoreVersioningOption, in: options),
      !managedObjectModel.isConfiguration(
        withName: store.configurationName,
        compatibleWithStoreMetadata: metadata
      )
    else { return }
    throw CoreDataError.make(
      NSPersistentStoreIncompatibleVersionHashError,
      "The model used to open the store is incompatible with the one used to create the store",
      ["metadata": metadata, NSFilePathErrorKey: store.url?.path ?? ""]
    )
  }

  /// Adds the type, the identifier and the hashes of the model to metadata that lacks them.
  private func completeMetadata(of store: any CustomStore) {
    var metadata: [String: Any] = store.metadata ?? [:]
    if metadata[NSStoreTypeKey] == nil { metadata[NSStoreTypeKey] = store.registeredType }
    if metadata[NSStoreUUIDKey] == nil {
      let known: String = store.identifier ?? ""
      metadata[NSStoreUUIDKey] = known.isEmpty ? effects.uuid().uuidString : known
    }
    let hashes = StoreMetadata.versions(
      of: managedObjectModel,
      configuration: store.configurationName
    )
    metadata.merge(hashes) { _, new in new }
    store.metadata = metadata
  }
}
