/// The option that migrates a store of an older model version when it is added.
public let NSMigratePersistentStoresAutomaticallyOption =
  "NSMigratePersistentStoresAutomaticallyOption"
/// The option that infers the mapping where there is no mapping model.
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
/// The option that defers the parts of a lightweight migration that the store can be used without.
public let NSPersistentStoreDeferredLightweightMigrationOptionKey =
  "NSPersistentStoreDeferredLightweightMigrationOptionKey"
/// The option with the `NSStagedMigrationManager` that migrates a store version by version.
public let NSPersistentStoreStagedMigrationManagerOptionKey =
  "NSPersistentStoreStagedMigrationManagerOptionKey"
/// The metadata key of the checksum of a store's model.
public let NSPersistentStoreModelVersionChecksumKey = "NSStoreModelVersionChecksumKey"
