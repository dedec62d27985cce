import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// The valid forms of a query's body, and their meaning.
@Suite("Query formats", .everyEngine)
struct QueryShapeTests {
  @Test("Filters and sorts may be absent, null, empty, a list or one object")
  func oneOrMany() async throws {
    let person = try await QueriedNotes.world()
    let filter = #"{"comparator":"EQUALS","fieldName":"count","fieldValue":{"value":1}}"#
    let sort = #"{"fieldName":"count","ascending":false}"#
    for (query, names) in [
      ("", ["a", "b", "c", "d"]), (#","filterBy":null,"sortBy":null"#, ["a", "b", "c", "d"]),
      (#","filterBy":[],"sortBy":[]"#, ["a", "b", "c", "d"]),
      (#","filterBy":\#(filter)"#, ["b"]), (#","filterBy":[\#(filter)]"#, ["b"]),
      (#","sortBy":\#(sort)"#, ["d", "c", "b", "a"]),
      (#","sortBy":[\#(sort)]"#, ["d", "c", "b", "a"]),
    ] {
      #expect(try await person.answer(query) == names)
    }
  }

  @Test("Other tools' names of comparators are accepted")
  func aliases() async throws {
    let person = try await QueriedNotes.world()
    for (comparator, value, names) in [
      ("CONTAINS_ANY", #"["y1","y2"]"#, ["b", "c"]),
      ("LIST_NOT_CONTAINS", #""y0""#, ["b", "c", "d"]),
      ("LIST_NOT_CONTAINS_ANY", #"["y0","y1"]"#, ["c", "d"]),
    ] {
      #expect(
        try await person.filtered(
          #""comparator":"\#(comparator)","fieldName":"tags","fieldValue":{"value":\#(value)}"#
        ).sorted() == names
      )
    }
    #expect(
      try await person.filtered(#""comparator":"LIKE","fieldName":"tags""#).first?.contains(
        "Unknown comparator 'LIKE'"
      ) == true
    )
  }

  @Test("System fields are found under each of their names, with their own types")
  func systemFields() async throws {
    let person = try await QueriedNotes.world()
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
          try await person.filtered(
            #""comparator":"EQUALS",\#(field),"fieldValue":{"value":\#(value)}"#
          ).sorted() == names
        )
      }
    }
    // An app's own field of that name takes precedence.
    #expect(
      try await person.filtered(
        #""comparator":"EQUALS","fieldName":"recordName","fieldValue":{"value":"b"}"#
      ) == ["Field 'recordName' is not marked queryable"]
    )
    #expect(
      try await person.filtered(
        #""comparator":"EQUALS","fieldName":"createdTimestamp","fieldValue":{"value":\#(second)}"#
      ) == ["b"]
    )
    #expect(
      try await person.answer(
        #","sortBy":{"systemFieldName":"createdTimestamp","ascending":false}"#
      )
        == ["d", "c", "b", "a"]
    )
    #expect(
      try await person.filtered(#""comparator":"EQUALS","systemFieldName":"nope""#)
        == ["Unknown field 'nope'"]
    )
  }

