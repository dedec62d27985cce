import CloudKitMirroring
import CloudKitWebServices
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing

@Suite("Predicates as filters of the web service")
struct PredicateFilterWriterTests {
  private func text(_ predicate: NSPredicate) throws -> [String] {
    let filters = try PredicateFilterWriter().filters(for: predicate) ?? []
    return try filters.map { String(decoding: try WireCoding.encode($0), as: UTF8.self) }
  }

  private func filter(_ comparator: String, _ field: String, _ value: String) -> String {
    "{\"comparator\":\"\(comparator)\",\"fieldName\":\"\(field)\",\"fieldValue\":\(value)}"
  }

  private let one = "{\"type\":\"INT64\",\"value\":1}"
  private let x = "{\"type\":\"STRING\",\"value\":\"x\"}"

  @Test("Comparisons of a field with a value are written, in either order")
  func comparisons() throws {
    #expect(try text(NSPredicate(format: "a == %@", "x")) == [filter("EQUALS", "a", x)])
    #expect(try text(NSPredicate(format: "a != 'x'")) == [filter("NOT_EQUALS", "a", x)])
    #expect(try text(NSPredicate(format: "a < 1")) == [filter("LESS_THAN", "a", one)])
    #expect(try text(NSPredicate(format: "1 < a")) == [filter("GREATER_THAN", "a", one)])
    #expect(
      try text(NSPredicate(format: "NOT (a < 1)")) == [filter("GREATER_THAN_OR_EQUALS", "a", one)]
    )
    #expect(
      try text(NSPredicate(format: "a BEGINSWITH 'x'")) == [filter("BEGINS_WITH", "a", x)]
    )
    #expect(
      try text(NSPredicate(format: "a BETWEEN {1, 1}"))
        == [filter("GREATER_THAN_OR_EQUALS", "a", one), filter("LESS_THAN_OR_EQUALS", "a", one)]
    )
  }

  @Test("Membership is written, of a field in a list and of a value in a field")
  func membership() throws {
    let list = "{\"type\":\"STRING_LIST\",\"value\":[\"x\",\"y\"]}"
    #expect(try text(NSPredicate(format: "a IN %@", ["x", "y"])) == [filter("IN", "a", list)])
    #expect(
      try text(NSPredicate(format: "NOT (a IN %@)", ["x", "y"])) == [filter("NOT_IN", "a", list)]
    )
    #expect(try text(NSPredicate(format: "a CONTAINS 'x'")) == [filter("LIST_CONTAINS", "a", x)])
    #expect(try text(NSPredicate(format: "'x' IN a")) == [filter("LIST_CONTAINS", "a", x)])
    #expect(
      try text(NSPredicate(format: "ANY a IN %@", ["x", "y"]))
        == [filter("LIST_CONTAINS_ANY", "a", list)]
    )
  }

  @Test("AND is written as a list of filters; OR and blocks are refused")
  func joining() throws {
    #expect(try text(NSPredicate(format: "a == 'x' AND b == 1")).count == 2)
    #expect(try text(NSPredicate(format: "NOT (a == 'x' OR b == 1)")).count == 2)
    #expect(try text(NSPredicate(value: true)).isEmpty)
    #expect(throws: CKError.self) { try text(NSPredicate(format: "a == 'x' OR b == 1")) }
    #expect(throws: CKError.self) { try text(NSPredicate(format: "a == b")) }
    #expect(throws: CKError.self) { try text(NSPredicate(format: "a LIKE 'x*'")) }
    #expect(throws: CKError.self) { try text(NSPredicate(format: "a BEGINSWITH[c] 'x'")) }
  }

  @Test(
    "Words are searched in all texts together, as in Apple's examples",
    arguments: ["self CONTAINS 'x'", "SELF CONTAINS[cd] 'x'", "allTokens TOKENMATCHES[cdl] 'x'"]
  )
  func words(format: String) throws {
    #expect(
      try text(NSPredicate(format: format))
        == ["{\"comparator\":\"CONTAINS_ALL_TOKENS\",\"fieldValue\":\(x)}"]
    )
  }

  @Test("A token search over all fields is written with the key allTokens")
  func wordsWritten() throws {
    let predicate = NSPredicate(format: "allTokens TOKENMATCHES[cdl] %@", "after party")
    #expect(predicate.description == "allTokens TOKENMATCHES[cdl] \"after party\"")
    #expect(try text(NSPredicate(format: predicate.description)) == text(predicate))
    #expect(throws: CKError.self) { try text(NSPredicate(format: "a TOKENMATCHES 'x'")) }
  }

  @Test(
    "Other comparisons of all texts are refused, and not treated as a search",
    arguments: [
      "NOT (self CONTAINS 'x')", "self == 'x'", "self BEGINSWITH 'x'", "allTokens != 'x'",
    ]
  )
  func refusedWords(format: String) {
    #expect(throws: CKError.self) { try text(NSPredicate(format: format)) }
  }

  @Test("Records, identifiers and system fields are written as references and names")
  func references() throws {
    let recordID = CKRecord.ID(recordName: "r")
    let reference = """
      {"type":"REFERENCE","value":{"action":"NONE","recordName":"r","zoneID":{"zoneName":\
      "_defaultZone"}}}
      """
    #expect(
      try text(NSPredicate(format: "a == %@", recordID)) == [filter("EQUALS", "a", reference)]
    )
    let date = Date(timeIntervalSince1970: 1)
    #expect(
      try text(NSPredicate(format: "modificationDate > %@", date as NSDate)) == [
        """
        {"comparator":"GREATER_THAN","fieldValue":{"type":"TIMESTAMP","value":1000},\
        "systemFieldName":"modifiedTimestamp"}
        """
      ]
    )
  }

  @Test("Locations are searched around another one, as in Apple's example")
  func places() throws {
    let place = CLLocation(latitude: 37.5, longitude: -122)
    let near = NSPredicate(
      format: "distanceToLocation:fromLocation:(location, %@) < %f",
      place,
      500.0
    )
    let filter = try #require(try PredicateFilterWriter().filters(for: near)?.first)
    #expect(filter.comparator == .near)
    #expect(filter.fieldName == "location")
    #expect(filter.distance == 500)
    guard case .location(let around)? = filter.fieldValue?.content else {
      Issue.record("the filter has no place")
      return
    }
    #expect(around.latitude == 37.5)
    #expect(around.longitude == -122)
    #expect(throws: CKError.self) {
      try text(NSPredicate(format: "distanceToLocation:fromLocation:(l, %@) > 1", place))
    }
  }

  @Test("Sort descriptors are written")
  func sorting() throws {
    let sort = try PredicateFilterWriter().sort(
      for: NSSortDescriptor(key: "creationDate", ascending: false)
    )
    #expect(sort == QuerySort(systemFieldName: "createdTimestamp", ascending: false))
    let field = try PredicateFilterWriter().sort(for: NSSortDescriptor(key: "a", ascending: true))
    #expect(field == QuerySort(fieldName: "a", ascending: true))
  }

  @Test("A query finds the filter writer without importing this module")
  func registered() throws {
    let query = CKQuery(recordType: "T", predicate: NSPredicate(format: "a == 'x'"))
    query.sortDescriptors = [NSSortDescriptor(key: "a", ascending: true)]
    let wire = try query.wire()
    #expect(wire.filterBy?.count == 1)
    #expect(wire.sortBy?.count == 1)
  }
}
