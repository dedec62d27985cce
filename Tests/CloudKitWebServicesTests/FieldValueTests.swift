import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("Field values on the wire")
struct FieldValueTests {
  private func decode(_ json: String) throws -> FieldValue {
    try WireCoding.decode(FieldValue.self, from: Data(json.utf8))
  }

  private func encode(_ content: FieldContent, isEncrypted: Bool = false) throws -> String {
    let data = try WireCoding.encode(FieldValue(content, isEncrypted: isEncrypted))
    return String(decoding: data, as: UTF8.self)
  }

  static let everyType: [(FieldContent, String)] = [
    (.string("a\"b"), #"{"type":"STRING","value":"a\"b"}"#),
    (.int64(.max), #"{"type":"INT64","value":9223372036854775807}"#),
    (.double(1.5), #"{"type":"DOUBLE","value":1.5}"#),
    (.timestamp(1_700_000_000_000), #"{"type":"TIMESTAMP","value":1700000000000}"#),
    (
      .timestamp(TimestampValue(Date(timeIntervalSinceReferenceDate: 700_000_000.123_456_7))),
      #"{"secondsSince2001":700000000.1234567,"type":"TIMESTAMP","value":1678307200123}"#
    ),
    (.bytes(Data([0, 255])), #"{"type":"BYTES","value":"AP8="}"#),
    (
      .location(LocationValue(latitude: 1.5, longitude: 2.5)),
      #"{"type":"LOCATION","value":{"latitude":1.5,"longitude":2.5}}"#
    ),
    (
      .reference(ReferenceValue(recordName: "r", action: .deleteSelf)),
      #"{"type":"REFERENCE","value":{"action":"DELETE_SELF","recordName":"r"}}"#
    ),
    (
      .asset(AssetValue(fileChecksum: "c", size: 5)),
      #"{"type":"ASSETID","value":{"fileChecksum":"c","size":5}}"#
    ),
    (.stringList(["a", "b"]), #"{"type":"STRING_LIST","value":["a","b"]}"#),
    (.int64List([1, -2]), #"{"type":"INT64_LIST","value":[1,-2]}"#),
    (.doubleList([0.5]), #"{"type":"DOUBLE_LIST","value":[0.5]}"#),
    (.timestampList([1]), #"{"type":"TIMESTAMP_LIST","value":[1]}"#),
    (
      .timestampList([1, TimestampValue(Date(timeIntervalSinceReferenceDate: 0.000_1))]),
      #"{"secondsSince2001":[null,0.0001],"type":"TIMESTAMP_LIST","value":[1,978307200000]}"#
    ),
    (.bytesList([Data([1])]), #"{"type":"BYTES_LIST","value":["AQ=="]}"#),
    (
      .locationList([LocationValue(latitude: 1.5, longitude: 2.5)]),
      #"{"type":"LOCATION_LIST","value":[{"latitude":1.5,"longitude":2.5}]}"#
    ),
    (
      .referenceList([ReferenceValue(recordName: "r", action: ReferenceAction.none)]),
      #"{"type":"REFERENCE_LIST","value":[{"action":"NONE","recordName":"r"}]}"#
    ),
    (
      .assetList([AssetValue(fileChecksum: "c")]),
      #"{"type":"ASSETID_LIST","value":[{"fileChecksum":"c"}]}"#
    ),
    (.stringList([]), #"{"type":"STRING_LIST","value":[]}"#),
    (.unknownList, #"{"type":"UNKNOWN_LIST","value":[]}"#),
    (.null, #"{"value":null}"#),
  ]

  @Test("Every type is written with its tag and read back the same", arguments: everyType)
  func everyTypeTravels(content: FieldContent, json: String) throws {
    #expect(try encode(content) == json)
    #expect(try decode(json).content == content)
  }

  @Test("The encrypted flag round-trips, and an ENCRYPTED_ tag means the same")
  func encrypted() throws {
    let json = #"{"isEncrypted":true,"type":"STRING","value":"s"}"#
    #expect(try encode(.string("s"), isEncrypted: true) == json)
    #expect(try decode(json) == FieldValue(.string("s"), isEncrypted: true))
    #expect(
      try decode(#"{"type":"ENCRYPTED_BYTES","value":""}"#)
        == FieldValue(.bytes(Data()), isEncrypted: true)
    )
  }

  @Test("Numbers may be strings, and Booleans may be integers")
  func lenientNumbers() throws {
    #expect(try decode(#"{"type":"INT64","value":"-7"}"#).content == .int64(-7))
    #expect(try decode(#"{"type":"DOUBLE","value":"0.25"}"#).content == .double(0.25))
    #expect(try decode(#"{"type":"INT64","value":true}"#).content == .int64(1))
    #expect(try decode(#"{"type":"INT64_LIST","value":["1",2]}"#).content == .int64List([1, 2]))
    #expect(try decode(#"{"type":"ASSET","value":{}}"#).content == .asset(AssetValue()))
  }

  @Test(
    "A value without a type tag is decoded by its JSON type",
    arguments: [
      (#""x""#, UntaggedValue.string("x")),
      ("1", .integer(1)),
      ("1.5", .fraction(1.5)),
      ("1e300", .fraction(1e300)),
      ("2.0", .fraction(2)),
      ("[1,2.0,1e1]", .list([.integer(1), .fraction(2), .fraction(10)])),
      ("false", .boolean(false)),
      (#"{"latitude":1,"longitude":2}"#, .location(LocationValue(latitude: 1, longitude: 2))),
      (#"{"recordName":"r"}"#, .reference(ReferenceValue(recordName: "r"))),
      (#"{"receipt":"p"}"#, .asset(AssetValue(receipt: "p"))),
      (#"[1,"x"]"#, .list([.integer(1), .string("x")])),
      ("[]", .list([])),
    ]
  )
  func untagged(json: String, value: UntaggedValue) throws {
    #expect(try decode("{\"value\":\(json)}").content == .untagged(value))
  }

  @Test(
    "Both readers distinguish a whole number with a point from an integer, in any place",
    arguments: [
      #"{"\u0061":{"value":2.0},"b":{"value":2},"5":{"value":[1,2.0,3]}}"#,
      #"{"a":{"value":2.0},"b":{"value":2},"5":{"value":[1,2e0,3]},"x":1}"#,
      #"{"a":2.0,"b":2,"5":[1,2.00,3],"x":"2.0, \"b\":{\"value\":3.0"}"#,
    ]
  )
  func wholeFractions(json: String) throws {
    let fields = try WireCoding.decode([String: FieldValue].self, from: Data(json.utf8))
    #expect(fields["a"]?.content == .untagged(.fraction(2)))
    #expect(fields["b"]?.content == .untagged(.integer(2)))
    #expect(fields["5"]?.content == .untagged(.list([.integer(1), .fraction(2), .integer(3)])))
  }

  @Test("A number that no Double can hold is refused by both readers, and so is one in base 16")
  func unreadableNumbers() throws {
    for value in ["1e-400", "1e400", #""0x10""#] {
      for extra in ["", #","p":{"type":"LOCATION","value":{"latitude":1,"longitude":2}}"#] {
        let json = #"{"f":{"type":"DOUBLE","value":\#(value)}\#(extra)}"#
        let error = #expect(throws: MalformedBody.self) {
          try WireCoding.decode([String: FieldValue].self, from: Data(json.utf8))
        }
        #expect(error?.reason == "Invalid value, expected type DOUBLE")
      }
    }
  }

  @Test(
    "A value that its tag does not fit is refused with the tag's name",
    arguments: [
      ("TIMESTAMP", "1.5"), ("INT64", #""x""#), ("STRING", "1"), ("BYTES", #""*""#),
      ("REFERENCE", "{}"), ("LOCATION", "[]"), ("STRING_LIST", "[1]"), ("DOUBLE", #""nan""#),
    ]
  )
  func misfits(type: String, value: String) throws {
    let error = #expect(throws: MalformedBody.self) {
      try decode(#"{"type":"\#(type)","value":\#(value)}"#)
    }
    #expect(error?.reason == "Invalid value, expected type \(type)")
    #expect(error?.path == "value")
  }

  @Test("Unknown tags are refused", arguments: ["LIST", "EMPTY_LIST", "string", ""])
  func unknownTags(tag: String) throws {
    let error = #expect(throws: MalformedBody.self) {
      try decode(#"{"type":"\#(tag)","value":[]}"#)
    }
    #expect(error?.reason == "Unknown field type '\(tag)'")
  }

  @Test("A record writes its numbers as strings if the request asks for that")
  func numbersAsStrings() throws {
    var record = RecordDictionary(
      recordName: "r",
      fields: [
        "d": FieldValue(.double(0.5)), "i": FieldValue(.int64(1)),
        "l": FieldValue(.timestampList([2])), "s": FieldValue(.string("s")),
      ]
    )
    record.writesNumbersAsStrings = true
    let json = String(decoding: try WireCoding.encode(record), as: UTF8.self)
    #expect(
      json == #"""
        {"fields":{"d":{"type":"DOUBLE","value":"0.5"},"i":{"type":"INT64","value":"1"},\#
        "l":{"type":"TIMESTAMP_LIST","value":["2"]},"s":{"type":"STRING","value":"s"}},\#
        "recordName":"r"}
        """#
    )
  }
}
