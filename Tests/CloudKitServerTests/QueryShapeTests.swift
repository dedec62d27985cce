import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// What the body of a query may look like, and what its parts mean.
@Suite("The shapes of a query", .everyEngine)
struct QueryShapeTests {
  private static let schema = """
    DEFINE SCHEMA RECORD TYPE Note (
      "___recordID" REFERENCE QUERYABLE SORTABLE, "___createTime" TIMESTAMP QUERYABLE SORTABLE,
      "___modTime" TIMESTAMP QUERYABLE SORTABLE, "___createdBy" REFERENCE QUERYABLE,
      "___modifiedBy" REFERENCE QUERYABLE, "___etag" STRING QUERYABLE,
      title STRING QUERYABLE SEARCHABLE SORTABLE, body STRING SEARCHABLE,
      count INT64 QUERYABLE SORTABLE, at TIMESTAMP QUERYABLE SORTABLE,
      place LOCATION QUERYABLE SORTABLE, tags LIST<STRING> QUERYABLE, link REFERENCE QUERYABLE,
      secret ENCRYPTED STRING, recordName STRING,
      GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
    """

  private func world(limits: (inout ServiceLimits) -> Void = { _ in }) async throws -> Person {
    let server = try await TestServer(limits: limits)
    try await server.service.importSchema(Self.schema, container: TestServer.container)
    let person = try await server.person()
    try await person.makeZone()
    for (index, name) in ["a", "b", "c", "d"].enumerated() {
      let number = Int64(index)
      try await person.save(
        .create,
        name,
        [
          "title": .string(["The quick fox", "A lazy dog", "Ünïcode", "the of and"][index]),
          "body": .string(["red", "blue fox", "green", "red"][index]),
          "count": .int64(number), "at": .timestamp(number * 1000),
          "place": .location(LocationValue(latitude: Double(number), longitude: 0)),
          "tags": .stringList(["x", "y\(number)"]),
          "link": .reference(ReferenceValue(recordName: "a", action: ReferenceAction.none)),
        ]
      )
      person.server.clock.advance(seconds: 1)
    }
    return person
  }

  /// The names that a body finds, or the reason why it is refused.
  private func answer(
    _ person: Person,
    _ query: String,
    _ rest: String = #""zoneID":{"zoneName":"notes"}"#,
    in scope: DatabaseScope = .private
  ) async throws -> [String] {
    let body = #"{"query":{"recordType":"Note"\#(query)},\#(rest)}"#
    let response = await person.send(.queryRecords, Data(body.utf8), in: scope)
    guard response.status == 200 else {
      return [try WireCoding.decode(ErrorDictionary.self, from: response.body).reason ?? ""]
    }
    return try WireCoding.decode(QueryRecordsResponse.self, from: response.body).names
  }

