import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("The quick reader")
struct JSONReaderTests {
<<<<<<< HEAD
  private static let request = """
    {"atomic":false,"clientSequence":{"acknowledged":1,"device":"d","sequence":2},
     "desiredKeys":["a"],"numbersAsStrings":true,"operations":[
      {"operationType":"create","record":{"recordName":"r","recordType":"T","fields":{
        "text":{"type":"STRING","value":"a \\"b\\" \\/ \\n ü 🐟"},"count":{"value":-7,"type":"INT64"},
        "size":{"type":"DOUBLE","value":1.25e-3},"when":{"type":"TIMESTAMP","value":1700000000000},
        "data":{"isEncrypted":true,"type":"ENCRYPTED_BYTES","value":"AP8="},"none":{"value":null},
        "to":{"type":"REFERENCE","value":{"action":"NONE","recordName":"x",
          "zoneID":{"zoneName":"z","ownerRecordName":"_o"}}},"bare":{"value":"s"},
        "list":{"value":[1,2]},"words":{"type":"STRING_LIST","value":[]}},
        "parent":null,"unknown":{"a":[true,false,null,{}]}},"desiredKeys":null},
      {"operationType":"update","record":{"recordName":"r2","recordChangeTag":"t","deleted":false,
        "created":{"timestamp":1,"userRecordName":"_u","deviceID":"2"},
        "parent":{"recordName":"p"},"zoneID":{"zoneName":"z"}}}
     ],"zoneID":{"zoneName":"notes"}}
    """

  @Test("It reads a request as the decoder does")
  func request() throws {
    let json = Data(Self.request.utf8)
    let read = try #require(ModifyRecordsRequest.read(json))
    #expect(read == (try JSONDecoder().decode(ModifyRecordsRequest.self, from: json)))
  }

  @Test("It reads what a record keeps of its fields, and leaves places and files to the decoder")
  func fields() throws {
    for (content, json) in FieldValueTests.everyType {
      let data = Data(#"{"f":\#(json)}"#.utf8)
      let read = [String: FieldValue].read(data)
      switch content {
      case .location, .locationList, .asset, .assetList, .unknownList: #expect(read == nil)
      default: #expect(read == ["f": FieldValue(content)])
      }
      #expect(try WireCoding.decode([String: FieldValue].self, from: data)["f"]?.content == content)
    }
  }

  @Test(
    "What is not simple or not sound is the decoder's to judge",
    arguments: [
      "", "{", "[]", "{} x", #"{"f":{"value":1},}"#, #"{"f":{"value":01}}"#,
      #"{"f":{"value":"a"},"f":{"value":"b"}}"#, #"{"f":{"value":1,"value":2}}"#,
      #"{"f":{"type":"INT64","value":1.0}}"#, #"{"f":{"type":"INT64","value":"1"}}"#,
      #"{"f":{"type":"INT64","value":-0}}"#, #"{"f":{"type":"INT64","value":9223372036854775808}}"#,
      #"{"f":{"type":"DOUBLE","value":1e999}}"#, #"{"f":{"type":"STRING","value":"\u0041"}}"#,
      #"{"f":{"type":"NONSENSE","value":1}}"#, #"{"f":{"type":"BYTES","value":"?"}}"#,
      #"{"f":{"value":[[1]]}}"#, #"{"f":{"value":1.5}}"#, #"{"f":{"value":"a"#,
      #"{"f":{"value":"\"#,
      "{\"f\":{\"value\":\"a\nb\"}}", #"{"f":null}"#, #"{"f":{"value":tru}}"#,
      #"{"f":{"value":-}}"#,
      #"{"f":{"value":"# + String(repeating: "[", count: 5000) + #"}}"#,
    ]
  )
  func unusual(json: String) {
    #expect([String: FieldValue].read(Data(json.utf8)) == nil)
  }

  @Test("Bytes that are no text are not read")
  func invalidText() {
    let json = Data(#"{"f":{"value":""#.utf8) + [0xC3, 0x28] + Data(#""}}"#.utf8)
    #expect([String: FieldValue].read(json) == nil)
  }

  @Test("Whatever it reads of a damaged request, the decoder reads the same")
  func damaged() throws {
    let seed =
      ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
    var random = DamageNumbers(state: seed)
    let whole = Array(Self.request.utf8)
    let pieces = Array("{}[]\",:\\0-+.eEtfnul1 \u{0}é".utf8)
    for round in 0..<2000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes.remove(at: place)
        case 1: bytes.insert(pieces.randomElement(using: &random) ?? 0, at: place)
        default: bytes[place] = pieces.randomElement(using: &random) ?? 0
        }
      }
      guard let read = ModifyRecordsRequest.read(Data(bytes)) else { continue }
      let decoded = try? JSONDecoder().decode(ModifyRecordsRequest.self, from: Data(bytes))
      #expect(
        read == decoded,
        "seed \(seed), round \(round): \(String(decoding: bytes, as: UTF8.self))"
      )
    }
  }
}

