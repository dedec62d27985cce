import CloudKitServer
import CloudKitWebServices
import Crypto
import Foundation
import Testing

@Suite("Server-to-server keys", .everyEngine)
struct ServerKeyTests {
  private func client() async throws -> SigningClient {
    try await SigningClient(TestServer())
  }

  @Test("A signed request writes and reads the public database as the key's own user")
  func ownUser() async throws {
    let client = try await client()
    let current = await client.send(
      try client.signed(client.path(.currentUser), method: "GET")
    )
    let user = try WireCoding.decode(UserIdentity.self, from: current.body)
    let name = try #require(user.userRecordName)
    #expect(name.wholeMatch(of: /_[0-9a-f]{32}/) != nil)
    let body = try client.modify([.make(.create, "r", ["n": .int64(1)])])
    let saved = await client.send(try client.signed(client.path(.modifyRecords), body))
    let record = try WireCoding.decode(RecordsResponse.self, from: saved.body).records[0].get()
    #expect(record.created?.userRecordName == name)
    // Anyone reads it; only the key, its creator, writes it.
    let ada = try await client.server.person()
    #expect(try await ada.lookup("r", in: .public, zone: nil).content("n") == .int64(1))
    let denied = try await ada.modify([.make(.forceDelete, "r")], in: .public, zone: nil)
    #expect(denied[0].error?.serverErrorCode == .accessDenied)
  }

  @Test("The query is signed as it was sent, and an empty body with or without its hash")
  func message() async throws {
    var client = try await client()
    let path = client.path(.currentUser, query: "?ckjsVersion=2.6.4&clientId=a%2Fb")
    #expect(try await client.answer(path, method: "GET").status == 200)
    client.hashesEmptyBody = false
    #expect(try await client.answer(path, method: "GET").status == 200)
    var request = try client.signed(path, method: "GET")
    request.path += "&more=1"
    #expect(await client.send(request).status == 401)
    request = try client.signed(client.path(.queryRecords), Data("{}".utf8))
    request.body = Data("{ }".utf8)
    #expect(await client.send(request).status == 401)
  }

  @Test(
    "A date is valid within ten minutes in either direction, and not a second more",
    arguments: [1.0, -1.0]
  )
  func window(direction: Double) async throws {
    let client = try await client()
    for (seconds, status) in [(0.0, 200), (600, 200), (601, 401)] {
      let date = (client.server.clock.now + direction * seconds).formatted(.iso8601)
      let answer = try await client.answer(client.path(.currentUser), method: "GET", date: date)
      #expect(answer.status == status)
    }
    for date in ["", "yesterday", "2023-13-01T00:00:00Z"] {
      let answer = try await client.answer(client.path(.currentUser), method: "GET", date: date)
      #expect(answer.code == .authenticationFailed)
    }
  }

  @Test(
    "Offsets and fractions of a second are parsed",
    arguments: [
      "2023-11-14T22:13:20+00:00", "2023-11-14T22:13:20.123Z", "2023-11-14T23:13:20+01:00",
    ]
  )
  func dates(text: String) async throws {
    let client = try await client()
    let answer = try await client.answer(client.path(.currentUser), method: "GET", date: text)
    #expect(answer.status == 200)
  }

  @Test("Another key, another container, a removed key: 401")
  func strangers() async throws {
    let client = try await client()
    let path = client.path(.currentUser)
    var other = client
    other.privateKey = P256.Signing.PrivateKey()
    #expect(try await other.answer(path, method: "GET").code == .authenticationFailed)
    other = client
    other.keyID = "nobody"
    #expect(try await other.answer(path, method: "GET").code == .authenticationFailed)
    other = client
    other.container = "iCloud.other"
    #expect(try await other.answer(other.path(.currentUser), method: "GET").status == 401)
    other = client
    other.environment = .production
    #expect(try await other.answer(other.path(.currentUser), method: "GET").status == 401)
    try await client.server.service.serverKeys.remove(client.keyID)
    #expect(try await client.answer(path, method: "GET").status == 401)
  }

  @Test("A key can access only the public database, and cannot look up people")
  func publicOnly() async throws {
    let client = try await client()
    for scope in [DatabaseScope.private, .shared] {
      let answer = try await client.answer(client.path(.listZones, scope), Data("{}".utf8))
      #expect(answer.code == .authenticationFailed)
    }
    for endpoint in [Endpoint.discoverUsers, .lookupUsersByEmail, .lookupUsersByID] {
      let answer = try await client.answer(client.path(endpoint), Data("{}".utf8))
      #expect(answer.code == .authenticationFailed)
    }
  }

