import Foundation

extension NSPersistentStoreCoordinator {
  // MARK: Destroying

  /// Deletes a store with all that belongs to it.
  ///
  /// Where this coordinator has the store, it is removed first. A file that is not a store is left
  /// alone, and one that another process has open is refused with 134090, unless
  /// `NSPersistentStoreForceDestroyOption` says to delete it in any case. A store that is not
  /// there is no error.
  ///
  /// **Differs from Core Data:** the files are deleted, never left behind empty.
  public func destroyPersistentStore(
    at url: URL,
    ofType storeType: String,
    options: [AnyHashable: Any]? = nil
  ) throws {
    try Self.facade {
      guard let storeClass = StoreClasses.shared.storeClass(of: storeType) else {
        throw Self.invalidType(storeType)
      }
      if let store = persistentStore(for: url) { try remove(store) }
      switch storeType {
      case NSSQLiteStoreType:
        try SQLiteStore.destroy(at: url, options: options)
      case NSInMemoryStoreType:
        break
      default:
        guard storeClass is NSAtomicStore.Type,
          FileManager.default.fileExists(atPath: url.path)
        else { return }
        try FileManager.default.removeItem(at: url)
      }
    }
  }

  /// Deletes a store with all that belongs to it.
  public func destroyPersistentStore(
    at url: URL,
    type storeType: NSPersistentStore.StoreType,
    options: [AnyHashable: Any]? = nil
  ) throws {
    try destroyPersistentStore(at: url, ofType: storeType.rawValue, options: options)
  }

  // MARK: Replacing

  /// Puts a copy of one store in the place of another, or where there is none.
  ///
  /// The source stays, and may be open. Where this coordinator has the destination, that store is
  /// removed first and not added again. A crash leaves the old store or the new.
  public func replacePersistentStore(
    at destinationURL: URL,
    destinationOptions: [AnyHashable: Any]? = nil,
    withPersistentStoreFrom sourceURL: URL,
    sourceOptions: [AnyHashable: Any]? = nil,
    ofType storeType: String
  ) throws {
    try Self.facade {
      _ = try Self.metadataForPersistentStore(
        ofType: storeType,
        at: sourceURL,
        options: sourceOptions
      )
      if let store = persistentStore(for: destinationURL), sourceURL != destinationURL {
        try remove(store)
      }
      switch storeType {
      case NSSQLiteStoreType:
        try SQLiteStore.replace(
          at: destinationURL,
          options: destinationOptions,
          from: sourceURL,
          effects: effects
        )
      case _ where StoreClasses.shared.storeClass(of: storeType) is NSAtomicStore.Type:
        try Data(contentsOf: sourceURL).write(to: destinationURL, options: .atomic)
      default:
        throw CoreDataError.make(
          NSPersistentStoreUnsupportedRequestTypeError,
          "A store of the type \(storeType) has no file to put in another's place."
        )
      }
    }
  }

  /// Puts a copy of one store in the place of another, or where there is none.
  public func replacePersistentStore(
    at destinationURL: URL,
    destinationOptions: [AnyHashable: Any]? = nil,
    withPersistentStoreFrom sourceURL: URL,
    sourceOptions: [AnyHashable: Any]? = nil,
    type sourceType: NSPersistentStore.StoreType
  ) throws {
    try replacePersistentStore(
      at: destinationURL,
      destinationOptions: destinationOptions,
      withPersistentStoreFrom: sourceURL,
      sourceOptions: sourceOptions,
      ofType: sourceType.rawValue
    )
  }

  // MARK: Moving

  /// Says where a store's file is from now on.
  ///
  /// An atomic store is written there by its next save.
  ///
  /// **Differs from Core Data:** an SQLite store that is open stays where it is; the answer is
  /// false. `migratePersistentStore(_:to:options:type:)` takes it to another place.
  public func setURL(_ url: URL, for store: NSPersistentStore) -> Bool {
    guard binding(of: store) != nil else { return false }
    guard let sqlite = store as? SQLiteStore, !sqlite.isInMemory else {
      store.url = url
      return true
    }
    return sqlite.url?.standardizedFileURL == url.standardizedFileURL
  }
}
