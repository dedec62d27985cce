import Foundation

/// The type of a store in an SQLite file.
public let NSSQLiteStoreType = "SQLite"
/// The type of a store in memory, which exists as long as the process.
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

/// The option that opens a store read only.
public let NSReadOnlyPersistentStoreOption = "NSReadOnlyPersistentStoreOption"
/// The option with a dictionary of SQLite pragmas, values by name.
public let NSSQLitePragmasOption = "NSSQLitePragmasOption"
/// The option that runs ANALYZE when the store is added.
public let NSSQLiteAnalyzeOption = "NSSQLiteAnalyzeOption"
/// The option that rebuilds the file, without its free pages, when the store is added.
public let NSSQLiteManualVacuumOption = "NSSQLiteManualVacuumOption"
/// The option for the seconds to wait for a lock of another connection.
public let NSPersistentStoreTimeoutOption = "NSPersistentStoreTimeoutOption"
/// The option that opens a store written with any model.
public let NSIgnorePersistentStoreVersioningOption = "NSIgnorePersistentStoreVersioningOption"
/// The option that deletes a store even if it can't be locked.
public let NSPersistentStoreForceDestroyOption = "NSPersistentStoreForceDestroyOption"
/// The option with the classes that a binary store may decode, beyond the usual ones.
public let NSBinaryStoreSecureDecodingClasses = "NSBinaryStoreSecureDecodingClasses"
/// The option that lets a binary store be decoded without a check of classes.
///
/// **Differs from Core Data:** it is accepted without effect; values are always decoded securely.
public let NSBinaryStoreInsecureDecodingCompatibilityOption =
  "NSBinaryStoreInsecureDecodingCompatibilityOption"
/// The option that validates an XML store; there are no XML stores here.
public let NSValidateXMLStoreOption = "NSValidateXMLStoreOption"
/// The option for the largest number of concurrent readers of a store.
public let NSPersistentStoreConnectionPoolMaxSizeKey = "NSPersistentStoreConnectionPoolMaxSize"
/// The metadata key of the earliest system that a store supports; it is stored, but not used.
public let NSPersistentStoreOSCompatibility = "NSPersistentStoreOSCompatibilityKey"
/// The option that keeps persistent history.
///
/// Differs from Core Data: a store that has a history is opened read-only where the option is false, and
/// stays writable, and keeps its history, where the option is absent.
public let NSPersistentHistoryTrackingKey = "NSPersistentHistoryTrackingKey"
/// The option that posts a notification for each change to the store.
public let NSPersistentStoreRemoteChangeNotificationPostOptionKey =
  "NSPersistentStoreRemoteChangeNotificationOptionKey"

extension NSNotification.Name {
  /// Posted after each change to a store, by this process or by another.
  ///
  /// It requires `NSPersistentStoreRemoteChangeNotificationPostOptionKey`. The object is the
  /// coordinator; the keys are `NSPersistentStoreURLKey`, `NSStoreUUIDKey` and, if history is kept,
  /// `NSPersistentHistoryTokenKey`. It is posted on a background thread of the store, in the order
  /// of the commits; `save()` and `execute(_:)` do not wait for observers. For commits of another
  /// process, or of another coordinator on the file, one notification may stand for several commits
  /// in quick succession. New reads see the change by then; loaded objects keep their values until
  /// the app merges the history.
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

  /// The entries that describe the model and the format of the file.
  static let model = [
    versionHashes, versionHashesVersion, versionHashesDigest, versionChecksum, versionIdentifiers,
    frameworkVersion, autoVacuumLevel,
  ]
}
