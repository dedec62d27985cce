import Foundation
import OpenCloudKit
import Testing

/// Code in the form that compiles against Apple's Swift interface of `CKRecord`.
@Suite("Records as apps use them")
struct AppleTypingTests {
  private func record() -> CKRecord {
    CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n", zoneID: CKRecordZone.ID(zoneName: "z"))
    )
  }

  @Test("Numbers cast to any numeric type that can hold them")
  func numbers() {
    let record = record()
    record["i"] = 1
    record["b"] = true
    record["d"] = 2.5
    record["f"] = Float(0.5)
    record["n"] = NSNumber(value: 7)
    #expect(record["i"] as? Int == 1)
    #expect(record["i"] as? Int64 == 1)
    #expect(record["i"] as? Double == 1)
    #expect(record["i"] as? Bool == true)
    #expect((record["i"] as? NSNumber)?.intValue == 1)
    #expect(record["i"] as? String == nil)
    #expect(record["b"] as? Bool == true)
    #expect(record["b"] as? Int == 1)
    #expect(record["d"] as? Double == 2.5)
    #expect(record["d"] as? Int == nil)
    #expect(record["f"] as? Float == 0.5)
    #expect(record["n"] as? Int == 7)
    let typed: Int? = record["i"]
    let other: String? = record["i"]
    #expect(typed == 1)
    #expect(other == nil)
  }

  @Test("Lists cast to typed arrays, an empty one to an array of any type")
  func lists() {
    let record = record()
    let date = Date(timeIntervalSinceReferenceDate: 1)
    let reference = CKRecord.Reference(recordID: record.recordID, action: .none)
    record["s"] = ["a", "b"]
    record["i"] = [1, 2]
    record["d"] = [0.5, 2]
    record["t"] = [date]
    record["b"] = [Data([1])]
    record["r"] = [reference]
    record["l"] = [CLLocation(latitude: 1, longitude: 2)]
    record["e"] = [String]()
    #expect(record["s"] as? [String] == ["a", "b"])
    #expect(record["i"] as? [Int] == [1, 2])
    #expect(record["i"] as? [Int64] == [1, 2])
    #expect(record["d"] as? [Double] == [0.5, 2])
    #expect(record["t"] as? [Date] == [date])
    #expect(record["b"] as? [Data] == [Data([1])])
    #expect((record["r"] as? [CKRecord.Reference])?.first?.recordID == record.recordID)
    #expect((record["l"] as? [CLLocation])?.first?.coordinate.longitude == 2)
    #expect(record["e"] as? [String] == [])
    #expect(record["s"] as? [Int] == nil)
    let typed: [String]? = record["s"]
    let numbers: [Int]? = record["i"]
    let empty: [String]? = record["e"]
    #expect(typed == ["a", "b"])
    #expect(numbers == [1, 2])
    #expect(empty == [])
    #expect((record["s"] as? NSArray)?.count == 2)
  }

  @Test("Foundation's classes can be stored, and Swift's types are read")
  func foundationClasses() {
    let record = record()
    let date = Date(timeIntervalSinceReferenceDate: 2)
    record.setObject(NSString(string: "text"), forKey: "s")
    record.setObject(NSDate(timeIntervalSinceReferenceDate: 2), forKey: "t")
    record.setObject(NSData(data: Data([1, 2])), forKey: "b")
    record.setObject(NSArray(array: [NSString(string: "a")]), forKey: "l")
    record.setValue("v", forKey: "v")
    #expect(record["s"] as? String == "text")
    #expect(record["t"] as? Date == date)
    #expect(record["b"] as? Data == Data([1, 2]))
    #expect(record["l"] as? [String] == ["a"])
    #expect(record.value(forKey: "v") as? String == "v")
    #expect(record.object(forKey: "s") as? NSString == "text")
    #expect(record.object(forKey: "t") as? NSDate == NSDate(timeIntervalSinceReferenceDate: 2))
    #expect((record.object(forKey: "b") as? NSData)?.length == 2)
  }

  @Test("An absent optional removes the value and counts as a change")
  func optionals() {
    let record = record()
    let absent: String? = nil
    let present: String? = "x"
    record["a"] = present
    #expect(record["a"] as? String == "x")
    record["a"] = absent
    record["never"] = absent
    #expect(record["a"] == nil)
    #expect(record.allKeys() == [])
    #expect(Set(record.changedKeys()) == ["a", "never"])
  }

  @Test("An archive of a whole record keeps its changed keys; one of its system fields does not")
  func archives() throws {
    let record = record()
    record["s"] = "text"
    record["l"] = ["a"]
    record["e"] = [String]()
    record.encryptedValues["secret"] = "x"
    let whole = try #require(
      try NSKeyedUnarchiver.unarchivedObject(
        ofClass: CKRecord.self,
        from: try NSKeyedArchiver.archivedData(
          withRootObject: record,
          requiringSecureCoding: true
        )
      )
    )
    #expect(whole["s"] as? String == "text")
    #expect(whole["e"] as? [String] == [])
    #expect(whole.encryptedValues["secret"] as? String == "x")
    #expect(Set(whole.changedKeys()) == ["s", "l", "e", "secret"])

    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    record.encodeSystemFields(with: archiver)
    archiver.finishEncoding()
    let unarchiver = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
    unarchiver.requiresSecureCoding = true
    let bare = try #require(CKRecord(coder: unarchiver))
    unarchiver.finishDecoding()
    #expect(bare.recordID == record.recordID)
    #expect(bare.recordType == "Note")
    #expect(bare.allKeys() == [])
    #expect(bare.changedKeys() == [])
  }

  @Test("Changing a copied record does not change the original")
  func copies() throws {
    let record = record()
    record["s"] = "one"
    let copy = try #require(record.copy() as? CKRecord)
    copy["s"] = "two"
    copy["t"] = 1
    #expect(record["s"] as? String == "one")
    #expect(record["t"] == nil)
    #expect(copy.recordID == record.recordID)
  }
}
