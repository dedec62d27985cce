/// The names that Core Data and CloudKit have agreed on, as they stand in records and zones.
package enum MirrorNames {
  /// Before every record type and field that comes from a model, so that none collides.
  package static let prefix = "CD_"
  /// After the name of a field whose value moved into a file.
  package static let assetSuffix = "_ckAsset"
  /// The field that holds the name of the concrete entity.
  package static let entityName = "CD_entityName"
  /// The field that tells where a shared record came from.
  package static let moveReceipt = "CD_moveReceipt"

  /// The record type of one edge of a many-to-many relationship.
  package static let edgeType = "CDMR"
  /// The fields of an edge.
  package static let edgeEntityNames = "CD_entityNames"
  package static let edgeRecordNames = "CD_recordNames"
  package static let edgeRelationships = "CD_relationships"

  /// The zone that holds a private store's records.
  package static let zone = "com.apple.coredata.cloudkit.zone"
  /// The database subscription of a private store.
  package static let privateSubscription = "com.apple.coredata.cloudkit.private.subscription"
  /// The database subscription of a store of shared objects.
  package static let sharedSubscription = "com.apple.coredata.cloudkit.shared.subscription"

  /// Records whose names begin so were made by a schema initialization; importers skip them.
  package static let schemaRecordPrefix = "com.apple.coredata.cloudkit.schema."

  /// The key in a property's user info that keeps it out of CloudKit.
  package static let ignoredKey = "NSCloudKitMirroringDelegateIgnoredPropertyKey"
  /// The older way to ask for encryption.
  package static let encryptedKey = "NSPersistentCloudKitContainerEncryptedAttributeKey"
  /// The key in an attribute's user info that keeps decimals exact beside CloudKit's doubles.
  package static let exactDecimalKey = "WatershedExactDecimal"
  /// After the name of a field whose decimal stands exactly in a text.
  package static let exactSuffix = "_wsExact"
  /// An attribute of this name holds the record's own name.
  package static let recordIDAttribute = "ckRecordID"

  /// The field of a property.
  ///
  /// A leaf of a composite attribute has a dot in its name, which a field may not have.
  package static func field(_ property: String) -> String {
    property.contains(".") ? prefix + property.replacing(".", with: "_") : prefix + property
  }
  /// The field of a property's file.
  package static func assetField(_ property: String) -> String { field(property) + assetSuffix }
  /// The field of a property's exact decimal.
  package static func exactField(_ property: String) -> String { field(property) + exactSuffix }
}

/// Who wrote a history transaction.
package enum MirrorAuthor {
  package static let importing = "NSCloudKitMirroringDelegate.import"
  package static let exporting = "NSCloudKitMirroringDelegate.export"
  package static let setup = "NSCloudKitMirroringDelegate.setup"
  package static let reset = "NSCloudKitMirroringDelegate.reset"

  /// What an app takes back from the recovery list: edits like any other, so they are exported.
  package static let recovery = "NSCloudKitMirroringDelegate.recovery"

  /// Transactions of these authors are never exported.
  package static let all: Set<String> = [importing, exporting, setup, reset]
}
