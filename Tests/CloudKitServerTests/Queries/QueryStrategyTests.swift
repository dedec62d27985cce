import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The next page of a query walks what the first page walked, although counts have changed.
@Suite("The strategy of a query's pages", .everyEngine)
struct QueryStrategyTests {
  private static let lists = (0..<30).map { RecordOperation.make(.create, name($0), both) }
  private static let both: [String: FieldContent] = [
    "tags": .stringList(["pp", "qq"]), "body": .string("pp qq"),
  ]

  private static func name(_ number: Int) -> String { "r\(10 + number)" }

  /// Thirty records with both words, two with one of them and one with the other.
  private func world(_ more: String, _ fewer: String) async throws -> Person {
    let person = try await QueriedNotes.world()
    var operations = Self.lists
    for (name, word) in [("x1", more), ("x2", more), ("y1", fewer)] {
      operations.append(
        .make(.create, name, ["tags": .stringList([word]), "body": .string(word)])
      )
    }
    for item in try await person.modify(operations) { _ = try item.get() }
    return person
  }

  private func filter(_ comparator: QueryComparator, _ word: String) -> QueryFilter {
    QueryFilter(
      comparator: comparator,
      fieldName: comparator == .listContains ? "tags" : "body",
      fieldValue: FieldValue(.string(word))
    )
  }

  @Test(
    "Records that another filter finds may be deleted between two pages",
    arguments: [QueryComparator.listContains, .containsAllTokens],
    [["pp", "qq"], ["qq", "pp"]]
  )
  func counts(comparator: QueryComparator, words: [String]) async throws {
    // The first page walks the filter with fewer entries, the lower word or the higher one.
    let person = try await world(words[1], words[0])
    for order in [words, words.reversed()] {
      let query = RecordQuery(
        recordType: "Note",
        filterBy: order.map { filter(comparator, $0) }
      )
      let first = try await person.query(query, limit: 10)
      #expect(first.names == (0..<10).map(Self.name))
      for name in ["x1", "x2"] { try await person.save(.forceDelete, name) }
      var found = first.names
      var marker = first.continuationMarker
      while let next = marker {
        let page = try await person.query(query, limit: 10, marker: next)
        found += page.names
        marker = page.continuationMarker
      }
      #expect(found == (0..<30).map(Self.name))
      for name in ["x1", "x2"] {
        try await person.save(
          .create,
          name,
          ["tags": .stringList([words[1]]), "body": .string(words[1])]
        )
      }
    }
  }

  @Test("Each page may delete what it returned: the rest is found")
  func deletion() async throws {
    let person = try await world("pp", "qq")
    let query = RecordQuery(
      recordType: "Note",
      filterBy: ["qq", "pp"].map { filter(.listContains, $0) }
    )
    var marker: String?
    var deleted: [String] = []
    repeat {
      let page = try await person.query(query, limit: 4, marker: marker)
      marker = page.continuationMarker
      for name in page.names { try await person.save(.forceDelete, name) }
      deleted += page.names
    } while marker != nil
    #expect(deleted == (0..<30).map(Self.name))
  }

  @Test("An order by distance is walked outward to its end, although few records match at last")
  func outward() async throws {
    let person = try await QueriedNotes.world { limits in
      limits.recordsOrdered = 10
      limits.recordsSortedInMemory = 20
    }
    for name in ["a", "b", "c", "d"] { try await person.save(.forceDelete, name) }
    let operations = (0..<60).map { number in
      RecordOperation.make(
        .create,
        "n\(100 + number)",
        [
          "tags": .stringList(["all"]),
          "place": .location(LocationValue(latitude: Double(59 - number) / 10, longitude: 0)),
        ]
      )
    }
    for item in try await person.modify(operations) { _ = try item.get() }
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(
          comparator: .listContains,
          fieldName: "tags",
          fieldValue: FieldValue(.string("all"))
        )
      ],
      sortBy: [
        QuerySort(
          fieldName: "place",
          relativeLocation: LocationValue(latitude: 0, longitude: 0)
        )
      ]
    )
    var found: [String] = []
    var marker: String?
    repeat {
      let page = try await person.query(query, limit: 4, marker: marker)
      marker = page.continuationMarker
      found += page.names
      // What was returned is deleted: soon no more than 20 records match.
      for name in page.names { try await person.save(.forceDelete, name) }
    } while marker != nil
    #expect(found.count == 60)
    #expect(Set(found).count == 60)
  }

  // MARK: Markers of former builds

  /// The marker as a former build sealed it: without a strategy.
  private func former(_ marker: String, _ person: Person) throws -> String {
    let signer = person.server.service.signer
    var sealed = try #require(signer.open(marker, as: SealedMarker.self, for: .continuation))
    sealed.marker.strategy = nil
    return try signer.seal(sealed, for: .continuation)
  }

  @Test("A marker of a former build is continued in the range of its position")
  func formerMarkers() async throws {
    for words in [["pp", "qq"], ["qq", "pp"]] {
      let person = try await world(words[1], words[0])
      let query = RecordQuery(
        recordType: "Note",
        filterBy: words.map { filter(.listContains, $0) }
      )
      let first = try await person.query(query, limit: 10)
      for name in ["x1", "x2"] { try await person.save(.forceDelete, name) }
      let marker = try former(try #require(first.continuationMarker), person)
      let rest = try await person.query(query, limit: 50, marker: marker)
      #expect(first.names + rest.names == (0..<30).map(Self.name))
    }
  }

  @Test("A marker of a former build with two possible filters is refused, not continued wrongly")
  func ambiguousMarkers() async throws {
    let person = try await world("pp", "qq")
    let prefix = QueryFilter(
      comparator: .listMemberBeginsWith,
      fieldName: "tags",
      fieldValue: FieldValue(.string("p"))
    )
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [filter(.listContains, "pp"), prefix]
    )
    let first = try await person.query(query, limit: 10)
    let marker = try #require(first.continuationMarker)
    #expect(try await person.query(query, limit: 50, marker: marker).names.count == 22)
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.query(query, limit: 50, marker: try former(marker, person))
    }
    #expect(error?.serverErrorCode == .badRequest)
  }

  @Test("A former marker of overlapping ranges of a single value is continued in either")
  func formerRanges() async throws {
    let person = try await QueriedNotes.world()
    func bound(_ comparator: QueryComparator, _ number: Int64) -> QueryFilter {
      QueryFilter(
        comparator: comparator,
        fieldName: "count",
        fieldValue: FieldValue(.int64(number))
      )
    }
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [bound(.greaterThan, -1), bound(.lessThan, 3)]
    )
    let first = try await person.query(query, limit: 1)
    let marker = try former(try #require(first.continuationMarker), person)
    #expect(first.names + (try await person.query(query, marker: marker).names) == ["a", "b", "c"])
  }
}
