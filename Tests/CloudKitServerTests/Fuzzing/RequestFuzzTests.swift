import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// Requests with a defect, few in the test suite; `make fuzz` runs many more.
@Suite("Invalid requests")
struct RequestFuzzTests {
  private static let environment = ProcessInfo.processInfo.environment
  static let rounds = environment["WATERSHED_FUZZ"].flatMap { Int($0) } ?? 400
  static let seed = TestSeed.value

  private static let bodies = [
    #"{"operations":[{"operationType":"create","record":{"recordName":"r","recordType":"Note","fields":{"t":{"value":"x","type":"STRING"},"n":{"value":1},"d":{"value":1.5,"type":"DOUBLE"},"p":{"value":{"latitude":1,"longitude":2}},"f":{"value":{"fileChecksum":"AQ==","receipt":"a.b","size":1}},"l":{"value":["a"],"type":"STRING_LIST"},"r":{"value":{"recordName":"q","action":"NONE"}}}}}],"zoneID":{"zoneName":"notes"},"atomic":true,"clientSequence":{"device":"d","sequence":1,"acknowledged":0}}"#,
    #"{"zoneID":{"zoneName":"notes"},"clientSequence":{"device":"d","sequence":9223372036854775807,"acknowledged":-9223372036854775808},"operations":[{"operationType":"forceUpdate","record":{"recordName":"r","recordType":"Note","fields":{"b":{"value":"QUJD","type":"BYTES","sealedType":"STRING"},"a":{"value":{"fileChecksum":"AQ==","blob":"../../x"}}},"parent":{"recordName":"r"},"created":{"timestamp":-9223372036854775808}}}]}"#,
    #"{"query":{"recordType":"Note","filterBy":[{"comparator":"EQUALS","fieldName":"t","fieldValue":{"value":"x"}}],"sortBy":[{"fieldName":"n"}]},"zoneID":{"zoneName":"notes"},"resultsLimit":5,"continuationMarker":"a.b"}"#,
    #"{"zones":[{"zoneID":{"zoneName":"notes"},"syncToken":"abc.def","resultsLimit":2,"reverse":true}]}"#,
    #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","subscriptionType":"query","query":{"recordType":"Note"},"firesOn":["create"]}}]}"#,
    #"{"tokens":[{"recordType":"Note","fieldName":"f","recordName":"r"}]}"#,
    #"{"lookupInfos":[{"emailAddress":"a@b.c"},{"userRecordName":"_x"}],"users":[{"emailAddress":"x"}]}"#,
    #"{"shortGUIDs":[{"value":"x","shouldFetchRootRecord":true}],"records":[{"recordName":"r"}]}"#,
  ]

  /// Texts that are difficult for parsers.
  private static let oddities = [
    "null", "[]", "{}", "-1", "1e999", "9223372036854775808", "\"\"", "\"\\ud800\"", "\u{0}", "\"",
    "true", "0.1", "[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "\u{FEFF}", "\\", "\"___recordID\"",
    "18446744073709551616", "-9223372036854775808", "9223372036854775807", "9007199254740993",
    "\"sealedType\"", "\"blob\"", "\"DELETE_SELF\"", "\"ASSETID\"", "\"../../x\"", "\"<script>\"",
  ]

  private static let extremes = [
    "-9223372036854775808", "9223372036854775807", "-1", "0", "9007199254740993", "4294967296",
  ]

  static func broken(_ text: String, _ random: SeededRandomness) -> Data {
    var bytes = Array(text.utf8)
    for _ in 0...(random.next() % 4) {
      let place = bytes.isEmpty ? 0 : Int(random.next() % UInt64(bytes.count))
      switch random.next() % 6 {
      case 0: bytes.removeSubrange(place...)
      case 1: if !bytes.isEmpty { bytes[place] = UInt8(truncatingIfNeeded: random.next()) }
      case 2:
        let odd = oddities[Int(random.next() % UInt64(oddities.count))]
        bytes.insert(contentsOf: odd.utf8, at: place)
      case 3:
        let end = min(bytes.count, place + Int(random.next() % 40))
        bytes.insert(contentsOf: bytes[place..<end], at: place)
      case 4:
        let end = min(bytes.count, place + Int(random.next() % 12))
        bytes.removeSubrange(place..<end)
      default:
        // A value for a value: the structure stays, the type changes.
        let string = String(decoding: bytes, as: UTF8.self)
        let odd = oddities[Int(random.next() % UInt64(oddities.count))]
        if let range = string.range(of: #""[a-zA-Z]+""#, options: .regularExpression) {
          bytes = Array(string.replacingCharacters(in: range, with: odd).utf8)
        }
        // A number for a number, at the bounds of its type.
        if let range = string.range(of: #":-?[0-9]+"#, options: .regularExpression) {
          let extreme = extremes[Int(random.next() % UInt64(extremes.count))]
          if random.next() % 2 == 0 {
            bytes = Array(string.replacingCharacters(in: range, with: ":" + extreme).utf8)
          }
        }
      }
    }
    return Data(bytes)
  }

