import CloudKitWebServices
import Foundation

/// Writes stored records as replies show them.
struct RecordRendering {
  /// How a request wants the records of its reply.
  struct Shape {
    /// Nil: all fields.
    var desiredKeys: Set<String>?
    var numbersAsStrings: Bool

    init(desiredKeys: [String]?, numbersAsStrings: Bool?) {
      self.desiredKeys = desiredKeys.map { Set($0) }
      self.numbersAsStrings = numbersAsStrings ?? false
    }
  }

  let service: CloudKitService
  let partition: PartitionID
  let zones: ZoneDirectory
  let context: RequestContext

  /// Writes a record; the fields that are kept as JSON are copied where nothing in them differs.
  func write(_ record: StoredRecord, _ shape: Shape, to json: inout JSONWriter) throws {
    let isPlain =
      shape.desiredKeys == nil && !shape.numbersAsStrings
      && record.contents.isDisjoint(with: [.assets, .encrypted])
    if isPlain, !record.fields.isEmpty {
      json.record(try systemFields(of: record), encodedFields: record.fields)
    } else {
      json.record(try dictionary(record, shape))
    }
  }

  func write(_ error: ErrorDictionary, to json: inout JSONWriter) throws {
    json.encoded(try WireCoding.encode(context.stripped(error)))
  }

  func dictionary(_ record: StoredRecord, _ shape: Shape) throws -> RecordDictionary {
    var dictionary = try systemFields(of: record)
    var fields: [String: FieldValue] = [:]
    if shape.desiredKeys?.isEmpty != true {
      fields = try record.decodedFields()
      if let wanted = shape.desiredKeys {
        fields = fields.filter { wanted.contains($0.key) }
      }
      if record.contents.contains(.encrypted) {
        for (name, value) in fields where value.sealedType != nil {
          fields[name] = try opened(value, record, name)
        }
      }
      if record.contents.contains(.assets) {
        for (name, value) in fields where !value.content.assets.isEmpty {
          fields[name] = try withDownloadURLs(value)
        }
      }
    }
    dictionary.fields = fields
    dictionary.writesNumbersAsStrings = shape.numbersAsStrings
    return dictionary
  }

  private func systemFields(of record: StoredRecord) throws -> RecordDictionary {
    var dictionary = RecordDictionary(
      recordName: record.key.name,
      recordType: record.type,
      recordChangeTag: record.tag,
      zoneID: zones.name(of: record.key.zone).map(zones.id(named:)),
      created: record.created,
      modified: record.modified,
      deleted: false,
      parent: record.parent.map { ParentDictionary(recordName: $0) }
    )
    // Our own clients don't read it, and feeds are long.
    dictionary.hasPluginFields = !context.isExtended
    if record.sharing != nil { try addSharing(of: record, to: &dictionary) }
    return dictionary
  }

  /// What a root shows of its share, and a share of itself.
  private func addSharing(of record: StoredRecord, to dictionary: inout RecordDictionary) throws {
    guard let sharing = try record.decodedSharing() else { return }
    dictionary.shortGUID = sharing.shortGUID ?? sharing.state?.shortGUID
    dictionary.share = sharing.share.map {
      ReferenceValue(recordName: $0, zoneID: dictionary.zoneID)
    }
    dictionary.sharing = sharing.state?.dictionary(for: context.reader, host: service.host)
  }

  /// A record that is gone; its type is an extension.
  func tombstone(_ key: RecordKey, _ type: String) -> RecordDictionary {
    RecordDictionary(
      recordName: key.name,
      recordType: context.isExtended ? type : nil,
      deleted: true
    )
  }

  private func opened(
    _ value: FieldValue,
    _ record: StoredRecord,
    _ field: String
  ) throws -> FieldValue {
    try service.vault.open(
      value,
      at: FieldVault.Place(
        container: context.container,
        environment: context.environment,
        partition: partition,
        record: record.key,
        field: field
      )
    )
  }

  private func withDownloadURLs(_ value: FieldValue) throws -> FieldValue {
    func complete(_ asset: AssetValue) throws -> AssetValue {
      try service.downloadable(asset, partition)
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
