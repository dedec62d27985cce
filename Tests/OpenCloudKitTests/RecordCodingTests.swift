import Foundation
import Testing

import OpenCloudKit

@Suite("Records in archives")
struct RecordCodingTests {
  private func sample() -> CKRecord {
    let zoneID = CKRecordZone.ID(zoneName: "zone", ownerName: "_owner")
    var system = CKRecord.SystemFields()
    system.recordChangeTag = "1e"
    system.creationDate = Date(timeIntervalSince1970: 1_700_000_000.25)
    system.modificationDate = Date(timeIntervalSince1970: 1_700_000_001)
    system.creatorUserRecordID = CKRecord.ID(recordName: "_maker")
    system.lastModifiedUserRecordID = CKRecord.ID(recordName: "_changer")
    system.parent = CKRecord.Reference(
      recordID: CKRecord.ID(recordName: "parent", zoneID: zoneID),
      action: .none
    )
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n", zoneID: zoneID),
      system: system,
      fields: ["kept": .init(.string("as fetched"))]
    )
    record["text"] = "x"
    record["list"] = [1.5, 2.5]
    record["when"] = Date(timeIntervalSince1970: 0.123456)
    record["ref"] = CKRecord.Reference(record: record, action: .deleteSelf)
    record["place"] = CLLocation(latitude: 1, longitude: 2)
    record["file"] = CKAsset(fileURL: URL(fileURLWithPath: "/tmp/a"))
    record.encryptedValues["secret"] = Data([9])
    return record
  }

  private func archive(_ body: (NSKeyedArchiver) -> Void) -> Data {
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    body(archiver)
    archiver.finishEncoding()
    return archiver.encodedData
  }

  @Test("An archive of system fields has no values")
  func systemFields() throws {
    let record = sample()
    let data = archive { record.encodeSystemFields(with: $0) }
    let coder = try NSKeyedUnarchiver(forReadingFrom: data)
    coder.requiresSecureCoding = true
    let copy = try #require(CKRecord(coder: coder))
    #expect(copy.recordID == record.recordID)
    #expect(copy.recordType == "Note")
    #expect(copy.systemFields == record.systemFields)
    #expect(copy.allKeys().isEmpty)
    #expect(copy.changedKeys().isEmpty)
  }

  @Test("A whole record's archive keeps its values and changed keys")
  func whole() throws {
    let record = sample()
    let data = try NSKeyedArchiver.archivedData(withRootObject: record, requiringSecureCoding: true)
    let copy = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKRecord.self, from: data)
    )
    #expect(copy.systemFields == record.systemFields)
    #expect(copy.changedKeys() == record.changedKeys())
    #expect(copy.fields.keys.sorted() == record.fields.keys.sorted())
    for (key, field) in record.fields where key != "file" {
      #expect(copy.fields[key] == field)
    }
    #expect((copy["file"] as? CKAsset)?.fileURL?.path == "/tmp/a")
  }

  @Test("An archive that is not a record decodes to nil")
  func foreignArchive() throws {
    let data = archive { $0.encode("x" as NSString, forKey: "RecordType") }
    let coder = try NSKeyedUnarchiver(forReadingFrom: data)
    coder.requiresSecureCoding = true
    #expect(CKRecord(coder: coder) == nil)
  }

  @Test("Zones, identifiers, references, locations and tokens round-trip through archives")
  func smallValues() throws {
    func roundTrip<Value: NSObject & NSSecureCoding>(_ value: Value) throws {
      let data = try NSKeyedArchiver.archivedData(
        withRootObject: value,
        requiringSecureCoding: true
      )
      let copy = try NSKeyedUnarchiver.unarchivedObject(ofClass: Value.self, from: data)
      #expect(copy == value)
    }
    let zone = CKRecordZone(zoneName: "z")
    try roundTrip(zone)
    try roundTrip(zone.zoneID)
    try roundTrip(CKRecord.ID(recordName: "r", zoneID: zone.zoneID))
    try roundTrip(
      CKRecord.Reference(recordID: CKRecord.ID(recordName: "r"), action: .deleteSelf)
    )
    try roundTrip(CLLocation(latitude: 1, longitude: -2))
    try roundTrip(CKServerChangeToken(syncToken: "abc"))
  }

  @Test("A copied record has equal contents and another identity")
  func copying() throws {
    let record = sample()
    let copy = try #require(record.copy() as? CKRecord)
    copy["text"] = "changed"
    #expect(record["text"] as? String == "x")
    #expect(copy.changedKeys() == record.changedKeys())
  }
}
