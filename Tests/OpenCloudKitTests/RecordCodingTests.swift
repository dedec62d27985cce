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

  @Test("A record's archive keeps what its changed keys had before, and that it became a root")
  func ancestor() throws {
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n"),
      system: CKRecord.SystemFields(),
      fields: ["a": .init(.int64(1)), "removed": .init(.string("x"))]
    )
    record["a"] = 2
    record["new"] = 3
    record["removed"] = nil
    _ = CKShare(rootRecord: record)
    let data = try NSKeyedArchiver.archivedData(withRootObject: record, requiringSecureCoding: true)
    let copy = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKRecord.self, from: data)
    )
    #expect(copy.ancestor()["a"] as? Int == 1)
    #expect(copy.ancestor()["removed"] as? String == "x")
    #expect(copy.ancestor()["new"] == nil)
    #expect(copy.changedKeys() == ["a", "new", "removed"])
    #expect(copy.systemFields == record.systemFields)
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

  /// An archive as Apple's CloudKit writes it, from the objects after the first one, which is null.
  private func appleArchive(_ objects: [Any], top: [String: Any]) throws -> Data {
    // References between objects are numbers in a dictionary; only this coder can write them.
    let list: [String: Any] = [
      "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": top,
      "$objects": ["$null"] + objects,
    ]
    return try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
  }

  private func object(_ number: Int) -> [String: Int] { ["CF$UID": number] }

  private func appleClass(_ names: String...) -> [String: Any] {
    ["$classname": names[0], "$classes": names]
  }

  @Test("A change token that Apple's CloudKit archived is read as the text of its bytes")
  func appleToken() throws {
    let bytes = Data([1, 0, 0, 1, 0x63, 0xda, 0xd4, 0x35, 2])
    let data = try appleArchive(
      [
        ["$class": object(4), "ChangeTokenData": object(2)],
        ["$class": object(3), "NS.data": bytes],
        appleClass("NSMutableData", "NSData", "NSObject"),
        appleClass("CKServerChangeToken", "NSObject"),
      ],
      top: ["root": object(1)]
    )
    let token = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKServerChangeToken.self, from: data)
    )
    #expect(token.syncToken == "AQAAAWPa1DUC")
    let copy = try NSKeyedUnarchiver.unarchivedObject(
      ofClass: CKServerChangeToken.self,
      from: NSKeyedArchiver.archivedData(withRootObject: token, requiringSecureCoding: true)
    )
    #expect(copy == token)
  }

  @Test("System fields that Apple's CloudKit archived are read")
  func appleSystemFields() throws {
    let data = try appleArchive(
      [
        "Company",
        ["$class": object(8), "RecordName": object(3), "ZoneID": object(4)],
        "Company.1",
        ["$class": object(7), "ZoneName": object(5), "ownerName": object(6)],
        "Zone",
        "__defaultOwner__",
        appleClass("CKRecordZoneID", "NSObject"),
        appleClass("CKRecordID", "NSObject"),
        ["$class": object(10), "NS.time": 523_319_906.5],
        appleClass("NSDate", "NSObject"),
        "4",
      ],
      top: [
        "RecordType": object(1), "RecordID": object(2), "RecordCtime": object(9),
        "RecordMtime": object(9), "ETag": object(11), "KnownToServer": true, "Permission": 1,
        "ParentReference": object(0), "ShareReference": object(0), "URL": object(0),
      ]
    )
    let coder = try NSKeyedUnarchiver(forReadingFrom: data)
    let record = try #require(CKRecord(coder: coder))
    #expect(record.recordType == "Company")
    #expect(
      record.recordID
        == CKRecord.ID(recordName: "Company.1", zoneID: CKRecordZone.ID(zoneName: "Zone"))
    )
    #expect(record.recordChangeTag == "4")
    #expect(record.creationDate == Date(timeIntervalSinceReferenceDate: 523_319_906.5))
    #expect(record.parent == nil)
    #expect(record.allKeys().isEmpty)
  }

  @Test("System fields of a record with a parent that Apple's CloudKit archived are read")
  func appleParent() throws {
    let data = try appleArchive(
      [
        "Note",
        ["$class": object(8), "RecordName": object(3), "ZoneID": object(4)],
        "n",
        ["$class": object(7), "ZoneName": object(5), "ownerName": object(6)],
        "Zone",
        "__defaultOwner__",
        appleClass("CKRecordZoneID", "NSObject"),
        appleClass("CKRecordID", "NSObject"),
        ["$class": object(10), "RecordID": object(2)],
        appleClass("CKReference", "NSObject"),
      ],
      top: ["RecordType": object(1), "RecordID": object(2), "ParentReference": object(9)]
    )
    let record = try #require(CKRecord(coder: try NSKeyedUnarchiver(forReadingFrom: data)))
    #expect(record.parent?.recordID == record.recordID)
    #expect(record.parent?.action == CKRecord.ReferenceAction.none)
  }

  @Test("A whole record that Apple's CloudKit archived is read with its values and files")
  func appleRecord() throws {
    let data = try appleArchive(
      [
        [
          "$class": object(2), "RecordType": object(3), "RecordID": object(4),
          "ValueStore": object(10), "EncryptedValueStore": object(23), "ParentReference": object(0),
        ],
        appleClass("CKRecord", "NSObject"),
        "Person",
        ["$class": object(9), "RecordName": object(5), "ZoneID": object(6)],
        "p",
        ["$class": object(8), "ZoneName": object(7), "ownerName": object(7)],
        "__defaultOwner__",
        appleClass("CKRecordZoneID", "NSObject"),
        appleClass("CKRecordID", "NSObject"),
        [
          "$class": object(11), "RecordValues": object(12), "OriginalValues": object(21),
          "ChangedKeys": object(19),
        ],
        appleClass("CKRecordValueStore", "NSObject"),
        [
          "$class": object(18), "NS.keys": [object(13), object(14)],
          "NS.objects": [object(15), object(16)],
        ],
        "age",
        "avatar",
        26,
        [
          "$class": object(17), "AssetFileURL": object(25), "AssetUUID": object(0),
          "AssetSize": 3,
        ],
        appleClass("CKAsset", "NSObject"),
        appleClass("NSMutableDictionary", "NSDictionary", "NSObject"),
        ["$class": object(20), "NS.objects": [object(13)]],
        appleClass("NSMutableSet", "NSSet", "NSObject"),
        ["$class": object(18), "NS.keys": [object(13)], "NS.objects": [object(22)]],
        25,
        [
          "$class": object(24), "RecordValues": object(28), "OriginalValues": object(29),
        ],
        appleClass("CKEncryptedRecordValueStore", "CKRecordValueStore", "NSObject"),
        ["$class": object(27), "NS.base": object(0), "NS.relative": object(26)],
        "file:///tmp/avatar.png",
        appleClass("NSURL", "NSObject"),
        ["$class": object(18), "NS.keys": [object(30)], "NS.objects": [object(30)]],
        ["$class": object(18), "NS.keys": [Int](), "NS.objects": [Int]()],
        "secret",
      ],
      top: ["root": object(1)]
    )
    let record = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKRecord.self, from: data)
    )
    #expect(record.recordType == "Person")
    #expect(record["age"] as? Int == 26)
    #expect((record["avatar"] as? CKAsset)?.fileURL?.path == "/tmp/avatar.png")
    #expect(record.encryptedValues["secret"] as? String == "secret")
    #expect(record.changedKeys() == ["age"])
    #expect(record.ancestor()["age"] as? Int == 25)
  }

  @Test("A record whose archive has an unreadable part is not read without it")
  func unreadablePart() throws {
    let data = try appleArchive(
      [
        "Note",
        ["$class": object(8), "RecordName": object(3), "ZoneID": object(4)],
        "n",
        ["$class": object(7), "ZoneName": object(5), "ownerName": object(6)],
        "Zone",
        "__defaultOwner__",
        appleClass("CKRecordZoneID", "NSObject"),
        appleClass("CKRecordID", "NSObject"),
        ["$class": object(10)],
        appleClass("UnknownReference", "NSObject"),
      ],
      top: ["RecordType": object(1), "RecordID": object(2), "ParentReference": object(9)]
    )
    let coder = try NSKeyedUnarchiver(forReadingFrom: data)
    // Foundation's default for a coder that is made so is to stop the process.
    coder.decodingFailurePolicy = .setErrorAndReturn
    #expect(CKRecord(coder: coder) == nil)
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
