import Effects
import Foundation

extension NSPersistentStoreCoordinator {
  /// Copies a store to another place or to another type, and takes the copy in its place.
  ///
  /// The old store is removed from the coordinator; its file stays. Saves of other threads wait until
  /// the new store is in place, and are written to it. Objects and their identifiers
  /// stand for the same objects in the new store. `NSPersistentStoreCoordinatorStoresDidChange` has
  /// both stores under `NSUUIDChangedPersistentStoresKey`, the old one first.
  ///
  /// The new store is made beside its place and takes it when it is complete: a crash or an error
  /// leaves what was there before, or the new store.
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
    let isFile =
      try storeType != NSInMemoryStoreType && url.isFileURL && StorePlace.hasFile(at: url)
    if isFile { try requireFree(url, storeType, options) }
    postExchangeWillBegin(with: store)
    // Saves wait from before the copy is begun until the new store has the old one's place, and are
    // written to the new one then.
    let made = try withoutWrites(to: store, rows) {
      let migration = StoreMove(
        coordinator: self,
        store: store,
        rows: rows,
        options: options,
        type: storeType
      )
      let (made, opened) = try isFile ? migration.run(toFile: url) : migration.run(to: url)
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
    guard try FileSystem.size(of: url.path) > 0 else { return }
    // This is refused also where the destination may be destroyed: its coordinator's later saves would be in no store.
    // The store itself is open, so its own place is refused too.
    guard !OpenStoreFiles.shared.isOpen(url) else {
      throw StoreError(
        .fileWriteFileExists,
        "The store at \(url.path) is open.",
        remedy: "Remove it from its coordinator first, or choose another place."
      )
    }
    if NSPersistentStore.flag(NSPersistentStoreForceDestroyOption, in: options) { return }
    throw StoreError(
      .fileWriteFileExists,
      "There is a file at \(url.path) already.",
      remedy: "Destroy it first, or choose another place.",
      context: [NSFilePathErrorKey: url.path]
    )
  }
}
