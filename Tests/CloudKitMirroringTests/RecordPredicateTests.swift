import CloudKitMirroring
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing

@Suite("Predicates over records in memory")
struct RecordPredicateTests {
  private let records: [CKRecord]

  init() {
    records = ["b", "a", "c"].enumerated().map { index, text in
      let record = CKRecord(recordType: "Note", recordID: CKRecord.ID(recordName: "note-\(text)"))
      record["text"] = text
      record["rank"] = index
      record["tags"] = [text, "all"]
      return record
    }
  }

  private func texts(_ format: String, _ arguments: any CVarArg...) -> [String?] {
    let predicate = NSPredicate(format: format, argumentArray: arguments)
    return records.filter { predicate.evaluate(with: $0) }.map { $0["text"] as? String }
  }

  @Test("A predicate reads fields, lists and properties of a record")
  func predicates() {
    #expect(texts("text == 'a'") == ["a"])
    #expect(texts("text BEGINSWITH 'b' OR rank > 1") == ["b", "c"])
    #expect(texts("'c' IN tags") == ["c"])
    #expect(texts("ANY tags == 'all'").count == 3)
    #expect(texts("missing == nil").count == 3)
    #expect(texts("recordType == 'Note' AND recordID.recordName ENDSWITH 'a'") == ["a"])
    #expect(texts("creationDate == nil").count == 3)
  }

  @Test("A sort descriptor reads the fields of records")
  func descriptors() {
    func sorted(_ key: String, ascending: Bool) -> [String?] {
      let list = NSArray(array: records)
      let descriptor = NSSortDescriptor(key: key, ascending: ascending)
      return list.sortedArray(using: [descriptor]).map { ($0 as? CKRecord)?["text"] as? String }
    }
    #expect(sorted("text", ascending: true) == ["a", "b", "c"])
    #expect(sorted("rank", ascending: false) == ["c", "a", "b"])
  }

  @Test("Key-value coding reads a record's own properties where no field has the name")
  func properties() {
    let record = records[0]
    #expect(record.value(forKey: "recordID") as? CKRecord.ID == record.recordID)
    #expect(record.value(forKey: "recordType") as? String == "Note")
    #expect(record.value(forKey: "text") as? String == "b")
    #expect(record.value(forKey: "other") == nil)
  }
}
