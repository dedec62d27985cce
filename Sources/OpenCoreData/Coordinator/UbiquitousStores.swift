import Foundation

// Apple removed the iCloud stores of documents, and deprecated these in 2016. Here, too, no store reads an option and
// no notification is posted; the names let code compile that still has them.

/// How a store's iCloud content changed.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public enum NSPersistentStoreUbiquitousTransitionType: UInt, Sendable {
  /// A user signed in.
  case accountAdded = 1
  /// A user signed out.
  case accountRemoved
  /// The user removed the content.
  case contentRemoved
  /// The first import ended.
  case initialImportCompleted
}

/// The option with the name of a store's iCloud content; no store reads it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreUbiquitousContentNameKey = "NSPersistentStoreUbiquitousContentNameKey"
/// The option with the place of a store's iCloud content; no store reads it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreUbiquitousContentURLKey = "NSPersistentStoreUbiquitousContentURLKey"
/// The option with the identifier of an iCloud container; no store reads it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreUbiquitousContainerIdentifierKey =
  "NSPersistentStoreUbiquitousContainerIdentifierKey"
/// The option with a store's own token; no store reads it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreUbiquitousPeerTokenOption = "NSPersistentStoreUbiquitousPeerTokenOption"
/// The option that imports a store's iCloud content again; no store reads it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreRebuildFromUbiquitousContentOption =
  "NSPersistentStoreRebuildFromUbiquitousContentOption"
/// The option that leaves iCloud's metadata out of a copied store; no store reads it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreRemoveUbiquitousMetadataOption =
  "NSPersistentStoreRemoveUbiquitousMetadataOption"
/// The notification key of an `NSPersistentStoreUbiquitousTransitionType`; no notification has it.
@available(
  *,
  deprecated,
  message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
)
public let NSPersistentStoreUbiquitousTransitionTypeKey =
  "NSPersistentStoreUbiquitousTransitionTypeKey"

extension NSNotification.Name {
  /// Content of iCloud was imported; it is never posted.
  @available(
    *,
    deprecated,
    message: "Stores have no iCloud documents; use NSPersistentCloudKitContainer."
  )
  public static let NSPersistentStoreDidImportUbiquitousContentChanges = NSNotification.Name(
    "NSPersistentStoreDidImportUbiquitousContentChangesNotification"
  )
}