/// The splitmix64 generator.
private struct DamageNumbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
=======
  private func quick<Value: JSONReadable>(_ json: String, as type: Value.Type) -> Value? {
    var reader = JSONReader(Data(json.utf8))
    do throws(JSONReader.Unusual) {
      let value = try Value(from: &reader)
      try reader.end()
      return value
    } catch {
      return nil
    }
  }

  private static let record = #"""
    {"recordName":"r","recordType":"T","recordChangeTag":"1-a","createShortGUID":true,
    "created":{"timestamp":1,"userRecordName":"_u","deviceID":"d"},"modified":{"timestamp":-5},
    "parent":{"recordName":"p","zoneID":{"zoneName":"z"}},"share":{"recordName":"s"},
    "zoneID":{"zoneName":"z","ownerRecordName":"_o","zoneType":"REGULAR_CUSTOM_ZONE"},
    "pluginFields":{"deep":[[{"\u0041":null}]]},"deleted":false,
    "fields":{"a\"b":{"type":"STRING","value":"tab\tü/\/"},"n":{"value":12,"type":"INT64"},
    "d":{"type":"DOUBLE","value":-1.5e3,"isEncrypted":true},"whole":{"type":"DOUBLE","value":3},
    "when":{"type":"TIMESTAMP","value":1700000000000},"b":{"type":"BYTES","value":"AP8="},
    "l":{"type":"STRING_LIST","value":["a","b"]},"i":{"type":"INT64_LIST","value":[1,-2]},
    "f":{"type":"DOUBLE_LIST","value":[0.5,1]},"gone":{"value":null},"plain":{"value":"x"},
    "t":{"type":"INT64","value":"7"},"e":{"type":"ENCRYPTED_STRING","value":"s"},
    "u":{"type":"STRING","value":"\u00e9\ud83c\udf88"},"max":{"type":"INT64",
    "value":9223372036854775807},"flag":{"type":"INT64","value":true},
    "r":{"type":"REFERENCE","value":{"recordName":"x","action":"DELETE_SELF"}},
    "where":{"type":"LOCATION","value":{"latitude":1.25,"longitude":-2}},
    "file":{"type":"ASSETID","value":{"fileChecksum":"c","size":4}},
    "none":{"type":"UNKNOWN_LIST","value":[]}}}
    """#
  private static let share = #"""
    {"recordName":"s","recordType":"cloudkit.share","publicPermission":"NONE","parent":null}
    """#
  private static let failure = #"""
    {"recordName":"r","serverErrorCode":"CONFLICT","reason":"changed"}
    """#

  /// Replies and requests, each with a record, a share and an error where errors may be.
  private static let bodies: [String] = [
    #"{"records":[\#(record),\#(failure),\#(share)],"syncToken":"t"}"#,
    #"{ "records" : [\#(record)] , "continuationMarker":"m" }"#,
    #"""
    {"zones":[{"zoneID":{"zoneName":"z"},"records":[\#(record),\#(failure)],"moreComing":true,
    "syncToken":"t"},{"zoneID":{"zoneName":"y"},"serverErrorCode":"ZONE_NOT_FOUND"}]}
    """#,
    #"""
    {"operations":[{"operationType":"forceUpdate","record":\#(record),"desiredKeys":["a"]},
    {"operationType":"create","record":\#(share)}],"zoneID":{"zoneName":"z"},"atomic":false,
    "clientSequence":{"device":"d","sequence":2,"acknowledged":1},"numbersAsStrings":null}
    """#,
  ]

  private func compare<Value: JSONReadable & Equatable>(
    _ json: String,
    as type: Value.Type
  ) -> (isRead: Bool, isSame: Bool) {
    let slow = try? JSONDecoder().decode(type, from: Data(json.utf8))
    guard let fast = quick(json, as: type) else { return (false, true) }
    return (true, fast == slow)
  }

  private func compareAll(_ json: String) -> [(isRead: Bool, isSame: Bool)] {
    [
      compare(json, as: RecordsResponse.self), compare(json, as: QueryRecordsResponse.self),
      compare(json, as: ZoneChangesResponse.self), compare(json, as: ModifyRecordsRequest.self),
    ]
  }

  @Test("It reads what services and clients send as the decoder does", arguments: bodies)
  func bodiesAreRead(json: String) {
    let results = compareAll(json)
    #expect(results.contains { $0.isRead })
    #expect(results.allSatisfy { $0.isSame })
  }

  @Test("It reads every field as the decoder does", arguments: FieldValueTests.everyType)
  func fields(content: FieldContent, json: String) throws {
    let body = #"{"records":[{"recordName":"r","fields":{"f":\#(json)}}]}"#
    #expect(compare(body, as: RecordsResponse.self) == (true, true))
  }

  @Test(
    "It gives up on what is not JSON",
    arguments: [
      "", "{", "[]", "{\"records\":[]}x", "{\"records\":[],}", "{'records':[]}", "{\"records\":[}",
      "{\"records\":[{\"recordName\":\"a\nb\"}]}", "{\"records\":[{\"deleted\":tru}]}",
      "{\"records\":[{\"created\":{\"timestamp\":01}}]}",
      "{\"records\":[{\"fields\":{\"d\":{\"type\":\"DOUBLE\",\"value\":1.}}}]}",
      "{\"records\":[{\"fields\":{\"d\":{\"type\":\"DOUBLE\",\"value\":.5}}}]}",
      "{\"records\":[{\"fields\":{\"d\":{\"type\":\"DOUBLE\",\"value\":1e999}}}]}",
    ]
  )
  func broken(json: String) {
    #expect(quick(json, as: RecordsResponse.self) == nil)
  }

  @Test("Nesting without end is given up on, and is no crash")
  func depth() {
    let deep = String(repeating: "[", count: 100_000)
    #expect(quick("{\"x\":" + deep, as: RecordsResponse.self) == nil)
  }

  @Test("Whatever is broken, nothing is read otherwise than the decoder reads it")
  func mutations() throws {
    let seed =
      ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
    var numbers = SeededNumbers(state: seed)
    let pieces = [
      "", "\"", "{", "}", "[", "]", ",", ":", "null", "true", "0", "-", "1e5", ".5", "\\", "\\u0041",
      "\\ud800", "é", "\u{0}", " ", "\"value\":", "\"type\":\"INT64\"", "\"recordName\":\"again\",",
      "9999999999999999999", "\"serverErrorCode\":\"CONFLICT\",", "1.0", "-0",
    ]
    var read = 0
    for round in 0..<3000 {
      var bytes = Array(Self.bodies[round % Self.bodies.count].utf8)
      for _ in 0..<Int.random(in: 1...2, using: &numbers) {
        let place = Int.random(in: 0..<bytes.count, using: &numbers)
        let piece = Array((pieces.randomElement(using: &numbers) ?? "").utf8)
        let length = min(Int.random(in: 0...4, using: &numbers), bytes.count - place)
        bytes.replaceSubrange(place..<place + length, with: piece)
      }
      guard let json = String(validating: bytes, as: UTF8.self) else { continue }
      for result in compareAll(json) {
        if result.isRead { read += 1 }
        #expect(result.isSame, "seed \(seed), round \(round): \(json)")
      }
    }
    #expect(read > 100)
  }

  @Test("A request is written as the encoder writes it", arguments: bodies)
  func requests(json: String) throws {
    guard let request = quick(json, as: ModifyRecordsRequest.self) else { return }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    #expect(try WireCoding.encode(request) == encoder.encode(request))
  }

  @Test("What JSON can't hold is told when it is written")
  func unwritable() {
    let place = LocationValue(latitude: .nan, longitude: 0)
    let record = RecordDictionary(recordName: "r", fields: ["f": FieldValue(.location(place))])
    let request = ModifyRecordsRequest(
      operations: [RecordOperation(operationType: .create, record: record)]
    )
    #expect(throws: MalformedBody.self) { try WireCoding.encode(request) }
>>>>>>> 73ad11c (A quick reader and writer of records, shared reads, refresh tokens, the event stream and the device flow)
  }
}
