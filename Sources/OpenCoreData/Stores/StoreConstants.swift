import Foundation

/// The type of a store in an SQLite file.
public let NSSQLiteStoreType = "SQLite"
/// The type of a store that lives as long as the process.
public let NSInMemoryStoreType = "InMemory"
/// The type of a store in one binary file.
public let NSBinaryStoreType = "Binary"
/// The type of a store in one XML file.
public let NSXMLStoreType = "XML"

/// The metadata key of a store's type.
public let NSStoreTypeKey = "NSStoreType"
/// The metadata key of a store's identifier.
public let NSStoreUUIDKey = "NSStoreUUID"
/// The notification key of a store's URL.
public let NSPersistentStoreURLKey = "storeURL"
/// The notification key of the token of the newest history.
public let NSPersistentHistoryTokenKey = "historyToken"

/// The option that opens a store for reading alone.
public let NSReadOnlyPersistentStoreOption = "NSReadOnlyPersistentStoreOption"
/// The option with a dictionary of pragmas, names to values.
public let NSSQLitePragmasOption = "NSSQLitePragmasOption"
/// The option that has the query planner's statistics made when the store is added.
public let NSSQLiteAnalyzeOption = "NSSQLiteAnalyzeOption"
/// The option that rebuilds the file, without its free pages, when the store is added.
public let NSSQLiteManualVacuumOption = "NSSQLiteManualVacuumOption"
/// The option that says how many seconds to wait for a lock held elsewhere.
public let NSPersistentStoreTimeoutOption = "NSPersistentStoreTimeoutOption"
/// The option that opens a store whatever model it was written with.
public let NSIgnorePersistentStoreVersioningOption = "NSIgnorePersistentStoreVersioningOption"
/// The option that deletes a store even where it cannot be locked.
public let NSPersistentStoreForceDestroyOption = "NSPersistentStoreForceDestroyOption"
/// The option with classes that values of a binary store may be decoded to, beyond the usual ones.
public let NSBinaryStoreSecureDecodingClasses = "NSBinaryStoreSecureDecodingClasses"
/// The option that lets a binary store be decoded without a check of classes.
///
/// **Differs from Core Data:** it is accepted without effect; values are always decoded securely.
public let NSBinaryStoreInsecureDecodingCompatibilityOption =
  "NSBinaryStoreInsecureDecodingCompatibilityOption"
/// The option that checks an XML store against its document type; there are no XML stores here.
public let NSValidateXMLStoreOption = "NSValidateXMLStoreOption"
/// The option with the number of readers that a store may serve at once.
public let NSPersistentStoreConnectionPoolMaxSizeKey = "NSPersistentStoreConnectionPoolMaxSize"
/// The metadata key of the earliest system that a store supports; it is kept and not read.
public let NSPersistentStoreOSCompatibility = "NSPersistentStoreOSCompatibilityKey"
/// The option that keeps a history of every save.
public let NSPersistentHistoryTrackingKey = "NSPersistentHistoryTrackingKey"
/// The option that has a notification posted for every change to the store.
public let NSPersistentStoreRemoteChangeNotificationPostOptionKey =
  "NSPersistentStoreRemoteChangeNotificationOptionKey"

extension NSNotification.Name {
  /// Posted after each change to a store, by this process or by another.
  ///
  /// Only where the store was opened with `NSPersistentStoreRemoteChangeNotificationPostOptionKey`.
  /// The object is the coordinator; the keys are `NSPersistentStoreURLKey`, `NSStoreUUIDKey` and,
  /// where history is kept, `NSPersistentHistoryTokenKey`. It is posted on a background thread of the
  /// store, in the order of the commits; `save()` and `execute(_:)` do not wait for observers. For
  /// commits of another process, or of another coordinator on the file, it is posted once for several
  /// that follow one another closely. By then new reads see the change; objects that are loaded stay
  /// as they are until the app merges the history.
  ///
  /// **Differs from Core Data:** on systems other than Linux commits of other processes are noticed
  /// at the next fetch or save.
  public static let NSPersistentStoreRemoteChange = NSNotification.Name(
    "NSPersistentStoreRemoteChangeNotification"
  )
}

/// The metadata keys that Core Data itself writes.
enum StoreMetadataKey {
  static let versionHashes = "NSStoreModelVersionHashes"
  static let versionHashesVersion = "NSStoreModelVersionHashesVersion"
  static let versionHashesDigest = "NSStoreModelVersionHashesDigest"
  static let versionChecksum = "NSStoreModelVersionChecksumKey"
  static let versionIdentifiers = "NSStoreModelVersionIdentifiers"
  static let frameworkVersion = "NSPersistenceFrameworkVersion"
  static let autoVacuumLevel = "_NSAutoVacuumLevel"
}
