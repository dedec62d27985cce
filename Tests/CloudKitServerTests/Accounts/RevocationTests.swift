import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// What ends with a sign-in: sessions, refresh tokens, and the URLs issued to it.
@Suite("Revocation", .everyEngine)
struct RevocationTests {
  private func register(_ person: Person, token: String? = nil) async throws -> String {
    let reply: DeviceTokenResponse = try await person.call(
      .createToken,
      DeviceTokenRequest(apnsEnvironment: "development", apnsToken: token),
      in: nil
    )
    return reply.apnsToken
  }

  /// 200 if the URL is valid, immediately because the timeout is zero.
  private func listens(_ server: TestServer, _ token: String) throws -> Bool {
    do {
      _ = try server.service.devices.openEventStream(path: "/events/\(token)", lastEventID: nil)
      return true
    } catch let error as ErrorDictionary where error.serverErrorCode == .notFound {
      return false
    }
  }

  // MARK: Sessions

  @Test("Ending a device ends every user token that it fetched")
  func everyToken() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    var device = try await server.signIn()
    var tokens = [device.webAuthToken]
    for _ in 0..<9 {
      device = try await server.refresh(device.refreshToken)
      tokens.append(device.webAuthToken)
    }
    // Concurrent requests use the previous one.
    for token in tokens.suffix(2) { #expect(await server.status(of: token) == 200) }
    let id = String(device.refreshToken.prefix { $0 != "." })
    try await server.service.sessions.revokeDevice(id)
    for token in tokens { #expect(await server.status(of: token) == 421) }
  }

  @Test("A renewal does not restore an ended session")
  func renewal() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    let digest = TokenDigest.of(try #require(ada.webAuthToken))
    let storage = server.service.storage
    func renew() throws {
      var batch = WriteBatch()
      batch.renewedSessions = [.init(digest: digest, expires: .max)]
      try storage.commit(batch)
    }
    try renew()
    #expect(try storage.read { try $0.session(digest: digest) }?.expires == .max)
    try await server.service.sessions.signOutEverywhere("ada")
    try renew()
    #expect(try storage.read { try $0.session(digest: digest) } == nil)
  }

  @Test("A session ends after ninety days, regardless of its use")
  func age() async throws {
    let server = try await TestServer()
    let token = try #require(try await server.person().webAuthToken)
    for _ in 0..<12 {
      server.clock.advance(seconds: 7.4 * 24 * 3600)
      #expect(await server.status(of: token) == 200)
    }
    server.clock.advance(seconds: 1.3 * 24 * 3600)
    #expect(await server.status(of: token) == 421)
  }

  @Test("A password that was verified a moment ago does not open an account changed since")
  func changedMeanwhile() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let service = server.service
    for changes in [
      AccountChanges(password: "another secret"), .init(isDisabled: true),
    ] {
      let password = changes.password == nil ? "another secret" : "secret"
      let account = try await service.passwords.check(
        userName: "ada",
        password: password,
        from: nil
      )
      try await service.accounts.change("ada", changes)
      await #expect(throws: ErrorDictionary.self) {
        try await service.sessions.start(
          account: account,
          container: TestServer.container,
          isKept: true
        )
      }
      await #expect(throws: ErrorDictionary.self) {
        try await service.sessions.startGrant(
          account: account,
          container: TestServer.container,
          device: "x"
        )
      }
    }
  }

  @Test("A session that ended while it was read is not cached")
  func cacheGeneration() {
    let cache = SessionCache()
    let session = StoredSession(
      digest: "d",
      container: "c",
      account: "a",
      userRecordName: "_u",
      expires: .max,
      isKept: true
    )
    let generation = cache.generation
    cache.forgetSessions()
    cache.note(session, readIn: generation, now: 0)
    #expect(cache.session(digest: "d", now: 0) == nil)
    cache.note(session, readIn: cache.generation, now: 0)
    #expect(cache.session(digest: "d", now: 0) == session)
  }

  @Test("An allowed program gets nothing after the account's sessions have ended")
  func consentThatEnded() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    for change in 0..<3 {
      let device = try await allowedProgram(server)
      switch change {
      case 0: try await server.service.sessions.signOutEverywhere("ada")
      case 1: try await server.service.accounts.change("ada", .init(password: "secret"))
      default:
        // Another account has the name now.
        try await server.service.accounts.delete("ada", purgesNow: true)
        _ = try await server.person()
      }
      #expect(await fetchTokens(server, device).status == 400, "\(change)")
    }
    #expect(await fetchTokens(server, try await allowedProgram(server)).status == 200)
  }

  private struct DeviceCode: Decodable {
    var device_code: String
    var user_code: String
  }

  /// The code of a program that ada has allowed.
  private func allowedProgram(_ server: TestServer) async throws -> String {
    let asked = await server.send(
      "POST",
      "/account/device",
      body: Data("client_id=\(server.apiToken)&scope=\(TestServer.container)".utf8)
    )
    let code = try WireCoding.decode(DeviceCode.self, from: asked.body)
    let page = await server.send(
      "POST",
      "/activate",
      body: Data("code=\(code.user_code)&user=ada&password=secret".utf8)
    )
    #expect(page.status == 200)
    return code.device_code
  }

  private func fetchTokens(_ server: TestServer, _ code: String) async -> WebServiceResponse {
    await server.send(
      "POST",
      "/account/token",
      body: Data(
        "grant_type=\(CloudKitService.deviceGrant)&device_code=\(code)&client_id=\(server.apiToken)"
          .utf8
      )
    )
  }

  // MARK: URLs of files

  /// An upload URL and a download URL of a user.
  private func fileAddresses(_ person: Person) async throws -> (up: String, down: String) {
    func url() async throws -> String {
      let reply: UploadTokensResponse = try await person.call(
        .uploadAssets,
        UploadTokensRequest(
          tokens: [UploadTokenField(fieldName: "file", recordType: "Note")],
          zoneID: TestServer.zone
        )
      )
      return String(try reply.tokens[0].get().url.dropFirst("http://127.0.0.1:8080".count))
    }
    let name = UUID().uuidString
    let sent = await person.server.send("POST", try await url(), body: Data("bytes".utf8))
    let value = try WireCoding.decode(UploadedFileResponse.self, from: sent.body).singleFile
    let saved = try await person.save(.create, name, ["file": .asset(value)])
    let down = try #require(saved.content("file")?.assets.first?.downloadURL)
    return (
      try await url(), String(down.dropFirst("http://127.0.0.1:8080".count))
    )
  }

  private func statuses(
    _ server: TestServer,
    _ addresses: (up: String, down: String)
  ) async -> [Int] {
    [
      await server.send("POST", addresses.up, body: Data("more".utf8)).status,
      await server.send("GET", addresses.down).status,
    ]
  }

  @Test("URLs of files end with the account's sessions", arguments: 0..<3)
  func fileAddressesOfAccount(end: Int) async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await ada.makeZone()
    let addresses = try await fileAddresses(ada)
    let again = try await fileAddresses(ada)
    #expect(await statuses(server, again) == [200, 200])
    switch end {
    case 0: try await server.service.accounts.change("ada", .init(isDisabled: true))
    case 1: try await server.service.accounts.change("ada", .init(password: "secret"))
    default: try await server.service.sessions.signOutEverywhere("ada")
    }
    #expect(await statuses(server, addresses) == [403, 403])
  }

  @Test("URLs of files survive the device's renewals, and end with the device")
  func fileAddressesOfDevice() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await ada.makeZone()
    var device = try await server.signIn()
    let person = Person(server: server, webAuthToken: device.webAuthToken)
    let addresses = try await fileAddresses(person)
    for _ in 0..<3 { device = try await server.refresh(device.refreshToken) }
    #expect(await statuses(server, addresses) == [200, 200])
    let others = try await fileAddresses(ada)
    let id = String(device.refreshToken.prefix { $0 != "." })
    try await server.service.sessions.revokeDevice(id)
    #expect(await statuses(server, addresses) == [403, 403])
    #expect(await statuses(server, others) == [200, 200])
  }

  @Test("URLs of files end with the API token with which they were requested")
  func fileAddressesOfToken() async throws {
    let server = try await TestServer()
    var ada = try await server.person()
    try await ada.makeZone()
    let token = try await server.service.createAPIToken()
    ada.apiToken = token
    let addresses = try await fileAddresses(ada)
    try await server.service.apiTokens.remove(token)
    #expect(await statuses(server, addresses) == [403, 403])
  }

  // MARK: Event URLs

  @Test("An event URL ends with the account's sessions, and is not restored with new ones")
  func disabledAccount() async throws {
    let server = try await TestServer()
    let ada = try await server.person().extended
    let token = try await register(ada)
    #expect(try listens(server, token))
    var stream = try server.service.devices.openEventStream(
      path: "/events/\(token)",
      lastEventID: nil
    )
    #expect(await stream.next() != nil)
    async let end = stream.next()
    try await server.service.accounts.change("ada", .init(isDisabled: true))
    #expect(await end == nil)
    #expect(try !listens(server, token))
    try await server.service.accounts.change("ada", .init(isDisabled: false))
    try await server.service.accounts.change("ada", .init(password: "another secret"))
    #expect(try !listens(server, token))
    #expect(await server.send("GET", "/webcourier/\(token)").status == 404)
  }

  @Test("Ending a device ends its event URL, and no other device's")
  func revokedDevice() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    var tokens: [String] = []
    var ids: [String] = []
    for _ in 0..<2 {
      var device = try await server.signIn()
      let person = Person(server: server, webAuthToken: device.webAuthToken).extended
      tokens.append(try await register(person))
      ids.append(String(device.refreshToken.prefix { $0 != "." }))
      // The URL survives the session that it was issued to, while the device is signed in.
      for _ in 0..<3 { device = try await server.refresh(device.refreshToken) }
    }
    server.clock.advance(seconds: 24 * 3600)
    #expect(try listens(server, tokens[0]))
    #expect(try listens(server, tokens[1]))
    try await server.service.sessions.revokeDevice(ids[0])
    #expect(try !listens(server, tokens[0]))
    #expect(try listens(server, tokens[1]))
  }

  @Test("An event URL ends with the session of a page, or after long disuse")
  func unused() async throws {
    let server = try await TestServer(limits: { $0.keptSessionLifetime = 1000 * 24 * 3600 })
    let ada = try await server.person().extended
    let kept = try await register(ada)
    let short = Person(
      server: server,
      webAuthToken: try await server.service.signIn(
        userName: "ada",
        container: TestServer.container,
        isKept: false
      )
    )
    let brief = try await register(short.extended)
    #expect(try listens(server, brief))
    server.clock.advance(seconds: 3600)
    #expect(try !listens(server, brief))
    for _ in 0..<3 {
      server.clock.advance(seconds: 60 * 24 * 3600)
      #expect(try listens(server, kept))
      // The write that extends it is queued in the lane before this one.
      _ = try await server.service.auditLog.lines()
    }
    server.clock.advance(seconds: 91 * 24 * 3600)
    #expect(try !listens(server, kept))
    try await server.service.housekeep()
    #expect(
      try server.service.storage.read { try $0.device(token: TokenDigest.of(kept)) } == nil
    )
  }

  @Test("A user has at most fifty devices, and without a user nothing is stored")
  func quantity() async throws {
    let server = try await TestServer()
    let ada = try await server.person().extended
    let first = try await register(ada)
    for _ in 0..<49 {
      server.clock.advance(seconds: 1)
      _ = try await register(ada)
    }
    #expect(try listens(server, first))
    // Registering the same device again takes no place.
    #expect(try await register(ada, token: first) == first)
    server.clock.advance(seconds: 1)
    let second = try await register(ada)
    #expect(try listens(server, first))
    #expect(try listens(server, second))
    let anonymous = try await register(server.visitor.extended)
    #expect(try listens(server, anonymous))
    let stored = try server.service.storage.read {
      try $0.device(token: TokenDigest.of(anonymous))
    }
    #expect(stored == nil)
    server.clock.advance(seconds: 91 * 24 * 3600)
    #expect(try !listens(server, anonymous))
  }

  @Test("The data folder has no device token")
  func digests() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let token = try await register(try await server.person().extended)
      await server.service.shutdown()
      let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
      for case let file as URL in files ?? .init() {
        guard let bytes = try? Data(contentsOf: file) else { continue }
        #expect(bytes.range(of: Data(token.utf8)) == nil, "\(file.lastPathComponent)")
      }
    }
  }
}
