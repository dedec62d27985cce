import Foundation

extension NSPersistentStoreCoordinator {
  /// Copies a store to another place or to another type, and takes the copy in its place.
  ///
  /// The old store is removed from the coordinator; its file stays. Saves of other threads wait until
  /// the new store is in place, and are written to it. Objects and their identifiers
  /// stand for the same objects in the new store. `NSPersistentStoreCoordinatorStoresDidChange` has
  /// both stores under `NSUUIDChangedPersistentStoresKey`, the old one first.
  ///
  /// **Differs from Core Data:** the new store keeps the old one's identifier and keys, so
  /// identifiers that an app has kept stay good. A place where there is a file already is refused
  /// with 516, unless `NSPersistentStoreForceDestroyOption` says to replace it. A store cannot be
  /// migrated to or from an incremental one.
  @discardableResult
  public func migratePersistentStore(
    _ store: NSPersistentStore,
    to URL: URL,
    options: [AnyHashable: Any]? = nil,
    withType storeType: String
  ) throws -> NSPersistentStore {
    do {
      return try migrate(store, to: URL, options, storeType)
    } catch {
      throw CoreDataError.facade(error)
    }
  }

  /// Copies a store to another place or to another type, and takes the copy in its place.
  @discardableResult
  public func migratePersistentStore(
    _ store: NSPersistentStore,
    to storeURL: URL,
    options: [AnyHashable: Any]? = nil,
    type storeType: NSPersistentStore.StoreType
  ) throws -> NSPersistentStore {
    try migratePersistentStore(store, to: storeURL, options: options, withType: storeType.rawValue)
  }

  private func migrate(
    _ store: NSPersistentStore,
    to target: URL,
    _ options: [AnyHashable: Any]?,
    _ storeType: String
  ) throws -> NSPersistentStore {
    guard let binding = binding(of: store), let rows = binding.rows else {
      throw CoreDataError.make(
        NSPersistentStoreOperationError,
        "The store \(store.url?.path ?? "") does not belong to this coordinator."
      )
    }
    guard !binding.isContextual else {
      throw CoreDataError.make(
        NSPersistentStoreUnsupportedRequestTypeError,
        "An incremental store cannot be migrated; copy its objects with contexts."
      )
    }
    let url = try place(of: storeType, target)
    let isFile = try storeType != NSInMemoryStoreType && StorePlace.hasFile(at: url)
    if isFile { try requireFree(url, storeType, options) }
    postExchangeWillBegin(with: store)
    // Saves wait from before the copy is begun until the new store has the old one's place, and are
    // written to the new one then.
    let made = try withoutWrites(to: store, rows) {
      let (made, opened): (NSPersistentStore, StoreBinding)
      do {
        (made, opened) = try copy(store, rows, to: url, options, storeType)
      } catch {
        if isFile { try? SQLiteStore.removeFiles(of: url) }
        throw error
      }
      exchange(store, binding, for: made, opened)
      return made
    }
    postExchange(of: store, for: made)
    return made
  }

  private func withoutWrites<Result>(
    to store: NSPersistentStore,
    _ rows: any RowStore,
    _ body: () throws -> Result
  ) throws -> Result {
    if let sqlite = store as? SQLiteStore { return try sqlite.withoutWrites(body) }
    if let atomic = rows as? AtomicRows { return try atomic.withoutWrites(body) }
    return try body()
  }

  private func requireFree(
    _ url: URL,
    _ storeType: String,
    _ options: [AnyHashable: Any]?
  ) throws {
    guard try StoreFile.size(url.path) > 0 else { return }
    // Also where the destination may be destroyed: its file, and what others save to it, would be gone
    // before the copy is made. The store itself is open, so its own place is refused too.
    guard !OpenStoreFiles.shared.isOpen(url) else {
      throw StoreError(
        .fileWriteFileExists,
        "The store at \(url.path) is open.",
        remedy: "Remove it from its coordinator first, or choose another place."
      )
    }
    if NSPersistentStore.flag(NSPersistentStoreForceDestroyOption, in: options) {
      try SQLiteStore.removeFiles(of: url)
      return
    }
    throw StoreError(
      .fileWriteFileExists,
      "There is a file at \(url.path) already.",
      remedy: "Destroy it first, or choose another place.",
      context: [NSFilePathErrorKey: url.path]
    )
  }

  /// The new store with everything in it, in a binding of its own.
  private func copy(
    _ store: NSPersistentStore,
    _ rows: any RowStore,
    to url: URL,
    _ options: [AnyHashable: Any]?,
    _ storeType: String
  ) throws -> (NSPersistentStore, StoreBinding) {
    let configuration =
      store.configurationName == NSManagedObjectModel.defaultConfigurationName
      ? nil : store.configurationName
    let copier = StoreCopier(
      source: rows,
      model: managedObjectModel,
      configuration: configuration
    )
    let made: NSPersistentStore
    let binding: StoreBinding
    if let custom = StoreClasses.shared.customClass(of: storeType) {
      let loaded = try load(custom, storeType, configuration, url, options)
      binding = loaded.1
      guard let atomic = loaded.0 as? NSAtomicStore, let nodes = binding.rows as? AtomicRows else {
        throw CoreDataError.make(
          NSPersistentStoreUnsupportedRequestTypeError,
          "A store cannot be migrated to the type \(storeType)."
        )
      }
      made = atomic
      takeMetadata(of: store, to: made)
      try copier.copy(to: atomic, nodes)
    } else {
      let source = store as? SQLiteStore
      if let source, storeType == NSSQLiteStoreType, url.path != "/dev/null" {
        try source.copy(to: url)
      }
      let sqlite = try sqliteStore(storeType, configuration, url, options)
      made = sqlite
      binding = StoreBinding(store: sqlite, rows: sqlite, model: managedObjectModel)
      if source == nil || sqlite.isInMemory { try copier.copy(to: sqlite) }
      takeMetadata(of: store, to: made)
    }
    binding.takeIdentifier()
    return (made, binding)
  }

  /// The new store goes by the old one's identifier and has what the app noted of the old one.
  private func takeMetadata(of store: NSPersistentStore, to made: NSPersistentStore) {
    var metadata: [String: Any] = made.metadata ?? [:]
    for (key, value) in store.metadata ?? [:] where metadata[key] == nil { metadata[key] = value }
    metadata[NSStoreUUIDKey] = store.identifier
    made.identifier = store.identifier
    made.metadata = metadata
  }
}
