/// The names that Core Data and CloudKit use in records and zones.
package enum MirrorNames {
  /// The prefix of every record type and field of a model, which avoids collisions.
  package static let prefix = "CD_"
  /// The suffix of a field whose value is in a file.
  package static let assetSuffix = "_ckAsset"
  /// The field with the name of the concrete entity.
  package static let entityName = "CD_entityName"
  /// The field with the origin of a shared record.
  package static let moveReceipt = "CD_moveReceipt"

  /// The record type of one edge of a many-to-many relationship.
  package static let edgeType = "CDMR"
  /// The fields of an edge.
  package static let edgeEntityNames = "CD_entityNames"
  package static let edgeRecordNames = "CD_recordNames"
  package static let edgeRelationships = "CD_relationships"

  /// The zone of a private store's records.
  package static let zone = "com.apple.coredata.cloudkit.zone"
  /// The database subscription of a private store.
  package static let privateSubscription = "com.apple.coredata.cloudkit.private.subscription"

  /// The prefix of records that a schema initialization created; importers skip them.
  package static let schemaRecordPrefix = "com.apple.coredata.cloudkit.schema."

  /// The key in a property's user info that excludes it from CloudKit.
  package static let ignoredKey = "NSCloudKitMirroringDelegateIgnoredPropertyKey"
  /// The older key that encrypts an attribute.
  package static let encryptedKey = "NSPersistentCloudKitContainerEncryptedAttributeKey"
  /// The key in an attribute's user info that keeps decimals exact beside CloudKit's doubles.
  package static let exactDecimalKey = "WatershedExactDecimal"
  /// The suffix of a field with a decimal's exact text.
  package static let exactSuffix = "_wsExact"
  /// The attribute that has the record's own name.
  package static let recordIDAttribute = "ckRecordID"

  /// The field of a property.
  ///
  /// A leaf of a composite attribute has a dot in its name, which a field must not have.
  package static func field(_ property: String) -> String {
    property.contains(".") ? prefix + property.replacing(".", with: "_") : prefix + property
  }
  /// The field of a property's file.
  package static func assetField(_ property: String) -> String { field(property) + assetSuffix }
  /// The field of a property's exact decimal.
  package static func exactField(_ property: String) -> String { field(property) + exactSuffix }
}

/// The authors of history transactions.
package enum MirrorAuthor {
  package static let importing = "NSCloudKitMirroringDelegate.import"
  package static let exporting = "NSCloudKitMirroringDelegate.export"
  package static let setup = "NSCloudKitMirroringDelegate.setup"
  package static let reset = "NSCloudKitMirroringDelegate.reset"

  /// The author of values restored from the recovery list: they are exported like edits.
  package static let recovery = "NSCloudKitMirroringDelegate.recovery"

  /// Transactions of these authors are never exported.
  package static let all: Set<String> = [importing, exporting, setup, reset]
}
