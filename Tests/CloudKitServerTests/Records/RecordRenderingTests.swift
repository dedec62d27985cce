import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// Replies are copied from the stored bytes; here they are compared with records encoded from
/// values.
@Suite("Rendering records", .everyEngine)
struct RecordRenderingTests {
  private let random = SeededRandomness(seed: TestSeed.value)

  // MARK: Random records

  private func number(_ limit: UInt64) -> Int { Int(random.next() % limit) }

  private func text() -> String {
    let parts = [
      "plain", "", "\"", "\\", "{", "}", "[", ",", ":", "é", "𝄞", "\n", "\t", "\u{1}", "/",
      "\u{7F}",
    ]
    return (0..<number(6)).map { _ in parts[number(UInt64(parts.count))] }.joined()
  }

  private func list<Element>(_ make: () -> Element) -> [Element] {
    (0..<number(4)).map { _ in make() }
  }

  private func integer() -> Int64 {
    [0, 1, -1, .max, .min, Int64(truncatingIfNeeded: random.next())][number(6)]
  }

  private func date() -> TimestampValue {
    guard number(3) == 0 else { return TimestampValue(milliseconds: integer()) }
    return TimestampValue(Date(timeIntervalSinceReferenceDate: real()))
  }

  private func real() -> Double {
    [0, -0.5, 1e300, -1e-300, 3, 0.1, random.fraction() * 1000][number(7)]
  }

  private func location() -> LocationValue {
    LocationValue(
      latitude: real(),
      longitude: real(),
      horizontalAccuracy: number(2) == 0 ? nil : real(),
      timestamp: number(2) == 0 ? nil : integer()
    )
  }

  private func reference() -> ReferenceValue {
    ReferenceValue(
      recordName: "R" + text(),
      zoneID: number(2) == 0 ? nil : TestServer.zone,
      action: [.deleteSelf, .validate, ReferenceAction.none][number(3)]
    )
  }

  private func asset() -> AssetValue {
    AssetValue(
      fileChecksum: "sum",
      size: integer(),
      blob: number(4) == 0 ? nil : "blob\(integer())"
    )
  }

  private func value() -> FieldValue {
    let plain: [() -> FieldContent] = [
      { .string(text()) }, { .int64(integer()) }, { .double(real()) }, { .timestamp(date()) },
      { .bytes(random.bytes(number(9))) }, { .location(location()) },
      { .stringList(list(text)) }, { .int64List(list(integer)) }, { .doubleList(list(real)) },
      { .timestampList(list(date)) }, { .bytesList(list { random.bytes(3) }) },
      { .locationList(list(location)) },
    ]
    let linking: [() -> FieldContent] = [
      { .reference(reference()) }, { .referenceList(list(reference)) }, { .asset(asset()) },
      { .assetList(list(asset)) }, { .unknownList },
    ]
    let index = number(UInt64(plain.count + linking.count))
    guard index < plain.count else { return FieldValue(linking[index - plain.count]()) }
    return FieldValue(plain[index](), isEncrypted: number(4) == 0)
  }

  private static let names = (0..<12).map { "field\($0)" }

  /// The app's values, and the stored bytes.
  private func record(
    _ number: Int,
    _ zone: ZoneNumber,
    _ place: (RecordKey, String) -> FieldVault.Place,
    _ vault: FieldVault
  ) throws -> (shown: [String: FieldValue], kept: StoredRecord) {
    let key = RecordKey(zone: zone, name: "record\(number)")
    var shown: [String: FieldValue] = [:]
    for name in Self.names.prefix(self.number(13)) { shown[name] = value() }
    var kept = shown
    for (name, value) in shown { kept[name] = try vault.seal(value, at: place(key, name)) }
    var json = JSONWriter()
    json.fields(kept)
    let stamp = ServerStamp(timestamp: integer(), userRecordName: "_" + text(), deviceID: text())
    let root = RecordSharing(shortGUID: "0guid", share: self.number(2) == 0 ? nil : "share")
    let record = StoredRecord(
      key: key,
      type: "Note",
      tag: "tag\(number)",
      change: ChangeNumber(Int64(number) + 1),
      created: stamp,
      modified: ServerStamp(timestamp: 5, userRecordName: "_m", deviceID: "d"),
      parent: self.number(3) == 0 ? "record0" : nil,
      fields: json.finished(),
      contents: FieldSurvey(shown).contents,
      isDeleted: false,
      sharing: self.number(4) == 0 ? try WireCoding.encode(root) : nil
    )
    return (shown, record)
  }

