import CloudKitWebServices
import Foundation
import Logging

/// The services and settings that the rendering of records uses.
struct RecordRenderer: Sendable {
  let vault: FieldVault
  let assets: AssetService
  let address: ServerAddress
  let logger: Logger
}

/// Writes stored records to replies.
struct RecordRendering {
  /// The form of records that a request asks for.
  struct Shape {
    /// Nil for all fields.
    var desiredKeys: Set<String>?
    var numbersAsStrings: Bool

    init(desiredKeys: [String]?, numbersAsStrings: Bool?) {
      self.desiredKeys = desiredKeys.map { Set($0) }
      self.numbersAsStrings = numbersAsStrings ?? false
    }

    /// The form for one item of a request, whose own options override the request's.
    ///
    /// The request's set of keys is made once and shared by its items.
    func overridden(desiredKeys: [String]?, numbersAsStrings: Bool? = nil) -> Shape {
      var shape = self
      if let desiredKeys { shape.desiredKeys = Set(desiredKeys) }
      if let numbersAsStrings { shape.numbersAsStrings = numbersAsStrings }
      return shape
    }
  }

  let zones: ZoneDirectory
  private let renderer: RecordRenderer
  private let partition: PartitionID
  private let context: RequestContext
  /// The ID of the invitation by which a reader who has not joined sees a share's root.
  var invitation: String?
  /// The credential to which URLs of files are bound.
  private let credential: IssuingCredential
  /// The zones' IDs, encoded as JSON, because every record of a reply repeats one of them.
  private let zoneIDs: [ZoneNumber: Data]

  init(
    renderer: RecordRenderer,
    partition: PartitionID,
    zones: ZoneDirectory,
    context: RequestContext
  ) {
    self.renderer = renderer
    self.partition = partition
    self.zones = zones
    self.context = context
    credential = IssuingCredential(context)
    zoneIDs = zones.encodedIDs()
  }

  func write(_ record: StoredRecord, _ shape: Shape, to json: inout JSONWriter) throws {
    try write(RecordRow(record), shape, to: &json)
  }