  @Test("A record's parent is found by its name")
  func parents() async throws {
    let person = try await QueriedNotes.world()
    let child = RecordOperation.make(.create, "child", ["count": .int64(9)], parent: "a")
    _ = try await person.modify([child])[0].get()
    for value in [#"{"recordName":"a"}"#, #""a""#] {
      #expect(
        try await person.filtered(
          #""comparator":"EQUALS","systemFieldName":"parent","fieldValue":{"value":\#(value)}"#
        ) == ["child"]
      )
    }
  }

  @Test("Words are matched without case, marks and stop words, in one field or in all")
  func tokens() async throws {
    let person = try await QueriedNotes.world()
    for (comparator, field, text, names) in [
      ("CONTAINS_ALL_TOKENS", "title", "FOX quick", ["a"]),
      ("CONTAINS_ALL_TOKENS", "title", "the fox", ["a"]),
      ("CONTAINS_ALL_TOKENS", "title", "unicode", ["c"]),
      ("CONTAINS_ANY_TOKENS", "title", "dog, fox!", ["a", "b"]),
      ("CONTAINS_ALL_TOKENS", nil, "red fox", ["a"]),
      ("CONTAINS_ANY_TOKENS", nil, "fox", ["a", "b"]),
      ("CONTAINS_ALL_TOKENS", "body", "fo", []),
      // Stop words alone match nothing, and they are not indexed.
      ("CONTAINS_ALL_TOKENS", "title", "the of and", []),
      ("CONTAINS_ANY_TOKENS", "title", "the", []),
      (
        "CONTAINS_ALL_TOKENS", "count", "1",
        ["CONTAINS_ALL_TOKENS does not apply to 'count', which is INT64"]
      ),
    ] as [(String, String?, String, [String])] {
      let name = field.map { #","fieldName":"\#($0)""# } ?? ""
      #expect(
        try await person.filtered(
          #""comparator":"\#(comparator)"\#(name),"fieldValue":{"value":"\#(text)","type":"STRING"}"#
        ).sorted() == names
      )
    }
  }

  @Test("A circle and an order by distance accept a location with a type, without, or bare")
  func places() async throws {
    let person = try await QueriedNotes.world()
    let place = #"{"latitude":3,"longitude":0}"#
    for value in [#"{"value":\#(place)}"#, #"{"value":\#(place),"type":"LOCATION"}"#] {
      // Some clients send the native distance predicate as LESS_THAN.
      for comparator in ["NEAR", "LESS_THAN", "LESS_THAN_OR_EQUALS"] {
        #expect(
          try await person.filtered(
            #""comparator":"\#(comparator)","fieldName":"place","fieldValue":\#(value),"distance":120000"#
          ).sorted() == ["c", "d"]
        )
      }
    }
    for location in [place, #"{"value":\#(place)}"#, #"{"type":"LOCATION","value":\#(place)}"#] {
      #expect(
        try await person.answer(
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
      let found = try await person.filtered(filter)
      #expect(found.count == 1 && found[0].count > 1, "\(filter)")
    }
    for sort in [#"{"fieldName":"place"}"#, #"{"fieldName":"count","relativeLocation":\#(place)}"#]
    {
      let found = try await person.answer(#","sortBy":\#(sort)"#)
      #expect(found.count == 1 && found[0].contains("location"))
    }
  }

  @Test("Encrypted fields are refused in filters, and ignored in an order")
  func encrypted() async throws {
    let person = try await QueriedNotes.world()
    for comparator in ["EQUALS", "BEGINS_WITH", "CONTAINS_ALL_TOKENS", "IN"] {
      #expect(
        try await person.filtered(
          #""comparator":"\#(comparator)","fieldName":"secret","fieldValue":{"value":"x"}"#
        ) == [
          "Field 'secret' has a value type of ENCRYPTED_STRING and cannot be queried using filter "
            + "type \(comparator)"
        ]
      )
    }
    #expect(
      try await person.answer(#","sortBy":[{"fieldName":"secret"}]"#) == ["a", "b", "c", "d"]
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
    let person = try await QueriedNotes.world()
    #expect(
      try await person.filtered(
        #""comparator":"\#(comparator)","fieldName":"\#(field)","fieldValue":{"value":\#(value)}"#
      ) == ["Invalid value, expected type \(type) for the filter on '\(field)'"]
    )
  }

  @Test("zoneWide means all zones of a private database and nothing in the public one")
  func zoneWide() async throws {
    let person = try await QueriedNotes.world()
    try await person.save(.create, "z", ["count": .int64(1)], zone: nil)
    try await person.save(.create, "p", ["count": .int64(1)], in: .public, zone: nil)
    let query = #","filterBy":{"comparator":"EQUALS","fieldName":"count","fieldValue":{"value":1}}"#
    #expect(try await person.answer(query, #""zoneWide":true"#) == ["b", "z"])
    #expect(try await person.answer(query, #""zoneWide":false"#) == ["z"])
    #expect(try await person.answer(query, #""zoneWide":null"#) == ["z"])
    #expect(
      try await person.answer(query, #""zoneWide":true,"zoneID":{"zoneName":"notes"}"#) == ["b"]
    )
    for rest in [#""zoneWide":true"#, #""zoneWide":true,"zoneID":{"zoneName":"_defaultZone"}"#] {
      #expect(try await person.answer(query, rest, in: .public) == ["p"])
    }
  }

  @Test("resultsLimit is bounded; keys and numbers are returned as requested")
  func shapes() async throws {
    let person = try await QueriedNotes.world()
    let zone = #""zoneID":{"zoneName":"notes"}"#
    for (limit, count) in [("1", 1), ("4", 4), ("1000", 4), ("0", 4), ("null", 4)] {
      #expect(try await person.answer("", #""resultsLimit":\#(limit),\#(zone)"#).count == count)
    }
    #expect(
      try await person.answer("", #""resultsLimit":-1,\#(zone)"#)
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

  @Test("A query has a limited number of filters, sorts and values", arguments: [-1, 0, 1])
  func limits(over: Int) async throws {
    let person = try await QueriedNotes.world { limits in
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
      #expect(try await person.answer(query) == names)
    }
  }

  @Test("No combination of comparator, field and value makes the server fail")
  func combinations() async throws {
    let person = try await QueriedNotes.world()
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
