import Effects
import Foundation

extension NSPersistentStoreCoordinator {
  // MARK: Destroying

  /// Empties a store's file and deletes all that belongs to the store.
  ///
  /// An SQLite file stays behind empty, as with Core Data: code that removes it next finds it, and
  /// opening it makes a new store. Where this coordinator has the store, it is removed first. A file that is not a store is left
  /// alone, and one that another process has open is refused with 134090, unless
  /// `NSPersistentStoreForceDestroyOption` says to delete it in any case. A store that is not
  /// there is no error, whether its folder exists or not, and no file is made. One in memory, at
  /// `/dev/null` or a name below it, has no file to delete. A
  /// place where something other than a regular file is, is refused with 512.
  ///
  /// **Differs from Core Data:** stores whose names differ in the extension alone, such as `Model.sqlite`
  /// and `Model.backup`, share the folder of large values `.Model_SUPPORT`. Only the files to which the
  /// rows of the destroyed store alone refer are removed from it; a store that is replaced by a copy of
  /// the other one, or migrated beside it, has files of its own.
  ///
  /// **Differs from Core Data:** the store's log is deleted, where Core Data leaves it empty: code that removes
  /// the files `-wal` and `-shm` by name next does not find them.
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
        guard storeClass is NSAtomicStore.Type, try StorePlace.hasFile(at: url) else {
          return
        }
        try FileSystem.remove(url.path)
      }
    }
  }

  /// Empties a store's file and deletes all that belongs to the store.
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
  /// removed first and not added again. A crash leaves the old store or the new. A destination
  /// without a file, `/dev/null` for instance, and one that is no regular file are refused.
  ///
  /// Differs from Core Data: a destination that another coordinator of the process has open is
  /// refused with 134090, since that one would read and write pages of the other store. Remove it
  /// there first.
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
      guard try StorePlace.hasFile(at: destinationURL) else { throw Self.withoutFile(storeType) }
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
        try FileSystem.copy(
          sourceURL.path,
          over: destinationURL.resolvingSymlinksInPath().path
        )
      default:
        throw Self.withoutFile(storeType)
      }
    }
  }

  private static func withoutFile(_ storeType: String) -> NSError {
    CoreDataError.make(
      NSPersistentStoreUnsupportedRequestTypeError,
      "A store of the type \(storeType) without a file cannot be replaced."
    )
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
