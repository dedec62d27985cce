import CloudKitWebServices
import Foundation

/// Writes stored records as replies show them.
struct RecordRendering {
  let service: CloudKitService
  let partition: PartitionID
  let zones: ZoneDirectory
  let context: RequestContext

  func dictionary(
    _ record: StoredRecord,
    fields known: [String: FieldValue]? = nil,
    desiredKeys: [String]?,
    numbersAsStrings: Bool
  ) throws -> RecordDictionary {
    var fields: [String: FieldValue] = [:]
    if desiredKeys?.isEmpty != true {
      fields = try known ?? record.decodedFields()
      if let desiredKeys {
        let wanted = Set(desiredKeys)
        fields = fields.filter { wanted.contains($0.key) }
      }
      for (name, value) in fields where !value.content.assets.isEmpty {
        fields[name] = try withDownloadURLs(value)
      }
    }
    var dictionary = RecordDictionary(
      recordName: record.key.name,
      recordType: record.type,
      recordChangeTag: record.tag,
      fields: fields,
      zoneID: zoneID(of: record),
      created: record.created,
      modified: record.modified,
      deleted: false,
      parent: record.parent.map { ParentDictionary(recordName: $0) }
    )
    dictionary.writesNumbersAsStrings = numbersAsStrings
    return dictionary
  }

  /// A record that is gone; its type is an extension.
  func tombstone(_ record: StoredRecord) -> RecordDictionary {
    RecordDictionary(
      recordName: record.key.name,
      recordType: context.isExtended ? record.type : nil,
      deleted: true
    )
  }

  func zoneID(of record: StoredRecord) -> ZoneID? {
    zones.name(of: record.key.zone).map { ZoneDirectory.id(named: $0, context) }
  }

  private func withDownloadURLs(_ value: FieldValue) throws -> FieldValue {
    func complete(_ asset: AssetValue) throws -> AssetValue {
      guard let digest = AssetDigest(checksum: asset.fileChecksum) else { return asset }
      var asset = asset
      asset.downloadURL = try service.downloadURL(partition, digest)
      return asset
    }
    var value = value
    switch value.content {
    case .asset(let asset): value.content = .asset(try complete(asset))
    case .assetList(let assets): value.content = .assetList(try assets.map(complete))
    default: break
    }
    return value
  }
}