  @Test("A repeated signature gets the first reply and does nothing, after a restart too")
  func replay() async throws {
    try await withTemporaryFolder { folder in
      let client = try await SigningClient(TestServer(folder: folder))
      let body = try client.modify([.make(.create, nil, ["n": .int64(1)])])
      let request = try client.signed(client.path(.modifyRecords), body)
      let first = await client.send(request)
      let name = try WireCoding.decode(RecordsResponse.self, from: first.body).records[0].get()
        .recordName
      #expect(await client.send(request).body == first.body)
      await client.server.service.shutdown()

      var reopened = client
      reopened.server = try await TestServer(folder: folder, seed: 2, clock: client.server.clock)
      let again = await reopened.send(request)
      #expect(again.status == 200)
      #expect(
        try WireCoding.decode(RecordsResponse.self, from: again.body).records[0].get().recordName
          == name
      )
      // The same read gets the former reply, regardless of changes since.
      let lookup = try WireCoding.encode(
        LookupRecordsRequest(records: [LookupRecord(recordName: name ?? "")])
      )
      let read = try reopened.signed(reopened.path(.lookupRecords), lookup)
      let before = await reopened.send(read)
      let deletion = try reopened.modify([.make(.forceDelete, name)])
      #expect(try await reopened.answer(reopened.path(.modifyRecords), deletion).status == 200)
      #expect(await reopened.send(read).body == before.body)
      await reopened.server.service.shutdown()
    }
  }

  @Test("A signed request that was refused for a transient reason is executed when repeated")
  func refusedForNow() async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 1
      $0.requestBurst = 1
    })
    let client = try await SigningClient(server)
    let path = client.path(.lookupRecords)
    let body = try WireCoding.encode(
      LookupRecordsRequest(records: [LookupRecord(recordName: "a")])
    )
    #expect(await client.send(try client.signed(path, body)).status == 200)
    let request = try client.signed(path, body)
    #expect(await client.send(request).status == 429)
    server.clock.advance(seconds: 2)
    #expect(await client.send(request).status == 200)
  }

  @Test("A signature with its second number negated is the same signature")
  func malleability() async throws {
    let client = try await client()
    let body = try client.modify([.make(.create, nil)])
    var request = try client.signed(client.path(.modifyRecords), body)
    let first = await client.send(request)
    let der = try #require(
      Data(base64Encoded: request.headers["x-apple-cloudkit-request-signaturev1"] ?? "")
    )
    let raw = try P256.Signing.ECDSASignature(derRepresentation: der).rawRepresentation
    let turned = raw.prefix(32) + Self.negated(raw.suffix(32))
    let other = try P256.Signing.ECDSASignature(rawRepresentation: turned)
    request.headers["x-apple-cloudkit-request-signaturev1"] =
      other.derRepresentation.base64EncodedString()
    #expect(await client.send(request).body == first.body)
  }

  /// The order of the curve minus the number.
  private static func negated(_ number: Data) -> Data {
    let order: [UInt8] = [
      0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
      0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63,
      0x25, 0x51,
    ]
    var result = [UInt8](repeating: 0, count: 32)
    var borrow = 0
    for (index, byte) in zip((0..<32).reversed(), number.reversed()) {
      let difference = Int(order[index]) - Int(byte) - borrow
      borrow = difference < 0 ? 1 : 0
      result[index] = UInt8(truncatingIfNeeded: difference + borrow * 256)
    }
    return Data(result)
  }

  @Test("Unusual encodings of signatures are read, and invalid bytes refused")
  func encodings() async throws {
    let client = try await client()
    let path = client.path(.currentUser)
    let date = client.server.clock.now.formatted(.iso8601)
    let hash = Data(SHA256.hash(data: Data())).base64EncodedString()
    func send(_ make: (Data) -> Data) async throws -> Int {
      let signature = try client.privateKey.signature(for: Data("\(date):\(hash):\(path)".utf8))
      let request = WebServiceRequest(
        method: "GET",
        path: path,
        headers: client.headers(date: date, signature: make(signature.rawRepresentation))
      )
      return await client.send(request).status
    }
    func integer(_ bytes: Data) -> Data { Data([2, UInt8(bytes.count)]) + bytes }
    func sequence(_ bytes: Data) -> Data { Data([0x30, UInt8(bytes.count)]) + bytes }
    // Missing and superfluous leading zeros are both accepted.
    #expect(
      try await send { sequence(integer($0.prefix(32)) + integer($0.suffix(32))) } == 200
    )
    let padded = try await send { raw in
      sequence(
        integer(Data([0, 0]) + raw.prefix(32)) + integer(Data([0, 0, 0]) + raw.suffix(32))
      )
    }
    #expect(padded == 200)
    let long = try await send { raw in
      let content = integer(raw.prefix(32)) + integer(raw.suffix(32))
      return Data([0x30, 0x81, UInt8(content.count)]) + content
    }
    #expect(long == 200)
    #expect(try await send { $0 } == 401)
    #expect(try await send { sequence(integer($0.prefix(32))) } == 401)
    #expect(try await send { _ in Data() } == 401)
    #expect(
      try await send { sequence(integer($0.prefix(32)) + integer($0.suffix(32))) + Data([0]) }
        == 401
    )
  }

  @Test("Keys that are not on P-256 are refused with an explanation")
  func badKeys() async throws {
    let server = try await TestServer()
    let other = P384.Signing.PrivateKey().publicKey.pemRepresentation
    for text in ["", "hello", other] {
      await #expect(throws: AdministrationError.self) {
        try await server.service.serverKeys.add(
          publicKey: text,
          name: "",
          container: TestServer.container,
          environment: .development
        )
      }
    }
  }
}
