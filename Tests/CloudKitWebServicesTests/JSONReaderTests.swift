import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("JSONReader")
struct JSONReaderTests {
  private static let request = """
    {"atomic":false,"clientSequence":{"acknowledged":1,"device":"d","finishedDevice":"c","sequence":2},
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

  @Test("JSONReader reads a request as JSONDecoder does")
  func request() throws {
    let json = Data(Self.request.utf8)
    let read = try #require(ModifyRecordsRequest.read(json))
    #expect(read == (try JSONDecoder().decode(ModifyRecordsRequest.self, from: json)))
  }

  @Test(
    "JSONReader reads feed options as JSONDecoder does",
    arguments: [
      #"{"zones":[]}"#,
      #"{"zones":[{"zoneID":{"zoneName":"z"},"syncToken":"t","resultsLimit":2,"reverse":true}]}"#,
      #"{"zones":[{"zoneID":{"zoneName":"z"},"desiredKeys":[],"desiredRecordTypes":["T"]}]}"#,
      #"{"reverse":false,"resultsLimit":null,"zones":[{"zoneID":{"zoneName":"z"},"unknown":{}}]}"#,
      #"{"desiredKeys":["a"],"desiredRecordTypes":[],"zones":[],"numbersAsStrings":true}"#,
    ]
  )
  func feeds(json: String) throws {
    let read = try #require(ZoneChangesRequest.read(Data(json.utf8)))
    let decoded = try JSONDecoder().decode(ZoneChangesRequest.self, from: Data(json.utf8))
    #expect(read == decoded)
    let again = try WireCoding.encode(decoded)
    #expect(try WireCoding.decode(ZoneChangesRequest.self, from: again) == decoded)
  }

  @Test("A zone's missing feed options are taken from the options of all zones")
  func filledOptions() {
    let own = FeedOptions(desiredKeys: [], reverse: false)
    let all = FeedOptions(
      desiredKeys: ["a"],
      desiredRecordTypes: ["T"],
      resultsLimit: 3,
      reverse: true,
      numbersAsStrings: true
    )
    let expected = FeedOptions(
      desiredKeys: [],
      desiredRecordTypes: ["T"],
      resultsLimit: 3,
      reverse: false,
      numbersAsStrings: true
    )
    #expect(own.filled(from: all) == expected)
  }

  @Test("JSONReader reads stored fields, and leaves locations and assets to JSONDecoder")
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
    "JSONReader leaves uncommon and malformed input to JSONDecoder",
    arguments: [
      "", "{", "[]", "{} x", #"{"f":{"value":1},}"#, #"{"f":{"value":01}}"#,
      #"{"f":{"value":"a"},"f":{"value":"b"}}"#, #"{"f":{"value":1,"value":2}}"#,
      #"{"f":{"type":"INT64","value":1.0}}"#, #"{"f":{"type":"INT64","value":"1"}}"#,
      #"{"f":{"type":"INT64","value":-0}}"#, #"{"f":{"type":"INT64","value":9223372036854775808}}"#,
      #"{"f":{"type":"DOUBLE","value":1e999}}"#, #"{"f":{"type":"STRING","value":"\u0041"}}"#,
      #"{"f":{"type":"NONSENSE","value":1}}"#, #"{"f":{"type":"BYTES","value":"?"}}"#,
      #"{"f":{"value":[[1]]}}"#, #"{"f":{"value":1e-400}}"#, #"{"f":{"value":"a"#,
      #"{"f":{"type":"DOUBLE","value":1e-400}}"#, #"{"f":1}"#,
      #"{"f":{"value":"\"#,
      "{\"f\":{\"value\":\"a\nb\"}}", #"{"f":null}"#, #"{"f":{"value":tru}}"#,
      #"{"f":{"value":-}}"#,
      #"{"f":{"value":"# + String(repeating: "[", count: 5000) + #"}}"#,
    ]
  )
  func unusual(json: String) {
    #expect([String: FieldValue].read(Data(json.utf8)) == nil)
  }

  @Test("JSONReader leaves invalid UTF-8 to JSONDecoder")
  func invalidText() {
    let json = Data(#"{"f":{"value":""#.utf8) + [0xC3, 0x28] + Data(#""}}"#.utf8)
    #expect([String: FieldValue].read(json) == nil)
  }

  @Test("JSONDecoder reads the same value from each damaged request that JSONReader accepts")
  func damaged() throws {
    let seed =
      ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
    var random = SeededNumbers(state: seed)
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
      let decoded = try? WireCoding.decoder(of: Data(bytes)).decode(
        ModifyRecordsRequest.self,
        from: Data(bytes)
      )
      #expect(
        read == decoded,
        "seed \(seed), round \(round): \(String(decoding: bytes, as: UTF8.self))"
      )
    }
  }
}
