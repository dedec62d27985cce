/// The option that migrates a store of an older model version when it is added.
public let NSMigratePersistentStoresAutomaticallyOption =
  "NSMigratePersistentStoresAutomaticallyOption"
/// The option that infers how to migrate where there is no mapping model.
public let NSInferMappingModelAutomaticallyOption = "NSInferMappingModelAutomaticallyOption"
/// The option with the protection class of a store's file; Linux has none.
public let NSPersistentStoreFileProtectionKey = "NSPersistentStoreFileProtectionKey"
/// The notification key of the stores that were added.
public let NSAddedPersistentStoresKey = "added"
/// The notification key of the stores that were removed.
public let NSRemovedPersistentStoresKey = "removed"
/// The notification key of the stores that got another identifier.
public let NSUUIDChangedPersistentStoresKey = "changed"
/// The metadata key of the version hashes of a store's model.
public let NSStoreModelVersionHashesKey = "NSStoreModelVersionHashes"
/// The metadata key of the version identifiers of a store's model.
public let NSStoreModelVersionIdentifiersKey = "NSStoreModelVersionIdentifiers"
/// The option that puts off what a lightweight migration need not do before the store is used.
public let NSPersistentStoreDeferredLightweightMigrationOptionKey =
  "NSPersistentStoreDeferredLightweightMigrationOptionKey"
/// The option with the `NSStagedMigrationManager` that leads a store through its model's versions.
public let NSPersistentStoreStagedMigrationManagerOptionKey =
  "NSPersistentStoreStagedMigrationManagerOptionKey"
/// The metadata key of the checksum of a store's model.
public let NSPersistentStoreModelVersionChecksumKey = "NSStoreModelVersionChecksumKey"
