import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("records/query", .everyEngine)
struct QueryTests {
  private func world(isLenient: Bool = false) async throws -> Person {
    let person = try await TestServer(isLenient: isLenient).person()
    try await person.makeZone()
    let rows: [(String, String, Int64, Double, [String], Int64)] = [
      ("a", "apple pie", 1, 0.5, ["x"], 1000),
      ("b", "Banana", 2, 1.5, ["x", "y"], 2000),
      ("c", "cherry the red", 3, 2.5, [], 3000),
      ("d", "apple", 3, 3.5, ["z"], 4000),
    ]
    for (name, title, count, weight, tags, date) in rows {
      try await person.save(
        .create,
        name,
        [
          "title": .string(title), "count": .int64(count), "weight": .double(weight),
          "date": .timestamp(TimestampValue(milliseconds: date)),
          // The first save creates the field; an empty list cannot.
          "tags": tags.isEmpty ? .null : .stringList(tags),
          "place": .location(LocationValue(latitude: Double(count), longitude: 0)),
        ]
      )
    }
    return person
  }

  private func filter(
    _ field: String,
    _ comparator: QueryComparator,
    _ value: FieldContent,
    distance: Double? = nil
  ) -> RecordQuery {
    RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(
          comparator: comparator,
          fieldName: field,
          fieldValue: FieldValue(value),
          distance: distance
        )
      ]
    )
  }

  static let cases: [(String, QueryComparator, FieldContent, [String])] = [
    ("title", .equals, .string("apple"), ["d"]),
    ("title", .equals, .string("APPLE"), []),
    ("title", .notEquals, .string("apple"), ["a", "b", "c"]),
    ("count", .equals, .int64(3), ["c", "d"]),
    ("count", .equals, .untagged(.integer(3)), ["c", "d"]),
    ("count", .lessThan, .int64(3), ["a", "b"]),
    ("count", .lessThanOrEquals, .int64(2), ["a", "b"]),
    ("count", .greaterThan, .int64(1), ["b", "c", "d"]),
    ("count", .greaterThanOrEquals, .int64(3), ["c", "d"]),
    ("weight", .greaterThan, .untagged(.integer(2)), ["c", "d"]),
    ("date", .lessThan, .timestamp(2500), ["a", "b"]),
    ("date", .lessThan, .untagged(.integer(2500)), ["a", "b"]),
    ("title", .lessThan, .string("b"), ["a", "b", "d"]),
    ("title", .in, .stringList(["apple", "Banana", "no"]), ["b", "d"]),
    ("title", .in, .untagged(.list([.string("apple")])), ["d"]),
    ("title", .notIn, .stringList(["apple", "Banana"]), ["a", "c"]),
    ("title", .beginsWith, .string("apple"), ["a", "d"]),
    ("title", .beginsWith, .string("b"), []),
    ("title", .notBeginsWith, .string("apple"), ["b", "c"]),
    ("tags", .listContains, .string("x"), ["a", "b"]),
    ("tags", .notListContains, .string("x"), ["c", "d"]),
    ("tags", .listContainsAny, .stringList(["y", "z"]), ["b", "d"]),
    ("tags", .notListContainsAny, .stringList(["y", "z"]), ["a", "c"]),
    ("tags", .listContainsAll, .stringList(["x", "y"]), ["b"]),
    ("tags", .notListContainsAll, .stringList(["x", "y"]), ["a", "c", "d"]),
    ("tags", .listMemberBeginsWith, .string("z"), ["d"]),
    ("tags", .notListMemberBeginsWith, .string("x"), ["c", "d"]),
    ("title", .containsAllTokens, .string("PIE the Ápple"), ["a"]),
    ("title", .containsAnyTokens, .string("banana red"), ["b", "c"]),
  ]

  @Test("Each comparator matches the right records, also once its index exists", arguments: cases)
  func comparators(
    field: String,
    comparator: QueryComparator,
    value: FieldContent,
    names: [String]
  ) async throws {
    let person = try await world()
    let query = filter(field, comparator, value)
    for _ in 0..<2 { #expect(try await person.query(query).names.sorted() == names) }
    // The index is updated by later saves and deletions.
    let records = names.isEmpty ? ["a"] : names
    for name in records { try await person.save(.forceDelete, name) }
    #expect(try await person.query(query).names.isEmpty)
  }

  @Test("An index is updated by changes of a value")
  func indexFollows() async throws {
    let person = try await world()
    let query = filter("count", .equals, .int64(9))
    #expect(try await person.query(query).names.isEmpty)
    try await person.save(.forceUpdate, "a", ["count": .int64(9)])
    try await person.save(.create, "e", ["count": .int64(9)])
    #expect(try await person.query(query).names == ["a", "e"])
    try await person.save(.forceUpdate, "a", ["count": .null])
    #expect(try await person.query(query).names == ["e"])
    try await person.deleteZone()
    try await person.makeZone()
    #expect(try await person.query(query).names.isEmpty)
  }

  @Test("NEAR matches records in the circle, and sorts are by distance")
  func near() async throws {
    let person = try await world()
    let here = LocationValue(latitude: 2.9, longitude: 0)
    var query = filter("place", .near, .location(here), distance: 120_000)
    #expect(try await person.query(query).names == ["b", "c", "d"])
    query.sortBy = [QuerySort(fieldName: "place", relativeLocation: here)]
    #expect(try await person.query(query).names == ["c", "d", "b"])
  }

  @Test("Filters are joined with AND; sorts are applied in order, ties by name")
  func filtersAndSorts() async throws {
    let person = try await world()
    var query = filter("count", .greaterThan, .int64(1))
    query.filterBy?.append(
      QueryFilter(
        comparator: .notEquals,
        fieldName: "title",
        fieldValue: FieldValue(.string("apple"))
      )
    )
    #expect(try await person.query(query).names == ["b", "c"])
    query = filter("count", .greaterThan, .int64(0))
    query.sortBy = [QuerySort(fieldName: "count", ascending: false), QuerySort(fieldName: "title")]
    #expect(try await person.query(query).names == ["d", "c", "b", "a"])
    query.sortBy = [QuerySort(fieldName: "count", ascending: false)]
    #expect(try await person.query(query).names == ["d", "c", "b", "a"])
  }

  @Test("A query is paged, and its marker is invalid for another query", arguments: [1, 2, 3, 4])
  func pages(size: Int) async throws {
    let person = try await world()
    var query = filter("count", .greaterThan, .int64(0))
    query.sortBy = [QuerySort(fieldName: "weight", ascending: false)]
    var names: [String] = []
    var marker: String?
    repeat {
      let page = try await person.query(query, limit: size, marker: marker)
      names += page.names
      marker = page.continuationMarker
    } while marker != nil
    #expect(names == ["d", "c", "b", "a"])
    if size < 4 {
      let marker = try await person.query(query, limit: size).continuationMarker
      let other = filter("count", .greaterThan, .int64(1))
      for (query, marker) in [(other, marker), (query, "x"), (query, "a.b")] {
        await #expect(throws: ErrorDictionary.self) {
          try await person.query(query, marker: marker)
        }
      }
    }
  }

  @Test("A page never has more than 200 records")
  func pageLimit() async throws {
    let person = try await world()
    let batch = (0..<200).map { RecordOperation.make(.create, "n\($0)", ["count": .int64(7)]) }
    _ = try await person.modify(batch)
    try await person.save(.create, "z", ["count": .int64(7)])
    let page = try await person.query(filter("count", .equals, .int64(7)), limit: 1000)
    #expect(page.names.count == 200)
    let rest = try await person.query(
      filter("count", .equals, .int64(7)),
      limit: nil,
      marker: page.continuationMarker
    )
    #expect(rest.names.count <= 1)
  }

  @Test("System fields can be filtered once they are indexed")
  func systemFields() async throws {
    let person = try await world()
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(
          comparator: .in,
          systemFieldName: "recordName",
          fieldValue: FieldValue(.stringList(["a", "d"]))
        )
      ],
      sortBy: [QuerySort(systemFieldName: "modifiedTimestamp", ascending: false)]
    )
    let error = await #expect(throws: ErrorDictionary.self) { try await person.query(query) }
    #expect(error?.reason == "Field 'recordName' is not marked queryable")
    let service = person.server.service
    var schema = try service.schemas.schema(
      container: TestServer.container,
      environment: .development
    )
    let type = try #require(schema.recordTypes.firstIndex { $0.name == "Note" })
    for field in schema.recordTypes[type].fields.indices
    where ["___recordID", "___modTime"].contains(schema.recordTypes[type].fields[field].name) {
      schema.recordTypes[type].fields[field].indexes = [.queryable, .sortable]
    }
    try await service.schemas.setSchema(
      schema,
      container: TestServer.container,
      environment: .development
    )
    person.server.clock.advance(seconds: 1)
    try await person.save(.forceUpdate, "d", ["count": .int64(1)])
    #expect(try await person.query(query).names == ["d", "a"])
    // With the name queryable, a query may have no filter.
    #expect(try await person.query(RecordQuery(recordType: "Note")).names.count == 4)
  }

  @Test("Index rules are as documented, and can be lifted in development")
  func indexRules() async throws {
    let strict = try await world()
    let all = RecordQuery(recordType: "Note")
    let error = await #expect(throws: ErrorDictionary.self) { try await strict.query(all) }
    #expect(error?.reason == "Field 'recordName' is not marked queryable")
    let lenient = try await world(isLenient: true)
    #expect(try await lenient.query(all).names == ["a", "b", "c", "d"])
  }

  @Test("An invalid query is refused with a reason")
  func nonsense() async throws {
    let person = try await world()
    let cases: [(RecordQuery, ServerErrorCode, String)] = [
      (filter("nope", .equals, .int64(1)), .badRequest, "Unknown field 'nope'"),
      (RecordQuery(recordType: "Nope"), .notFound, "Did not find record type: Nope"),
      (RecordQuery(), .badRequest, "missing required field 'recordType'"),
      (
        filter("count", .equals, .string("x")), .badRequest,
        "Invalid value, expected type INT64 for the filter on 'count'"
      ),
      (filter("count", .equals, .null), .badRequest, "the filter on 'count' has no value"),
      (
        filter("count", .listContains, .int64(1)), .badRequest,
        "LIST_CONTAINS does not apply to 'count', which is INT64"
      ),
    ]
    for (query, code, reason) in cases {
      let error = await #expect(throws: ErrorDictionary.self) { try await person.query(query) }
      #expect(error?.serverErrorCode == code)
      #expect(error?.reason == reason)
    }
  }

  @Test("A query searches its own zone, or all of them")
  func zones() async throws {
    let person = try await world()
    try await person.makeZone("other")
    try await person.save(.create, "o", ["count": .int64(3)], zone: ZoneID(zoneName: "other"))
    try await person.save(.create, "p", ["count": .int64(3)], zone: nil)
    let query = filter("count", .equals, .int64(3))
    #expect(try await person.query(query).names == ["c", "d"])
    #expect(try await person.query(query, zone: nil).names == ["p"])
    let wide: QueryRecordsResponse = try await person.call(
      .queryRecords,
      QueryRecordsRequest(query: query, zoneWide: true)
    )
    #expect(wide.names == ["c", "d", "o", "p"])
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.query(query, zone: ZoneID(zoneName: "no"))
    }
    #expect(error?.serverErrorCode == .zoneNotFound)
  }
}