  private func check(_ response: WebServiceResponse, _ what: @autoclosure () -> String) {
    #expect(response.status != 500, "seed \(Self.seed): \(what())")
    guard !(200..<300).contains(response.status) else { return }
    let error = try? WireCoding.decode(ErrorDictionary.self, from: response.body)
    #expect(error != nil, "seed \(Self.seed): no dictionary for \(what())")
    #expect(
      error.map { ServerErrorCode.documented.contains($0.serverErrorCode) } != false,
      "seed \(Self.seed): \(what())"
    )
  }

  @Test("The server replies to any request with a documented result")
  func bodies() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let random = SeededRandomness(seed: Self.seed)
    for _ in 0..<Self.rounds {
      let body = Self.broken(
        Self.bodies[Int(random.next() % UInt64(Self.bodies.count))],
        random
      )
      let endpoint = Endpoint.allCases[Int(random.next() % UInt64(Endpoint.allCases.count))]
      let scope = DatabaseScope.allCases[Int(random.next() % 3)]
      let response = await person.extended.send(endpoint, body, in: scope)
      check(response, "\(endpoint.rawValue) in \(scope): \(String(decoding: body, as: UTF8.self))")
    }
    // The server still works.
    try await person.save(.forceUpdate, "after", ["t": .string("x")])
    #expect(try await person.lookup("after").recordName == "after")
  }

  @Test("Changed tokens, paths and headers are refused and cause no failure")
  func tokens() async throws {
    let server = try await TestServer(administratorToken: "t")
    let person = try await server.person()
    try await person.makeZone()
    let client = try await SigningClient(server)
    let upload = try await person.uploadPath()
    let random = SeededRandomness(seed: Self.seed)
    let paths = [
      person.path(.listZones, .private), upload, "/assets/download/abc.def",
      "/webcourier/abc/x", "/sign-in?ckAPIToken=\(server.apiToken)&container=c&request=a.b",
      "/account/refresh", "/admin/1/users/list",
    ]
    for _ in 0..<Self.rounds {
      let original = paths[Int(random.next() % UInt64(paths.count))]
      let path = String(decoding: Self.broken(original, random), as: UTF8.self)
      guard path != original, path.hasPrefix("/") else { continue }
      let method = ["GET", "POST", "PUT", "DELETE"][Int(random.next() % 4)]
      var headers = [
        "range": String(decoding: Self.broken("bytes=0-5", random), as: UTF8.self),
        "authorization": String(decoding: Self.broken("Bearer x", random), as: UTF8.self),
        "host": String(decoding: Self.broken("127.0.0.1:80", random), as: UTF8.self),
        "content-type": "multipart/form-data; boundary=\(random.next())",
        "origin": String(decoding: Self.broken("https://a.example", random), as: UTF8.self),
      ]
      if random.next() % 2 == 0 {
        headers.merge(
          client.headers(
            date: String(decoding: Self.broken("2023-11-14T22:13:20Z", random), as: UTF8.self),
            signature: Self.broken("0D 0123456789012345678901234567890123456789", random)
          )
        ) { $1 }
      }
      let response = await server.service.respond(
        to: WebServiceRequest(method: method, path: path, headers: headers)
      )
      #expect(response.status != 500, "seed \(Self.seed): \(method) \(path)")
      // An additional slash at the beginning is the same path.
      let place = "/" + path.drop { $0 == "/" }
      let isPage = ["/sign-in", "/assets", "/share"].contains { place.hasPrefix($0) }
      if !isPage, !place.hasPrefix("/database") {
        #expect(response.status >= 400, "seed \(Self.seed): \(method) \(path)")
      }
    }
  }

  /// Valid calls and forms besides the documented endpoints.
  private static let otherEndpoints = [
    ("/account/sign-in?ckAPIToken=$token", #"{"userName":"ada","password":"p","container":"c"}"#),
    ("/account/refresh", #"{"refreshToken":"0123456789abcdef.abc"}"#),
    ("/account/sign-out", #"{"refreshToken":"0123456789abcdef.abc"}"#),
    ("/account/delete", #"{"userName":"nobody","password":"p"}"#),
    ("/account/device", "client_id=$token&scope=iCloud.example&device_name=a%20device"),
    (
      "/account/token",
      "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=BCDFGHJK.x&client_id=$token"
    ),
    ("/account/token", "grant_type=refresh_token&refresh_token=x.y"),
    ("/activate", "code=BCDF-GHJK&user=ada&password=p&ticket=x&answer=deny"),
    ("/activate?user_code=BCDF-GHJK", "code=BCDF-GHJK&with=identity"),
    ("/delete-account", "user=nobody&password=p&ticket=abc"),
    ("/my-account", "user=ada&password=p&session=x&do=password&new=q&code=1"),
    ("/sign-up?invitation=x", "user=x&email=a@b.c&password=0123456789"),
    ("/reset-password?code=x", "password=0123456789"),
    ("/sign-in/return?state=a.b&code=c", ""),
    ("/admin/1/session/start", #"{"userName":"nobody","password":"p"}"#),
    ("/admin/1/users/create", #"{"userName":"n","password":"p","isAdministrator":false}"#),
    (
      "/admin/1/users/update", #"{"userName":"n","changes":{"phoneNumber":"+49 1","password":"q"}}"#
    ),
    ("/admin/1/users/sign-in", #"{"userName":"n","container":"c","device":"d"}"#),
    ("/admin/1/users/delete", #"{"userName":"n","purge":true}"#),
    ("/admin/1/tokens/create", #"{"container":"c","allowedOrigins":["https://a.b"]}"#),
    ("/admin/1/keys/add", #"{"publicKey":"-----BEGIN PUBLIC KEY-----","container":"c"}"#),
    (
      "/admin/1/schema/import",
      #"{"container":"iCloud.fuzz","schema":"DEFINE SCHEMA RECORD TYPE A (a STRING QUERYABLE);"}"#
    ),
    ("/admin/1/schema/diff", #"{"container":"iCloud.fuzz","schema":"DEFINE SCHEMA"}"#),
    (
      "/admin/1/schema/set-index",
      #"{"container":"c","recordType":"A","field":"a","index":"QUERYABLE","isKept":true}"#
    ),
    ("/admin/1/schema/set-roles", #"{"container":"c","userRecordName":"_x","roles":["r"]}"#),
    ("/admin/1/audit/list", #"{"after":"x","limit":5}"#),
  ]

  @Test("Changed forms and calls about accounts, devices and administration cause no failure")
  func otherEndpoints() async throws {
    let server = try await TestServer(
      limits: { $0.failedSignIns = .max },
      registration: .open,
      administratorToken: "t"
    )
    let person = try await server.person()
    try await person.makeZone()
    let random = SeededRandomness(seed: Self.seed)
    for _ in 0..<Self.rounds {
      let endpoint = Self.otherEndpoints[Int(random.next() % UInt64(Self.otherEndpoints.count))]
      let body = Self.broken(endpoint.1.replacing("$token", with: server.apiToken), random)
      let whole = endpoint.0.replacing("$token", with: server.apiToken)
      let parts = whole.split(separator: "?", maxSplits: 1).map(String.init)
      // The path stays, and its parameters change.
      let query = String(
        decoding: Self.broken(parts.count > 1 ? parts[1] : "", random),
        as: UTF8.self
      )
      let response = await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: parts[0] + (query.isEmpty ? "" : "?" + query),
          headers: ["authorization": "Bearer t", "content-type": "text/plain"],
          body: body
        )
      )
      #expect(
        response.status != 500,
        "seed \(Self.seed): \(parts[0])?\(query) \(String(decoding: body, as: UTF8.self))"
      )
    }
    // The server still works, and no user has gained a right.
    try await person.save(.forceUpdate, "after", ["t": .string("x")])
    let accounts = try server.service.accounts.descriptions()
    #expect(accounts.first { $0.userName == "ada" }?.isAdministrator == false)
  }

  @Test("Size limits are exact to the byte", arguments: [-1, 0, 1])
  func sizes(difference: Int) async throws {
    let person = try await TestServer(limits: { $0.requestSize = 4096 }).person()
    try await person.makeZone()
    let empty = #"{"zones":[],"x":""}"#
    let padding = String(repeating: "a", count: 4096 + difference - empty.utf8.count)
    let body = #"{"zones":[],"x":"\#(padding)"}"#
    #expect(body.utf8.count == 4096 + difference)
    let response = await person.send(.lookupZones, Data(body.utf8))
    #expect((response.status == 200) == (difference <= 0))
  }
}
