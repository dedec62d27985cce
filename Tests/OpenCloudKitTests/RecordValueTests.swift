import Foundation
import Testing

import OpenCloudKit

@Suite("Values of a record")
struct RecordValueTests {
  @Test("Every value type casts back to the type that was set")
  func everyValueType() throws {
    let record = CKRecord(recordType: "Note")
    let name = "Ada"
    let zoneID = CKRecordZone.ID(zoneName: "zone")
    let references = ["a", "b"].map {
      CKRecord.Reference(recordID: CKRecord.ID(recordName: $0, zoneID: zoneID), action: .none)
    }
    record["number"] = 1 as (any CKRecordValue)
    record["name"] = name
    record["refs"] = references
    record["rating"] = 4.5
    record["flag"] = true
    record["when"] = Date(timeIntervalSince1970: 12)
    record["bytes"] = Data([1, 2, 3])
    record["words"] = ["x", "y"]
    record["numbers"] = [1, 2, 3] as [Int64]
    record["objective"] = "text" as NSString
    record["place"] = CLLocation(latitude: 48.2, longitude: 16.4)
    record["file"] = CKAsset(fileURL: URL(fileURLWithPath: "/nowhere/a"))
    record["mixed"] = NSArray(array: [NSNumber(value: 1), NSString(string: "a")])

    #expect(record["number"] as? Int == 1)
    #expect(record["number"] as? Int64 == 1)
    #expect(record["number"] as? Double == 1)
    #expect(record["number"] as? NSNumber == 1)
    #expect(record["name"] as? String == "Ada")
    #expect(record["rating"] as? Double == 4.5)
    #expect(record["rating"] as? Int == nil)
    #expect(record["flag"] as? Bool == true)
    #expect(record["when"] as? Date == Date(timeIntervalSince1970: 12))
    #expect(record["bytes"] as? Data == Data([1, 2, 3]))
    #expect(record["words"] as? [String] == ["x", "y"])
    #expect(record["numbers"] as? [Int] == [1, 2, 3])
    #expect(record["refs"] as? [CKRecord.Reference] == references)
    #expect(record["objective"] as? String == "text")
    #expect((record["place"] as? CLLocation)?.coordinate.latitude == 48.2)
    #expect((record["file"] as? CKAsset)?.fileURL?.path == "/nowhere/a")
    #expect((record["mixed"] as? NSArray)?.count == 2)
    let typed: Int? = record["number"]
    #expect(typed == 1)
  }

  @Test("Setting nil removes a value and marks the key as changed")
  func removing() {
    let record = CKRecord(recordType: "Note")
    record["a"] = "x"
    record.clearChangedKeys()
    #expect(record.changedKeys().isEmpty)
    record["a"] = nil
    record["b"] = 2
    #expect(record.allKeys() == ["b"])
    #expect(record.changedKeys() == ["a", "b"])
    #expect(record["a"] == nil)
  }

  @Test("Encrypted values share the keys but are read through their own view")
  func encrypted() {
    let record = CKRecord(recordType: "Note")
    record.encryptedValues["secret"] = "s"
    record["plain"] = "p"
    #expect(record["secret"] == nil)
    #expect(record.encryptedValues["secret"] as? String == "s")
    #expect(record.allKeys() == ["plain"])
    #expect(record.encryptedValues.allKeys() == ["secret"])
    #expect(record.changedKeys() == ["plain", "secret"])
    #expect(record.encryptedValues.changedKeys() == ["secret"])
  }

  @Test("A removed or replaced encrypted value is a changed key of the encrypted values")
  func removedEncrypted() {
    let record = CKRecord(recordType: "Note")
    for key in ["kept", "removed", "replaced"] { record.encryptedValues[key] = "s" }
    record["plain"] = "p"
    record.clearChangedKeys()
    record.encryptedValues["removed"] = nil
    record["replaced"] = "now plain"
    record["plain"] = nil
    #expect(record.encryptedValues.changedKeys() == ["removed", "replaced"])
    #expect(record.changedKeys() == ["plain", "removed", "replaced"])
  }

  @Test("allTokens() returns the words of the strings in lower case, without duplicates")
  func tokens() {
    let record = CKRecord(recordType: "Note")
    record["a"] = "Hello, world hello"
    record["b"] = 3
    #expect(record.allTokens() == ["hello", "world"])
  }

  @Test("A record is a sequence of its keys and values, in the order of the keys")
  func sequence() {
    let record = CKRecord(recordType: "Note")
    record["b"] = 2
    record["a"] = 1
    #expect(record.map(\.0) == ["a", "b"])
  }

  @Test("A number beyond 63 bits keeps its bits")
  func largeNumber() {
    let record = CKRecord(recordType: "Note")
    record["n"] = UInt64.max
    #expect(record["n"] as? Int64 == -1)
  }

  @Test("A list within a list can't be stored")
  func nestedList() {
    #expect(RecordValue(NSArray(array: [NSArray()])) == nil)
    #expect(RecordValue(NSArray(array: [NSNull()])) == nil)
    #expect(RecordValue([["a"]]) == nil)
  }

  @Test("Setting a value of an unsupported type stops the process")
  func wrongValue() async {
    await #expect(processExitsWith: .failure) {
      let record = CKRecord(recordType: "Note")
      record["x"] = NSArray(array: [NSNull()])
    }
  }

  @Test("References compare by record and action, identifiers by name and zone")
  func equality() {
    let one = CKRecord.ID(recordName: "a")
    let two = CKRecord.ID(recordName: "a", zoneID: CKRecordZone.ID(zoneName: "_defaultZone"))
    #expect(one == two)
    #expect(Set([one, two]).count == 1)
    #expect(
      CKRecord.Reference(recordID: one, action: .none)
        != CKRecord.Reference(recordID: two, action: .deleteSelf)
    )
    #expect(CKRecord.ID().recordName.count == 36)
  }

  @Test("Key-value coding reads and sets the same values")
  func keyValueCoding() {
    let record = CKRecord(recordType: "Note")
    record.setValue("Ada", forKey: "name")
    record.setValue(3, forKey: "count")
    record.setValue([1, 2], forKey: "list")
    #expect(record.value(forKey: "name") as? String == "Ada")
    #expect(record["count"] as? Int == 3)
    #expect(record.value(forKey: "list") as? [Int] == [1, 2])
    record.setValue(nil, forKey: "name")
    #expect(record.allKeys() == ["count", "list"])
  }
}