  private func filtered(_ person: Person, _ filter: String) async throws -> [String] {
    try await answer(person, #","filterBy":[{\#(filter)}]"#)
  }

  @Test("Filters and sorts may be absent, null, empty, a list or one object")
  func oneOrMany() async throws {
    let person = try await world()
    let filter = #"{"comparator":"EQUALS","fieldName":"count","fieldValue":{"value":1}}"#
    let sort = #"{"fieldName":"count","ascending":false}"#
    for (query, names) in [
      ("", ["a", "b", "c", "d"]), (#","filterBy":null,"sortBy":null"#, ["a", "b", "c", "d"]),
      (#","filterBy":[],"sortBy":[]"#, ["a", "b", "c", "d"]),
      (#","filterBy":\#(filter)"#, ["b"]), (#","filterBy":[\#(filter)]"#, ["b"]),
      (#","sortBy":\#(sort)"#, ["d", "c", "b", "a"]),
      (#","sortBy":[\#(sort)]"#, ["d", "c", "b", "a"]),
    ] {
      #expect(try await answer(person, query) == names)
    }
  }

  @Test("Other tools' names of comparators are understood")
  func aliases() async throws {
    let person = try await world()
    for (comparator, value, names) in [
      ("CONTAINS_ANY", #"["y1","y2"]"#, ["b", "c"]),
      ("LIST_NOT_CONTAINS", #""y0""#, ["b", "c", "d"]),
      ("LIST_NOT_CONTAINS_ANY", #"["y0","y1"]"#, ["c", "d"]),
    ] {
      #expect(
        try await filtered(
          person,
          #""comparator":"\#(comparator)","fieldName":"tags","fieldValue":{"value":\#(value)}"#
        ).sorted() == names
      )
    }
    #expect(
      try await filtered(person, #""comparator":"LIKE","fieldName":"tags""#).first?.contains(
        "Unknown comparator 'LIKE'"
      ) == true
    )
  }

  @Test("System fields are found under each of their names, with their own types")
  func systemFields() async throws {
    let person = try await world()
    let user: UserIdentity = try await person.call(.caller, [String: String](), in: .public)
    let name = try #require(user.userRecordName)
    let second = 1_700_000_001_000
    let tag = try #require(try await person.lookup("b").recordChangeTag)
    for (system, schema, value, names) in [
      ("recordName", "___recordID", #"{"recordName":"b"}"#, ["b"]),
      ("recordName", "___recordID", #""b""#, ["b"]),
      ("createdTimestamp", "___createTime", "\(second)", ["b"]),
      ("modifiedTimestamp", "___modTime", "\(second)", ["b"]),
      (
        "createdUserRecordName", "___createdBy", #"{"recordName":"\#(name)"}"#,
        ["a", "b", "c", "d"]
      ),
      ("modifiedUserRecordName", "___modifiedBy", #""\#(name)""#, ["a", "b", "c", "d"]),
      ("createdUserRecordName", "___createdBy", #""__defaultOwner__""#, ["a", "b", "c", "d"]),
      ("createdUserRecordName", "___createdBy", #""_other""#, []),
      ("recordChangeTag", "___etag", #""\#(tag)""#, ["b"]),
    ] {
      for field in [
        #""systemFieldName":"\#(system)""#, #""systemFieldName":"\#(schema)""#,
        #""fieldName":"\#(schema)""#,
      ] {
        #expect(
          try await filtered(
            person,
            #""comparator":"EQUALS",\#(field),"fieldValue":{"value":\#(value)}"#
          ).sorted() == names
        )
      }
    }
    // An app's own field of that name comes first.
    #expect(
      try await filtered(
        person,
        #""comparator":"EQUALS","fieldName":"recordName","fieldValue":{"value":"b"}"#
      ) == ["Field 'recordName' is not marked queryable"]
    )
    #expect(
      try await filtered(
        person,
        #""comparator":"EQUALS","fieldName":"createdTimestamp","fieldValue":{"value":\#(second)}"#
      ) == ["b"]
    )
    #expect(
      try await answer(
        person,
        #","sortBy":{"systemFieldName":"createdTimestamp","ascending":false}"#
      )
        == ["d", "c", "b", "a"]
    )
    #expect(
      try await filtered(person, #""comparator":"EQUALS","systemFieldName":"nope""#)
        == ["Unknown field 'nope'"]
    )
  }

  @Test("A record's parent is found by its name")
  func parents() async throws {
    let person = try await world()
    let child = RecordOperation.make(.create, "child", ["count": .int64(9)], parent: "a")
    _ = try await person.modify([child])[0].get()
    for value in [#"{"recordName":"a"}"#, #""a""#] {
      #expect(
        try await filtered(
          person,
          #""comparator":"EQUALS","systemFieldName":"parent","fieldValue":{"value":\#(value)}"#
        ) == ["child"]
      )
    }
  }

  @Test("Words are found without case, marks and stop words, in one field or in all")
  func tokens() async throws {
    let person = try await world()
    for (comparator, field, text, names) in [
      ("CONTAINS_ALL_TOKENS", "title", "FOX quick", ["a"]),
      ("CONTAINS_ALL_TOKENS", "title", "the fox", ["a"]),
      ("CONTAINS_ALL_TOKENS", "title", "unicode", ["c"]),
      ("CONTAINS_ANY_TOKENS", "title", "dog, fox!", ["a", "b"]),
      ("CONTAINS_ALL_TOKENS", nil, "red fox", ["a"]),
      ("CONTAINS_ANY_TOKENS", nil, "fox", ["a", "b"]),
      ("CONTAINS_ALL_TOKENS", "body", "fo", []),
      // Nothing but stop words finds nothing, and they are not kept of a text either.
      ("CONTAINS_ALL_TOKENS", "title", "the of and", []),
      ("CONTAINS_ANY_TOKENS", "title", "the", []),
      (
        "CONTAINS_ALL_TOKENS", "count", "1",
        ["CONTAINS_ALL_TOKENS does not apply to 'count', which is INT64"]
      ),
    ] as [(String, String?, String, [String])] {
      let name = field.map { #","fieldName":"\#($0)""# } ?? ""
      #expect(
        try await filtered(
          person,
          #""comparator":"\#(comparator)"\#(name),"fieldValue":{"value":"\#(text)","type":"STRING"}"#
        ).sorted() == names
      )
    }
  }

  @Test("A circle and an order by distance take a place with a tag, without, or bare")
  func places() async throws {
    let person = try await world()
    let place = #"{"latitude":3,"longitude":0}"#
    for value in [#"{"value":\#(place)}"#, #"{"value":\#(place),"type":"LOCATION"}"#] {
      // The native predicate on a distance comes as LESS_THAN from some clients.
      for comparator in ["NEAR", "LESS_THAN", "LESS_THAN_OR_EQUALS"] {
        #expect(
          try await filtered(
            person,
            #""comparator":"\#(comparator)","fieldName":"place","fieldValue":\#(value),"distance":120000"#
          ).sorted() == ["c", "d"]
        )
      }
    }
    for location in [place, #"{"value":\#(place)}"#, #"{"type":"LOCATION","value":\#(place)}"#] {
      #expect(
        try await answer(
          person,
          #","sortBy":[{"fieldName":"place","relativeLocation":\#(location)}]"#
        ) == ["d", "c", "b", "a"]
      )
    }
    for filter in [
      #""comparator":"NEAR","fieldName":"place","fieldValue":{"value":\#(place)}"#,
      #""comparator":"NEAR","fieldName":"place","fieldValue":{"value":\#(place)},"distance":-1"#,
      #""comparator":"NEAR","fieldName":"count","fieldValue":{"value":\#(place)},"distance":1"#,
      #""comparator":"NEAR","fieldName":"place","fieldValue":{"value":1},"distance":1"#,
      #""comparator":"LESS_THAN","fieldName":"place","fieldValue":{"value":\#(place)}"#,
    ] {
      let found = try await filtered(person, filter)
      #expect(found.count == 1 && found[0].count > 1, "\(filter)")
    }
    for sort in [#"{"fieldName":"place"}"#, #"{"fieldName":"count","relativeLocation":\#(place)}"#]
    {
      let found = try await answer(person, #","sortBy":\#(sort)"#)
      #expect(found.count == 1 && found[0].contains("location"))
    }
  }

  @Test("Encrypted fields are refused in filters, and mean nothing in an order")
  func encrypted() async throws {
    let person = try await world()
    for comparator in ["EQUALS", "BEGINS_WITH", "CONTAINS_ALL_TOKENS", "IN"] {
      #expect(
        try await filtered(
          person,
          #""comparator":"\#(comparator)","fieldName":"secret","fieldValue":{"value":"x"}"#
        ) == [
          "Field 'secret' has a value type of ENCRYPTED_STRING and cannot be queried using filter "
            + "type \(comparator)"
        ]
      )
    }
    #expect(
      try await answer(person, #","sortBy":[{"fieldName":"secret"}]"#) == ["a", "b", "c", "d"]
    )
  }

  @Test(
    "A value that does not fit the field is refused",
    arguments: [
      ("count", "EQUALS", #""x""#, "INT64"), ("count", "EQUALS", "1.5", "INT64"),
      ("count", "IN", "1", "INT64_LIST"), ("count", "EQUALS", "[1]", "INT64"),
      ("title", "EQUALS", "1", "STRING"), ("at", "LESS_THAN", "1.5", "TIMESTAMP"),
      ("tags", "LIST_CONTAINS", "1", "STRING"),
      ("tags", "LIST_CONTAINS_ANY", #""x""#, "STRING_LIST"),
      ("link", "EQUALS", "1", "REFERENCE"), ("place", "EQUALS", "1", "LOCATION"),
    ]
  )
  func operands(field: String, comparator: String, value: String, type: String) async throws {
    let person = try await world()
    #expect(
      try await filtered(
        person,
        #""comparator":"\#(comparator)","fieldName":"\#(field)","fieldValue":{"value":\#(value)}"#
      ) == ["Invalid value, expected type \(type) for the filter on '\(field)'"]
    )
  }

  @Test("zoneWide means all zones of a private database and nothing in the public one")
  func zoneWide() async throws {
    let person = try await world()
    try await person.save(.create, "z", ["count": .int64(1)], zone: nil)
    try await person.save(.create, "p", ["count": .int64(1)], in: .public, zone: nil)
    let query = #","filterBy":{"comparator":"EQUALS","fieldName":"count","fieldValue":{"value":1}}"#
    #expect(try await answer(person, query, #""zoneWide":true"#) == ["b", "z"])
    #expect(try await answer(person, query, #""zoneWide":false"#) == ["z"])
    #expect(try await answer(person, query, #""zoneWide":null"#) == ["z"])
    #expect(
      try await answer(person, query, #""zoneWide":true,"zoneID":{"zoneName":"notes"}"#) == ["b"]
    )
    for rest in [#""zoneWide":true"#, #""zoneWide":true,"zoneID":{"zoneName":"_defaultZone"}"#] {
      #expect(try await answer(person, query, rest, in: .public) == ["p"])
    }
  }

  @Test("resultsLimit is bounded; keys and numbers come as they are wanted")
  func shapes() async throws {
    let person = try await world()
    let zone = #""zoneID":{"zoneName":"notes"}"#
    for (limit, count) in [("1", 1), ("4", 4), ("1000", 4), ("0", 4), ("null", 4)] {
      #expect(try await answer(person, "", #""resultsLimit":\#(limit),\#(zone)"#).count == count)
    }
    #expect(
      try await answer(person, "", #""resultsLimit":-1,\#(zone)"#)
        == ["resultsLimit must not be negative"]
    )
    let body = #"""
      {"query":{"recordType":"Note"},\#(zone),"resultsLimit":1,"desiredKeys":["count"],
      "numbersAsStrings":true}
      """#
    let text = String(
      decoding: await person.send(.queryRecords, Data(body.utf8)).body,
      as: UTF8.self
    )
    #expect(text.contains(#""fields":{"count":{"type":"INT64","value":"0"}}"#))
  }

  @Test("A query has so many filters, sorts and values, and no more", arguments: [-1, 0, 1])
  func limits(over: Int) async throws {
    let person = try await world { limits in
      limits.clausesPerQuery = 5
      limits.valuesPerFilter = 7
    }
    let filter = #"{"comparator":"EQUALS","fieldName":"count","fieldValue":{"value":1}}"#
    let filters = Array(repeating: filter, count: 5 + over).joined(separator: ",")
    let sorts = Array(repeating: #"{"fieldName":"count"}"#, count: 5 + over).joined(separator: ",")
    let values = (0..<(7 + over)).map(String.init).joined(separator: ",")
    let fails = over > 0
    for (query, names) in [
      (#","filterBy":[\#(filters)]"#, fails ? ["a query has at most 5 filters and sorts"] : ["b"]),
      (
        #","sortBy":[\#(sorts)]"#,
        fails ? ["a query has at most 5 filters and sorts"] : ["a", "b", "c", "d"]
      ),
      (
        #","filterBy":{"comparator":"IN","fieldName":"count","fieldValue":{"value":[\#(values)]}}"#,
        fails ? ["a filter has at most 7 values"] : ["a", "b", "c", "d"]
      ),
    ] {
      #expect(try await answer(person, query) == names)
    }
  }

  // MARK: Markers

  @Test("A marker is base64, as some clients decode it and encode it again")
  func markers() async throws {
    let person = try await world()
    let query = RecordQuery(recordType: "Note", sortBy: [QuerySort(fieldName: "title")])
    let marker = try #require(try await person.query(query, limit: 3).continuationMarker)
    let bytes = try #require(Data(base64Encoded: marker))
    #expect(bytes.base64EncodedString() == marker)
    #expect(try await person.query(query, marker: marker).names == ["c"])
    let token = try await person.changes().syncToken
    #expect(token.flatMap { Data(base64Encoded: $0) }?.base64EncodedString() == token)
  }

  @Test("A marker serves its query, its reader and its database, whatever the shape of the page")
  func boundMarkers() async throws {
    let person = try await world()
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
    let person = try await world()
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
      // Base64 has spare bits: a text of the same bytes is the same marker.
      if response.status == 200 {
        #expect(Data(base64Encoded: text) == Data(base64Encoded: marker), "seed \(seed): \(text)")
      } else {
        #expect(response.status == 400, "seed \(seed): \(text)")
      }
    }
  }

  @Test("Pages neither repeat nor miss what stays, while records come and go")
  func pagesInMotion() async throws {
    let person = try await world()
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
      // The last of a page goes: the next page begins where it was.
      if let last = page.names.last { try await person.save(.forceDelete, last) }
      try await person.save(.create, "new\(round)", ["count": .int64(60)])
      round += 1
    } while marker != nil
    #expect(Set(found).count == found.count)
    #expect(Set(found).isSuperset(of: (0..<40).map { "n\(10 + $0)" }))
  }

  @Test("Where no index helps a query looks at so many records, and answers with what it has")
  func scanBudget() async throws {
    let person = try await world { limits in
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
    // Nothing narrows what is not wanted: pages are short, some empty, and all is found.
    let negative = try await pages(query(.notEquals, "common"))
    #expect(negative.count > 5)
    #expect(negative.contains([]))
    #expect(negative.joined().contains("n155"))
    #expect(negative.joined().count == 5)
    // What an index finds at once needs no walk along the order.
    #expect(try await pages(query(.equals, "rare")) == [["n155"]])
    // Too many to be put in order: the order is walked, and the filter judged on the way.
    let common = try await pages(query(.equals, "common"))
    #expect(common.count > 5)
    #expect(common.joined().elementsEqual((0..<60).filter { $0 != 55 }.map { "n\(100 + $0)" }))
  }

  // MARK: Fuzz

  @Test("No combination of comparator, field and value makes the server fail")
  func combinations() async throws {
    let person = try await world()
    let seed = TestSeed.value
    let dice = Dice(seed: seed)
    let fields = [
      "title", "body", "count", "at", "place", "tags", "link", "secret", "recordName", "nope",
      "___recordID", "___share", "___parent", "___nope", "",
    ]
    let values = [
      "null", "1", "-1.5", "1e400", #""x""#, #""""#, "true", "[]", "[1,2]", #"["a",null]"#, "[[1]]",
      "{}", #"{"latitude":1,"longitude":2}"#, #"{"latitude":91,"longitude":1e9}"#,
      #"{"recordName":"a"}"#, #"{"fileChecksum":"x"}"#, #""\u0000\ud83d\ude00""#,
    ]
    let tags = [
      "", "STRING", "INT64", "LOCATION", "STRING_LIST", "UNKNOWN_LIST", "NOPE", "ASSETID",
    ]
    for _ in 0..<400 {
      let comparator = dice.pick(QueryComparator.allCases.map(\.rawValue) + ["", "LIKE"])
      let tag = dice.pick(tags)
      var filter = #"{"comparator":"\#(comparator)""#
      if dice.below(8) > 0 {
        let key = dice.pick(["fieldName", "systemFieldName"])
        filter += #","\#(key)":"\#(dice.pick(fields))""#
      }
      if dice.below(8) > 0 {
        filter += #","fieldValue":{"value":\#(dice.pick(values))"#
        filter += tag.isEmpty ? "}" : #","type":"\#(tag)"}"#
      }
      if dice.below(2) == 0 { filter += #","distance":\#(dice.pick(["0", "-1", "1e300", "5"]))"# }
      filter += "}"
      let sort =
        #"{"fieldName":"\#(dice.pick(fields))","relativeLocation":\#(dice.pick(values))}"#
      let body = #"""
        {"query":{"recordType":"Note","filterBy":[\#(filter)]\#
        \#(dice.below(3) == 0 ? #","sortBy":\#(sort)"# : "")},"zoneID":{"zoneName":"notes"}}
        """#
      let response = await person.send(.queryRecords, Data(body.utf8))
      #expect(response.status < 500, "seed \(seed): \(body)")
    }
  }
}
