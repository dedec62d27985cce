import Foundation
import OpenCloudKit
import OpenCoreData

extension StoreMirror {
  var zoneID: CKRecordZone.ID {
    CKRecordZone.ID(zoneName: options.zone, ownerName: CKCurrentUserDefaultName)
  }

  func knownRecordID(of reference: RowReference) -> CKRecord.ID? {
    guard let entity = store.layout(number: reference.entityNumber)?.entityName else { return nil }
    // If the metadata cannot be read now, no record is known.
    let name = try? read { try $0.recordName(entity: entity, key: reference.key) }
    return name.map { CKRecord.ID(recordName: $0, zoneID: zoneID) }
  }

  func knownRecord(of reference: RowReference) -> CKRecord? {
    guard let entity = store.layout(number: reference.entityNumber)?.entityName,
      let recordMetadata = try? read({ try $0.record(entity: entity, key: reference.key) }),
      recordMetadata.tag != nil, let base = recordMetadata.base
    else { return nil }
    let record = CKRecord(
      recordType: recordMetadata.recordType,
      recordID: CKRecord.ID(recordName: recordMetadata.name, zoneID: zoneID),
      system: systemFields(recordMetadata),
      fields: [:]
    )
    let present = presentFields(of: reference, entity)
    var fields: [String: CKRecord.Field] = [:]
    for (key, value) in base.values {
      guard let whole = wholeValue(value, key: key, present) else { continue }
      fields[key] = CKRecord.Field(
        CloudKitDatabase.recordValue(whole, effects: effects),
        isEncrypted: present?.encryptedKeys.contains(key) ?? false
      )
    }
    record.adopt(system: systemFields(recordMetadata), fields: fields)
    return record
  }

  private func systemFields(_ recordMetadata: RecordMetadata) -> CKRecord.SystemFields {
    var system = CKRecord.SystemFields()
    system.recordChangeTag = recordMetadata.tag
    system.creationDate = recordMetadata.stamps.created.map(
      Date.init(timeIntervalSinceReferenceDate:)
    )
    system.modificationDate = recordMetadata.stamps.modified.map(
      Date.init(timeIntervalSinceReferenceDate:)
    )
    system.creatorUserRecordID = recordMetadata.stamps.creator.map { CKRecord.ID(recordName: $0) }
    system.lastModifiedUserRecordID = recordMetadata.stamps.modifier.map {
      CKRecord.ID(recordName: $0)
    }
    return system
  }

  /// The fields that the object would be sent with now: the metadata keeps long values only as
  /// fingerprints.
  private func presentFields(of reference: RowReference, _ entity: String) -> SerializedRecord? {
    guard let mapping = context.mapping.entity(named: entity) else { return nil }
    return try? store.read { reader in
      guard let row = try reader.row(reference) else { return nil }
      return context.serializer.serialize(row.values, mapping) { _ in nil }
    }
  }

  private func wholeValue(
    _ value: MirrorValue,
    key: String,
    _ present: SerializedRecord?
  ) -> MirrorValue? {
    switch value {
    case .fingerprint:
      guard let now = present?.fields[key], now.hasSameContent(as: value) else { return nil }
      return now
    case .asset(var asset):
      guard let contents = present?.fileContents[key],
        MirrorFingerprint(of: contents) == asset.fingerprint,
        let file = try? context.assets.write(contents, once: asset.fingerprint)
      else { return nil }
      asset.file = context.assets.path(file)
      return .asset(asset)
    default: return value
    }
  }
}