  /// The record, created from values and encoded by Foundation.
  private func expected(
    _ shown: [String: FieldValue],
    _ kept: StoredRecord,
    _ shape: RecordRendering.Shape,
    zone: ZoneID,
    isExtended: Bool,
    _ files: (AssetValue) throws -> AssetValue
  ) throws -> NSDictionary? {
    var fields = shown.filter { shape.desiredKeys?.contains($0.key) ?? true }
    for (name, value) in fields {
      if !isExtended {
        fields[name]?.content = value.content.withoutExactDates.placingReferences(in: zone)
      }
      switch value.content {
      case .asset(let asset): fields[name]?.content = .asset(try files(asset))
      case .assetList(let assets): fields[name]?.content = .assetList(try assets.map(files))
      default: break
      }
    }
    let sharing = try kept.decodedSharing()
    var dictionary = RecordDictionary(
      recordName: kept.key.name,
      recordType: kept.type,
      recordChangeTag: kept.tag,
      fields: fields,
      zoneID: zone,
      created: kept.created,
      modified: kept.modified,
      deleted: false,
      parent: kept.parent.map { ParentDictionary(recordName: $0) },
      share: sharing?.share.map { ReferenceValue(recordName: $0, zoneID: zone) },
      shortGUID: sharing?.shortGUID
    )
    dictionary.hasPluginFields = !isExtended
    dictionary.writesNumbersAsStrings = shape.numbersAsStrings
    return try object(JSONEncoder().encode(dictionary))
  }

  private func object(_ json: Data) throws -> NSDictionary? {
    try JSONSerialization.jsonObject(with: json) as? NSDictionary
  }

  @Test("Copied bytes equal the encoded values, in every requested form")
  func difference() async throws {
    let server = try await TestServer()
    let service = server.service
    let key = PartitionKey(
      container: TestServer.container,
      environment: .development,
      scope: .private,
      owner: "_o"
    )
    let id = try service.storage.partition(key)
    let zone = StoredZone(number: ZoneNumber(7), name: "notes", change: .zero)
    func place(_ record: RecordKey, _ field: String) -> FieldVault.Place {
      FieldVault.Place(
        container: TestServer.container,
        environment: .development,
        partition: id,
        record: record,
        field: field
      )
    }
    let records = try (0..<60).map { try record($0, zone.number, place, service.vault) }
    var batch = WriteBatch(partition: id)
    batch.records = records.map(\.kept)
    batch.counter = ChangeNumber(60)
    try service.storage.commit(batch)
    let rows = try service.storage.read {
      try $0.changes(in: id, ChangeRange(zone: zone.number, after: .zero, limit: 100))
    }
    #expect(rows.count == records.count)
    let shapes: [(desiredKeys: [String]?, numbersAsStrings: Bool?)] = [
      (nil, nil), (nil, true), (["field1", "field4", "other"], nil), (["field0", "field2"], true),
      ([], nil),
    ]
    for isExtended in [false, true] {
      let context = RequestContext(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        caller: .user(Principal(account: "a", userRecordName: "_o"), apiToken: nil),
        isExtended: isExtended,
        wantsSyncToken: false
      )
      let zones = ZoneDirectory([zone], context, owner: "_o")
      let rendering = RecordRendering(
        renderer: service.renderer,
        partition: id,
        zones: zones,
        context: context
      )
      for (row, record) in zip(rows, records) {
        for (desiredKeys, numbersAsStrings) in shapes {
          let shape = RecordRendering.Shape(
            desiredKeys: desiredKeys,
            numbersAsStrings: numbersAsStrings
          )
          let expected = try expected(
            record.shown,
            record.kept,
            shape,
            zone: zones.id(named: "notes"),
            isExtended: isExtended
          ) { try service.assets.downloadable($0, id, for: IssuingCredential(context)) }
          var fromRow = JSONWriter()
          var fromRecord = JSONWriter()
          try rendering.write(row, shape, to: &fromRow)
          try rendering.write(record.kept, shape, to: &fromRecord)
          let written = fromRow.finished()
          let writtenFromRecord = fromRecord.finished()
          #expect(try object(written) == expected, "seed \(TestSeed.value)")
          #expect(written == writtenFromRecord)
          let dictionary = try rendering.dictionary(record.kept, shape)
          #expect(try object(WireCoding.encode(dictionary)) == expected)
        }
      }
    }
  }

  @Test("A record is the same in the reply to its save, look-ups, queries and changes")
  func everyReply() async throws {
    let person = try await TestServer(isLenient: true).person()
    try await person.makeZone()
    let record = RecordDictionary(
      recordName: "a",
      recordType: "Note",
      fields: ["text": FieldValue(.string("\u{1}\"é")), "count": FieldValue(.int64(5))]
    )
    let requests: [(Endpoint, Data)] = [
      (
        .modifyRecords,
        try WireCoding.encode(
          ModifyRecordsRequest(
            operations: [RecordOperation(operationType: .create, record: record)],
            zoneID: TestServer.zone
          )
        )
      ),
      (
        .lookupRecords,
        try WireCoding.encode(
          LookupRecordsRequest(records: [LookupRecord(recordName: "a")], zoneID: TestServer.zone)
        )
      ),
      (
        .queryRecords,
        try WireCoding.encode(
          QueryRecordsRequest(query: RecordQuery(recordType: "Note"), zoneID: TestServer.zone)
        )
      ),
      (.changedRecords, try WireCoding.encode(ZoneChangesOptions(zoneID: TestServer.zone))),
    ]
    var shown: Set<NSDictionary> = []
    for (endpoint, body) in requests {
      let reply = try object(await person.send(endpoint, body).body)
      shown.insert(try #require((reply?["records"] as? [NSDictionary])?.first))
    }
    #expect(shown.count == 1)
  }
}