  /// Writes a record, directly from its stored bytes.
  func write(_ record: RecordRow, _ shape: Shape, to json: inout JSONWriter) throws {
    json.beginObject()
    json.piece(#""created":{"deviceID":""#)
    record.with(.createdOn) { json.text($0) }
    json.piece(#"","timestamp":"#)
    json.digits(record.createdAt)
    json.piece(#","userRecordName":""#)
    record.with(.createdBy) { json.text($0) }
    json.piece(#""},"deleted":false,"fields":"#)
    try writeFields(of: record, shape, to: &json)
    json.piece(#","modified":{"deviceID":""#)
    record.with(.modifiedOn) { json.text($0) }
    json.piece(#"","timestamp":"#)
    json.digits(record.modifiedAt)
    json.piece(#","userRecordName":""#)
    record.with(.modifiedBy) { json.text($0) }
    if !record.isEmpty(.parent) {
      json.piece(#""},"parent":{"recordName":""#)
      record.with(.parent) { json.text($0) }
    }
    // Our own clients do not read the plug-in fields, and feeds are long.
    json.piece(
      context.isExtended
        ? #""},"recordChangeTag":""# : #""},"pluginFields":{},"recordChangeTag":""#
    )
    record.with(.tag) { json.text($0) }
    json.piece(#"","recordName":""#)
    record.with(.name) { json.text($0) }
    json.piece(#"","recordType":""#)
    record.with(.type) { json.text($0) }
    json.piece("\"")
    if !record.isEmpty(.sharing) { try writeSharing(of: record, to: &json) }
    if let zoneID = zoneIDs[record.zone] {
      json.piece(#","zoneID":"#)
      json.encoded(zoneID)
    }
    json.endObject()
  }

  /// The approximate bytes of a record in a reply, never far below the real number.
  ///
  /// References and files are longer in a reply than in the storage: with a zone, a URL.
  func weight(of record: RecordRow) -> Int {
    var bytes = record.size + 768
    if !context.isExtended, record.contents.contains(.references) {
      let zone = (zoneIDs[record.zone]?.count ?? 0) + 10
      bytes += record.size / Self.leastReference * zone
    }
    if record.contents.contains(.assets) { bytes += record.size * 3 }
    return bytes
  }

  /// `{"recordName":"a"}` and a comma: no stored reference is shorter.
  private static let leastReference = 20

  /// Writes a record of a list; for one that cannot be rendered an error is written, so that the
  /// other records of the reply are not lost.
  func writeItem(_ record: RecordRow, _ shape: Shape, to json: inout JSONWriter) throws {
    let mark = json.mark
    do {
      try write(record, shape, to: &json)
    } catch {
      json.takeBack(to: mark)
      try writeUnreadable(record.text(.name), error, to: &json)
    }
  }

  /// Writes the error for a record that cannot be read.
  func writeUnreadable(_ name: String, _ error: any Error, to json: inout JSONWriter) throws {
    // The field and the reason are logged for the operator, and not sent to readers of the record.
    renderer.logger.error(
      "a record cannot be shown",
      metadata: ["record": "\(name)", "error": "\(error)"]
    )
    try write(Self.unreadable(name), to: &json)
  }

  func writeItem(_ record: StoredRecord, _ shape: Shape, to json: inout JSONWriter) throws {
    try writeItem(RecordRow(record), shape, to: &json)
  }

  /// Writes the result of a save if the caller may write a record but not read it: its identity,
  /// and the fields that the caller sent.
  func writeReceipt(
    _ record: StoredRecord,
    _ sent: Set<String>,
    _ shape: Shape,
    to json: inout JSONWriter
  ) throws {
    var own = shape
    own.desiredKeys = shape.desiredKeys.map { $0.intersection(sent) } ?? sent
    let whole = try dictionary(record, own)
    var receipt = RecordDictionary(
      recordName: whole.recordName,
      recordType: whole.recordType,
      recordChangeTag: whole.recordChangeTag,
      fields: whole.fields
    )
    receipt.zoneID = whole.zoneID
    receipt.modified = whole.modified
    receipt.deleted = false
    receipt.writesNumbersAsStrings = whole.writesNumbersAsStrings
    receipt.hasPluginFields = whole.hasPluginFields
    json.record(receipt)
  }

  static func unreadable(_ name: String) -> ErrorDictionary {
    ErrorDictionary(
      .internalError,
      "the server cannot read this record; its log says why",
      recordName: name
    )
  }

  func write(_ error: ErrorDictionary, to json: inout JSONWriter) throws {
    json.encoded(try WireCoding.encode(context.stripped(error)))
  }

  /// The record as a value, for use inside another one.
  func dictionary(_ record: StoredRecord, _ shape: Shape) throws -> RecordDictionary {
    var json = JSONWriter(capacity: record.fields.count + 512)
    var plain = shape
    plain.numbersAsStrings = false
    try write(record, plain, to: &json)
    var dictionary = try WireCoding.decode(RecordDictionary.self, from: json.finished())
    dictionary.writesNumbersAsStrings = shape.numbersAsStrings
    dictionary.hasPluginFields = !context.isExtended
    return dictionary
  }

  // MARK: Fields

  /// Copies the stored bytes; parses only fields that are left out, encrypted, files or changed.
  private func writeFields(
    of record: RecordRow,
    _ shape: Shape,
    to json: inout JSONWriter
  ) throws {
    let differs =
      shape.numbersAsStrings || !record.contents.isDisjoint(with: [.assets, .encrypted])
    // Our own clients know that a reference is in its record's zone.
    let placesReferences = !context.isExtended && record.contents.contains(.references)
    let leavesOutExactDates = !context.hasExactDates && record.contents.contains(.exactDates)
    try record.with(.fields) { kept in
      if kept.isEmpty || shape.desiredKeys?.isEmpty == true { return json.piece("{}") }
      if !differs, !placesReferences, !leavesOutExactDates, shape.desiredKeys == nil {
        return json.encoded(kept)
      }
      json.beginObject()
      var fields = EncodedFields(kept)
      while let (name, value) = try fields.next() {
        guard shape.desiredKeys?.contains(name) ?? true else { continue }
        json.key(name)
        if differs || placesReferences && EncodedFields.isReference(value)
          || leavesOutExactDates && EncodedFields.hasExactDates(value)
        {
          json.field(try shown(value, record, name), shape.numbersAsStrings)
        } else {
          json.encoded(value)
        }
      }
      json.endObject()
    }
  }

  /// The decrypted value, with the URLs of its files.
  private func shown(
    _ json: UnsafeRawBufferPointer,
    _ record: RecordRow,
    _ field: String
  ) throws -> FieldValue {
    let value = try renderer.vault.open(
      try WireCoding.decode(FieldValue.self, from: Data(json), origin: .storage),
      at: FieldVault.Place(
        container: context.container,
        environment: context.environment,
        partition: partition,
        record: record.key,
        field: field
      )
    )
    if !context.hasExactDates, value.content.hasExactDates {
      return value.replacing(value.content.withoutExactDates)
    }
    if !context.isExtended, !value.content.references.isEmpty {
      let zone = zones.name(of: record.zone).map { zones.id(named: $0) }
      return value.replacing(value.content.placingReferences(in: zone))
    }
    return value.content.assets.isEmpty ? value : try withDownloadURLs(value, record)
  }

  // MARK: Shares

  /// Writes a root's share, and the keys of a share.
  private func writeSharing(of record: RecordRow, to json: inout JSONWriter) throws {
    let kept = record.with(.sharing) { Data($0) }
    let sharing = try WireCoding.decode(RecordSharing.self, from: kept)
    if let name = sharing.share {
      json.key("share")
      json.beginObject()
      json.member("recordName", name)
      if let zoneID = zoneIDs[record.zone] {
        json.key("zoneID")
        json.encoded(zoneID)
      }
      json.endObject()
    }
    json.member("shortGUID", sharing.shortGUID ?? sharing.state?.shortGUID)
    if let state = sharing.state {
      let shown = state.dictionary(for: context.reader, host: renderer.address.host)
      json.members(of: try WireCoding.encode(shown))
    }
  }

  /// A deleted record; its type is an extension.
  func tombstone(_ key: RecordKey, _ type: String) -> RecordDictionary {
    RecordDictionary(
      recordName: key.name,
      recordType: context.isExtended ? type : nil,
      deleted: true
    )
  }

  private func withDownloadURLs(_ value: FieldValue, _ record: RecordRow) throws -> FieldValue {
    let source =
      context.scope == .shared
      ? SharedSource(record.key, reader: context.reader, invitation: invitation) : nil
    func complete(_ asset: AssetValue) throws -> AssetValue {
      try renderer.assets.downloadable(asset, partition, for: credential, from: source)
    }
    return switch value.content {
    case .asset(let asset): value.replacing(.asset(try complete(asset)))
    case .assetList(let assets): value.replacing(.assetList(try assets.map(complete)))
    default: value
    }
  }
}
