import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

@Suite("Invalid input", .everyEngine)
struct BadInputTests {
  @Test(
    "An unknown path is NOT_FOUND",
    arguments: [
      "", "/", "/x", "/database", "/database/1/c/development/private/records/none",
      "/database/1/c/nowhere/private/records/query", "/database/9/c/development/private/zones/list",
      "/database/1/c/development/zones/list", "/device/1/c/development/tokens/none", "/webcourier",
    ]
  )
  func paths(path: String) async throws {
    let server = try await TestServer()
    let response = await server.send("POST", path + "?ckAPIToken=\(server.apiToken)")
    #expect(response.status == 404)
    let error = try WireCoding.decode(ErrorDictionary.self, from: response.body)
    #expect(error.serverErrorCode == .notFound)
  }

  @Test("Every reply forbids browsers to guess its type")
  func nosniff() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    for path in [
      person.path(.listZones, .private), person.path(.listZones, .shared) + "x", "/nothing",
      "/sign-in", "/webcourier/a/b", "/assets/download/x",
    ] {
      let response = await server.send("GET", path)
      #expect(response.headers["x-content-type-options"] == "nosniff", "\(path)")
    }
  }

  @Test("A method that an endpoint does not support is refused")
  func methods() async throws {
    let person = try await TestServer().person()
    for method in ["GET", "PUT", "DELETE", "PATCH", ""] {
      let response = await person.send(.modifyRecords, Data(), method: method)
      #expect(response.status == 400)
    }
    for endpoint in [Endpoint.listZones, .listSubscriptions, .currentUser] {
      #expect(await person.send(endpoint, Data(), method: "GET").status == 200)
    }
  }

  @Test("The reason names the position of the error")
  func reasons() async throws {
    let person = try await TestServer().person()
    let body = #"{"operations":[{"operationType":"erase","record":{}}]}"#
    let response = await person.send(.modifyRecords, Data(body.utf8))
    let error = try WireCoding.decode(ErrorDictionary.self, from: response.body)
    #expect(response.status == 400)
    #expect(error.reason?.hasPrefix("operations[0].operationType: ") == true)
  }

  @Test(
    "A value of a wrong type is the error of its named record, and not of the request",
    arguments: [
      (
        #"{"recordName":"bad","recordType":"N","fields":{"a":{"value":"x","type":"INT64"}}}"#, "bad"
      ),
      (#"{"recordName":"bad","recordType":"N","fields":{"a":{"value":{}}}}"#, "bad"),
      (#"{"recordName":"bad","recordType":"N","fields":{"a":{"value":1,"type":"NONE"}}}"#, "bad"),
      (#"{"recordName":"bad","recordType":"N","fields":{"a":[[1]]}}"#, "bad"),
      (#"{"recordName":"bad","recordType":"N","fields":[]}"#, "bad"),
      (#"{"recordName":"bad","recordType":7}"#, "bad"),
      (#"{"recordName":"bad","recordType":"N","parent":"p"}"#, "bad"),
      (#"{"recordName":"bad","recordType":"N","zoneID":"z"}"#, "bad"),
      (#"{"recordName":"bad","recordType":"cloudkit.share","participants":{}}"#, "bad"),
      (#"{"recordName":7,"recordType":"N"}"#, nil),
    ] as [(String, String?)]
  )
  func wrongTypes(record: String, name: String?) async throws {
    // The size of a full request once, and few records otherwise.
    let count = name == nil ? 200 : 5
    let person = try await TestServer().person()
    try await person.makeZone()
    func modify(atomic: Bool) async throws -> [ItemResult<RecordDictionary>] {
      let good = (1..<count).map { #"{"recordName":"g\#($0)","recordType":"N"}"# }
      let records = Array(good.prefix(3)) + [record] + Array(good.dropFirst(3))
      let operations = records.map { #"{"operationType":"forceUpdate","record":\#($0)}"# }
      let body =
        #"{"zoneID":{"zoneName":"notes"},"atomic":\#(atomic),"operations":["#
        + operations.joined(separator: ",") + "]}"
      let reply = await person.send(.modifyRecords, Data(body.utf8))
      #expect(reply.status == 200)
      return try WireCoding.decode(RecordsResponse.self, from: reply.body).records
    }
    let atomic = try await modify(atomic: true)
    #expect(atomic.count == count)
    #expect(atomic[3].error?.serverErrorCode == .badRequest)
    #expect(atomic[3].error?.recordName == name)
    #expect(atomic[0].error?.serverErrorCode == .atomicError)
    #expect(atomic[count - 1].error?.serverErrorCode == .atomicError)
    await #expect(throws: ErrorDictionary.self) { try await person.lookup("g1") }
    let loose = try await modify(atomic: false)
    #expect(loose.count { $0.item != nil } == count - 1)
    let error = try #require(loose[3].error)
    #expect(error.serverErrorCode == .badRequest)
    #expect(error.reason?.isEmpty == false)
    #expect(error.reason?.contains("operations[") == false)
    #expect(try await person.lookup("g\(count - 1)").recordName != nil)
  }

  @Test("The reason for a value of a wrong type names the field")
  func wrongTypeReason() async throws {
    let person = try await TestServer().person()
    let body = #"""
      {"operations":[{"operationType":"create","record":{"recordName":"r","recordType":"N",
      "fields":{"a":{"value":"x","type":"INT64"}}}}]}
      """#
    let reply = await person.send(.modifyRecords, Data(body.utf8))
    let error = try WireCoding.decode(RecordsResponse.self, from: reply.body).records[0].error
    #expect(error?.reason == "fields.a.value: Invalid value, expected type INT64")
  }

  @Test(
    "A body that is no list of record operations is refused as a whole",
    arguments: [
      #"{"operations":{}}"#, #"{"operations":[5]}"#, #"{"operations":[{"record":{}}]}"#,
      #"{"operations":[{"operationType":"create"}]}"#,
      #"{"operations":[{"operationType":"create","record":"r"}]}"#,
      #"{"operations":[{"operationType":"create","record":{"recordName":"r"}]}"#,
    ]
  )
  func malformed(body: String) async throws {
    let person = try await TestServer().person()
    #expect(await person.send(.modifyRecords, Data(body.utf8)).status == 400)
  }

  /// A body for each endpoint that is valid except for the changes of the fuzzing.
  static let bodies: [(Endpoint, String)] = [
    (
      .modifyRecords,
      #"""
      {"operations":[{"operationType":"forceUpdate","record":{"recordName":"r","recordType":"N",
      "recordChangeTag":"1","fields":{"a":{"value":1,"type":"INT64"},"b":{"value":[1.5]},
      "c":{"value":{"recordName":"r","action":"NONE"}},"d":{"value":{"receipt":"a.b"}}}}}],
      "zoneID":{"zoneName":"notes"},"atomic":true,"desiredKeys":["a"],"numbersAsStrings":true,
      "clientSequence":{"device":"d","sequence":1,"acknowledged":0}}
      """#
    ),
    (.lookupRecords, #"{"records":[{"recordName":"r"}],"zoneID":{"zoneName":"notes"}}"#),
    (
      .queryRecords,
      #"""
      {"query":{"recordType":"N","filterBy":[{"comparator":"EQUALS","fieldName":"a",
      "fieldValue":{"value":1}}],"sortBy":[{"fieldName":"a","ascending":false}]},
      "zoneID":{"zoneName":"notes"},"resultsLimit":5,"continuationMarker":"a.b"}
      """#
    ),
    (
      .zoneChanges,
      #"{"zones":[{"zoneID":{"zoneName":"notes"},"syncToken":"a.b","resultsLimit":-1}]}"#
    ),
    (.databaseChanges, #"{"syncToken":"a.b","resultsLimit":99999999999}"#),
    (
      .modifyZones,
      #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"x"}}}]}"#
    ),
    (.lookupZones, #"{"zones":[{"zoneName":"notes"}]}"#),
    (
      .modifySubscriptions,
      #"""
      {"operations":[{"operationType":"create","subscription":{"subscriptionID":"s",
      "subscriptionType":"zone","zoneID":{"zoneName":"notes"}}}]}
      """#
    ),
    (.uploadAssets, #"{"tokens":[{"recordName":"r","recordType":"N","fieldName":"f"}]}"#),
    (.rereferenceAssets, #"{"assets":[{"recordName":"r","fieldName":"f"}]}"#),
    (.discoverUsers, #"{"lookupInfos":[{"emailAddress":"a@b"}]}"#),
    (.createToken, #"{"apnsEnvironment":"development","clientId":"c"}"#),
  ]

  @Test("No changed body makes the server fail", arguments: bodies)
  func fuzzing(endpoint: Endpoint, body: String) async throws {
    let seed = TestSeed.value
    let random = SeededRandomness(seed: seed)
    func below(_ count: Int) -> Int { Int(random.next() % UInt64(max(count, 1))) }
    let person = try await TestServer().person().extended
    try await person.makeZone()
    let pieces = [
      "null", "true", "-1", "1e999", "\"\"", "{}", "[]", "[[]]", "9223372036854775808", "\u{0}",
      "\"\\ud800\"", "{\"value\":", "\"é\"", "0.1",
    ].map { Array($0.utf8) }
    let scope: DatabaseScope? = endpoint == .createToken ? nil : .private
    for _ in 0..<300 {
      var bytes = Array(body.utf8)
      for _ in 0...below(3) {
        let start = below(bytes.count)
        switch below(4) {
        case 0: bytes.removeSubrange(start..<min(start + 1 + below(12), bytes.count))
        case 1: bytes.insert(contentsOf: pieces[below(pieces.count)], at: start)
        case 2: if !bytes.isEmpty { bytes[start] = UInt8(truncatingIfNeeded: random.next()) }
        default: replaceValue(in: &bytes, with: pieces[below(pieces.count)], near: start)
        }
      }
      let response = await person.send(endpoint, Data(bytes), in: scope)
      #expect(response.status < 500, "seed \(seed): \(String(decoding: bytes, as: UTF8.self))")
      #expect((try? JSONSerialization.jsonObject(with: response.body)) != nil)
    }
  }

  /// Replaces the text between a colon and the next comma or brace.
  private func replaceValue(in bytes: inout [UInt8], with piece: [UInt8], near start: Int) {
    guard let colon = bytes[min(start, bytes.count)...].firstIndex(of: UInt8(ascii: ":")) else {
      return
    }
    let end =
      bytes[(colon + 1)...].firstIndex { ",}]".utf8.contains($0) } ?? bytes.endIndex
    bytes.replaceSubrange((colon + 1)..<end, with: piece)
  }

  @Test(
    "A sequence number that JSON readers disagree on is refused by both readers",
    arguments: [
      ("-9223372036854775808", "0"), ("9223372036854775807", "0"), ("-1", "0"), ("1", "-1"),
      ("9007199254740993", "0"), ("1", "9223372036854775807"), ("1", "-9223372036854775808"),
    ]
  )
  func sequences(sequence: String, acknowledged: String) async throws {
    let person = try await TestServer().person().extended
    try await person.makeZone()
    // A numeric escape makes `JSONReader` leave the body to `JSONDecoder`.
    for extra in ["", #","\u0061":1"#] {
      let body = Self.sequenced("d", sequence, acknowledged, extra)
      let response = await person.send(.modifyRecords, Data(body.utf8))
      #expect(response.status == 400)
      let error = try WireCoding.decode(ErrorDictionary.self, from: response.body)
      #expect(error.serverErrorCode == .badRequest)
    }
    // The largest allowed number works.
    let body = Self.sequenced("d", "9007199254740992", "9007199254740992", "")
    #expect(await person.send(.modifyRecords, Data(body.utf8)).status == 200)
  }

  @Test("A device name of a sequence has at most 255 bytes", arguments: [-1, 0, 1])
  func deviceNames(over: Int) async throws {
    let person = try await TestServer().person().extended
    try await person.makeZone()
    let name = String(repeating: "d", count: 255 + over)
    for extra in ["", #","\u0061":1"#] {
      let body = Self.sequenced(name, "1", "0", extra)
      let response = await person.send(.modifyRecords, Data(body.utf8))
      #expect(response.status == (over > 0 ? 400 : 200))
    }
  }

  private static func sequenced(
    _ device: String,
    _ sequence: String,
    _ acknowledged: String,
    _ extra: String
  ) -> String {
    #"{"zoneID":{"zoneName":"notes"},"clientSequence":{"device":"\#(device)","#
      + #""sequence":\#(sequence),"acknowledged":\#(acknowledged)},"operations":[{"#
      + #""operationType":"forceUpdate","record":{"recordName":"a","recordType":"Note"}}]\#(extra)}"#
  }

  @Test("A value that is a list of lists is refused at any depth", arguments: [2, 100, 500])
  func nestedLists(depth: Int) async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let value =
      String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
    let body =
      #"{"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create","record":{"#
      + #""recordName":"a","recordType":"Note","fields":{"l":{"value":\#(value)}}}}]}"#
    let response = await person.send(.modifyRecords, Data(body.utf8))
    #expect(String(decoding: response.body, as: UTF8.self).contains("BAD_REQUEST"))
    #expect(response.status != 500)
  }

  @Test("A body that is nested without end is refused")
  func nesting() async throws {
    let person = try await TestServer().person()
    let deep = String(repeating: "[", count: 100_000)
    let body = #"{"operations":[{"operationType":"create","record":{"fields":{"a":{"value":"#
    #expect(await person.send(.modifyRecords, Data((body + deep).utf8)).status == 400)
  }

  @Test("A body over the anonymous limit is not decoded for a forged user token")
  func madeUpToken() async throws {
    var stranger = try await TestServer(limits: { $0.anonymousRequestSize = 1000 }).visitor
    stranger.webAuthToken = "made up"
    for (size, status) in [(1000, 400), (1001, 421)] {
      let body = Data(repeating: UInt8(ascii: "x"), count: size)
      #expect(await stranger.send(.modifyRecords, body, in: .public).status == status)
    }
  }

  @Test("A request that is too large is refused")
  func tooLarge() async throws {
    let person = try await TestServer(limits: { $0.requestSize = 100 }).person()
    #expect(await person.send(.listZones, Data(count: 101)).status == 400)
  }
}
