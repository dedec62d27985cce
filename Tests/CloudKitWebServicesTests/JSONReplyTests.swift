import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("JSONReader: replies")
struct JSONReplyTests {
  private static let record = #"""
    {"recordName":"r","recordType":"T","recordChangeTag":"1-a","createShortGUID":true,
    "created":{"timestamp":1,"userRecordName":"_u","deviceID":"d"},"modified":{"timestamp":-5},
    "parent":{"recordName":"p","zoneID":{"zoneName":"z"}},"share":{"recordName":"s"},
    "zoneID":{"zoneName":"z","ownerRecordName":"_o","zoneType":"REGULAR_CUSTOM_ZONE"},
    "pluginFields":{"deep":[[{"A":null}]]},"deleted":false,
    "fields":{"a\"b":{"type":"STRING","value":"tab\tü/\/"},"n":{"value":12,"type":"INT64"},
    "d":{"type":"DOUBLE","value":-1.5e3,"isEncrypted":true},"whole":{"type":"DOUBLE","value":3},
    "when":{"type":"TIMESTAMP","value":1700000000000},"b":{"type":"BYTES","value":"AP8="},
    "l":{"type":"STRING_LIST","value":["a","b"]},"i":{"type":"INT64_LIST","value":[1,-2]},
    "f":{"type":"DOUBLE_LIST","value":[0.5,1]},"gone":{"value":null},"plain":{"value":"x"},
    "t":{"type":"INT64","value":"7"},"e":{"type":"ENCRYPTED_STRING","value":"s"},
    "u":{"type":"STRING","value":"é🎈"},"max":{"type":"INT64",
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
    let slow = try? WireCoding.decoder(of: Data(json.utf8)).decode(type, from: Data(json.utf8))
    guard let fast = type.read(Data(json.utf8)) else { return (false, true) }
    return (true, fast == slow)
  }

  private func compareAll(_ json: String) -> [(isRead: Bool, isSame: Bool)] {
    [
      compare(json, as: RecordsResponse.self), compare(json, as: QueryRecordsResponse.self),
      compare(json, as: ZoneChangesResponse.self), compare(json, as: ModifyRecordsRequest.self),
    ]
  }

  @Test("JSONReader reads requests and replies as JSONDecoder does", arguments: bodies)
  func bodiesAreRead(json: String) {
    let results = compareAll(json)
    // A request with a location is decoded by JSONDecoder as a whole.
    #expect(results.contains { $0.isRead } || json.contains("operations"))
    #expect(results.allSatisfy { $0.isSame })
  }

  @Test("JSONReader reads field types as JSONDecoder does", arguments: FieldValueTests.everyType)
  func fields(content: FieldContent, json: String) throws {
    let body = #"{"records":[{"recordName":"r","fields":{"f":\#(json)}}]}"#
    #expect(compare(body, as: RecordsResponse.self) == (true, true))
  }

  @Test(
    "JSONReader accepts nothing that is not JSON",
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
    #expect(RecordsResponse.read(Data(json.utf8)) == nil)
  }

  @Test("JSONReader refuses unbounded nesting without a crash")
  func depth() {
    let deep = String(repeating: "[", count: 100_000)
    #expect(RecordsResponse.read(Data(("{\"x\":" + deep).utf8)) == nil)
  }

  @Test("JSONDecoder reads the same value from each mutated body that JSONReader accepts")
  func mutations() throws {
    let seed =
      ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
    var numbers = SeededNumbers(state: seed)
    let pieces = [
      "", "\"", "{", "}", "[", "]", ",", ":", "null", "true", "0", "-", "1e5", ".5", "\\",
      "\\u0041",
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

  @Test("JSONWriter writes a request as JSONEncoder does", arguments: bodies)
  func requests(json: String) throws {
    guard let request = ModifyRecordsRequest.read(Data(json.utf8)) else { return }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    #expect(try WireCoding.encode(request) == encoder.encode(request))
  }

  @Test("Encoding a value that JSON can't express throws")
  func unwritable() {
    let place = LocationValue(latitude: .nan, longitude: 0)
    let record = RecordDictionary(recordName: "r", fields: ["f": FieldValue(.location(place))])
    let request = ModifyRecordsRequest(
      operations: [RecordOperation(operationType: .create, record: record)]
    )
    #expect(throws: MalformedBody.self) { try WireCoding.encode(request) }
  }
}
