import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// The pages of a query: markers, concurrent changes, and queries without an index.
@Suite("The pages of a query", .everyEngine)
struct QueryPageTests {
  @Test("A marker is base64, as some clients decode and encode it again")
  func markers() async throws {
    let person = try await QueriedNotes.world()
    let query = RecordQuery(recordType: "Note", sortBy: [QuerySort(fieldName: "title")])
    let marker = try #require(try await person.query(query, limit: 3).continuationMarker)
    let bytes = try #require(Data(base64Encoded: marker))
    #expect(bytes.base64EncodedString() == marker)
    #expect(try await person.query(query, marker: marker).names == ["c"])
    let token = try await person.changes().syncToken
    #expect(token.flatMap { Data(base64Encoded: $0) }?.base64EncodedString() == token)
  }

  @Test("A marker is valid for its query, its reader and its database, with any page options")
  func boundMarkers() async throws {
    let person = try await QueriedNotes.world()
    let query = RecordQuery(recordType: "Note", sortBy: [QuerySort(fieldName: "count")])
    var request = QueryRecordsRequest(query: query, zoneID: TestServer.zone, resultsLimit: 1)
    let first: QueryRecordsResponse = try await person.call(.queryRecords, request)
    request.continuationMarker = first.continuationMarker
    request.resultsLimit = 2
    request.desiredKeys = ["count"]
    request.numbersAsStrings = true
    let next: QueryRecordsResponse = try await person.call(.queryRecords, request)
    #expect(next.names == ["b", "c"])

    var others: [QueryRecordsRequest] = []
    var other = request
    other.query.sortBy = [QuerySort(fieldName: "count", ascending: false)]
    others.append(other)
    other = request
    other.query.filterBy = [
      QueryFilter(comparator: .notEquals, fieldName: "count", fieldValue: FieldValue(.int64(9)))
    ]
    others.append(other)
    other = request
    other.zoneID = nil
    others.append(other)
    for other in others {
      let error = try await person.failure(.queryRecords, other)
      #expect(error.reason == "the continuation marker belongs to another query")
    }
    let eve = try await person.server.person("eve")
    try await eve.makeZone()
    #expect(
      try await eve.failure(.queryRecords, request).reason
        == "the continuation marker belongs to another query"
    )
  }

  @Test("A marker with any character changed is unknown")
  func tamperedMarkers() async throws {
    let person = try await QueriedNotes.world()
    let query = RecordQuery(recordType: "Note")
    let marker = try #require(try await person.query(query, limit: 1).continuationMarker)
    let seed = TestSeed.value
    let dice = Dice(seed: seed)
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=.-_ ")
    for _ in 0..<150 {
      var characters = Array(marker)
      switch dice.below(3) {
      case 0: characters[dice.below(characters.count)] = dice.pick(alphabet)
      case 1: characters.removeLast(1 + dice.below(characters.count - 1))
      default: characters.insert(dice.pick(alphabet), at: dice.below(characters.count))
      }
      let text = String(characters)
      guard text != marker else { continue }
      var request = QueryRecordsRequest(query: query, zoneID: TestServer.zone)
      request.continuationMarker = text
      let response = await person.send(.queryRecords, try WireCoding.encode(request))
      // Base64 has unused bits: a text with the same bytes is the same marker.
      if response.status == 200 {
        #expect(Data(base64Encoded: text) == Data(base64Encoded: marker), "seed \(seed): \(text)")
      } else {
        #expect(response.status == 400, "seed \(seed): \(text)")
      }
    }
  }

  @Test("Pages neither repeat nor miss unchanged records while others are created and deleted")
  func pagesInMotion() async throws {
    let person = try await QueriedNotes.world()
    _ = try await person.modify(
      (0..<40).map { .make(.create, "n\(10 + $0)", ["count": .int64(Int64(100 + $0 / 4))]) }
    )
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(
          comparator: .greaterThan,
          fieldName: "count",
          fieldValue: FieldValue(.int64(50))
        )
      ],
      sortBy: [QuerySort(fieldName: "count")]
    )
    var found: [String] = []
    var marker: String?
    var round = 0
    repeat {
      let page = try await person.query(query, limit: 7, marker: marker)
      found += page.names
      marker = page.continuationMarker
      // The last record of a page is deleted: the next page begins where it was.
      if let last = page.names.last { try await person.save(.forceDelete, last) }
      try await person.save(.create, "new\(round)", ["count": .int64(60)])
      round += 1
    } while marker != nil
    #expect(Set(found).count == found.count)
    #expect(Set(found).isSuperset(of: (0..<40).map { "n\(10 + $0)" }))
  }

  @Test("Without an index a query examines a limited number of records and returns those it found")
  func scanBudget() async throws {
    let person = try await QueriedNotes.world { limits in
      limits.recordsScanned = 10
      limits.recordsSortedInMemory = 5
    }
    _ = try await person.modify(
      (0..<60).map {
        .make(
          .create,
          "n\(100 + $0)",
          ["count": .int64(Int64($0)), "title": .string($0 == 55 ? "rare" : "common")]
        )
      }
    )
    func pages(_ query: RecordQuery) async throws -> [[String]] {
      var pages: [[String]] = []
      var marker: String?
      repeat {
        let page = try await person.query(query, marker: marker)
        pages.append(page.names)
        marker = page.continuationMarker
      } while marker != nil && pages.count < 100
      return pages
    }
    func query(_ comparator: QueryComparator, _ value: String) -> RecordQuery {
      RecordQuery(
        recordType: "Note",
        filterBy: [
          QueryFilter(
            comparator: comparator,
            fieldName: "title",
            fieldValue: FieldValue(.string(value))
          )
        ],
        sortBy: [QuerySort(fieldName: "count")]
      )
    }
    // No index narrows the search: pages are short, some empty, and all records are found.
    let negative = try await pages(query(.notEquals, "common"))
    #expect(negative.count > 5)
    #expect(negative.contains([]))
    #expect(negative.joined().contains("n155"))
    #expect(negative.joined().count == 5)
    // Records that an index finds directly need no scan in the order.
    #expect(try await pages(query(.equals, "rare")) == [["n155"]])
    // Too many to be sorted: the order is scanned, and the filter evaluated for each record.
    let common = try await pages(query(.equals, "common"))
    #expect(common.count > 5)
    #expect(common.joined().elementsEqual((0..<60).filter { $0 != 55 }.map { "n\(100 + $0)" }))
  }

  /// Orders without an index: all of it, and the part of a page.
  private static let unindexedOrders: [(name: String, json: String)] = [
    ("a group larger than the budget", #"[{"fieldName":"title"},{"fieldName":"count"}]"#),
    (
      "groups smaller than the budget, downwards",
      #"[{"fieldName":"at","ascending":false},{"fieldName":"count"}]"#
    ),
    (
      "the farthest first",
      #"[{"fieldName":"place","ascending":false,"relativeLocation":{"latitude":0,"longitude":0}}]"#
    ),
    (
      "the nearest first",
      #"[{"fieldName":"place","relativeLocation":{"latitude":0,"longitude":0}}]"#
    ),
  ]

  @Test(
    "Each order examines a limited number of records per page, and finds every record once",
    arguments: unindexedOrders.map(\.json)
  )
  func orderBudget(sortBy: String) async throws {
    let person = try await QueriedNotes.world { limits in
      limits.recordsScanned = 10
      limits.recordsOrdered = 10
      limits.recordsSortedInMemory = 5
    }
    _ = try await person.modify(
      (0..<60).map { number in
        var fields: [String: FieldContent] = [
          "count": .int64(Int64(number * 7 % 60)), "title": .string("same"),
          "at": .timestamp(TimestampValue(milliseconds: Int64(number / 4))),
          "body": .string(number % 10 == 3 ? "rare" : "x"),
        ]
        // Some on one latitude, some without a location.
        if number % 5 != 0 {
          fields["place"] = .location(
            LocationValue(latitude: 1 + Double(number / 30), longitude: Double(number))
          )
        }
        return .make(.create, "n\(100 + number)", fields)
      }
    )
    for filter in [
      "",
      #","filterBy":{"comparator":"CONTAINS_ALL_TOKENS","fieldName":"body","#
        + #""fieldValue":{"value":"rare"}}"#,
    ] {
      var names: [String] = []
      var marker: String?
      var pages = 0
      repeat {
        let rest =
          #""zoneID":{"zoneName":"notes"},"resultsLimit":7"#
          + (marker.map { #","continuationMarker":"\#($0)""# } ?? "")
        let body = #"{"query":{"recordType":"Note"\#(filter),"sortBy":\#(sortBy)},\#(rest)}"#
        let response = await person.send(.queryRecords, Data(body.utf8))
        try #require(response.status == 200)
        let page = try WireCoding.decode(QueryRecordsResponse.self, from: response.body)
        #expect(page.names.count <= 7)
        names += page.names
        marker = page.continuationMarker
        pages += 1
      } while marker != nil && pages < 100
      let expected =
        filter.isEmpty
        ? ["a", "b", "c", "d"] + (0..<60).map { "n\(100 + $0)" }
        : (0..<60).filter { $0 % 10 == 3 }.map { "n\(100 + $0)" }
      #expect(names.sorted() == expected)
      #expect(pages > 1 || !filter.isEmpty)
      if sortBy.contains(#""at""#), filter.isEmpty {
        // Groups that fit the budget are in the global order.
        let found = names.filter { $0.hasPrefix("n1") }
        #expect(
          found
            == (0..<60).sorted { left, right in
              left / 4 != right / 4 ? left / 4 > right / 4 : left * 7 % 60 < right * 7 % 60
            }.map { "n\(100 + $0)" }
        )
      }
    }
  }

  @Test(
    "A query is sorted by a limited number of fields; a repeated one counts once",
    arguments: [2, 3, 4]
  )
  func sortKeys(count: Int) async throws {
    let person = try await QueriedNotes.world()
    let fields = ["count", "at", "title", "___recordID"].prefix(count)
    let keys = fields.map { #"{"fieldName":"\#($0)"}"# }.joined(separator: ",")
    let found = try await person.answer(#","sortBy":[\#(keys)]"#)
    #expect(
      found == (count > 3 ? ["a query is sorted by at most 3 fields"] : ["a", "b", "c", "d"])
    )
    let same = Array(repeating: #"{"fieldName":"count"}"#, count: 100).joined(separator: ",")
    #expect(try await person.answer(#","sortBy":[\#(same)]"#) == ["a", "b", "c", "d"])
  }

  @Test("The filters of a query have a limited number of values together", arguments: [-1, 0, 1])
  func values(over: Int) async throws {
    let person = try await QueriedNotes.world { $0.valuesPerQuery = 11 }
    func filter(_ count: Int) -> String {
      let values = (0..<count).map(String.init).joined(separator: ",")
      return #"{"comparator":"IN","fieldName":"count","fieldValue":{"value":[\#(values)]}}"#
    }
    let found = try await person.answer(#","filterBy":[\#(filter(5)),\#(filter(6 + over))]"#)
    #expect(
      found
        == (over > 0 ? ["the filters of a query have at most 11 values"] : ["a", "b", "c", "d"])
    )
  }
}
