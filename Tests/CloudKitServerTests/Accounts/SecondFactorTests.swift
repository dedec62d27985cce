import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Codes of authenticator apps in addition to passwords.
@Suite("Second factors", .everyEngine)
struct SecondFactorTests {
  /// A server, and an account whose app has a secret.
  private struct World {
    var server: TestServer
    var secret: Data
    var recovery: [String]

    /// The present code of the app.
    var code: String {
      TimeCode.code(secret, step: TimeCode.step(at: server.service.now))
    }

    func signIn(
      _ password: String = "secret",
      code: String? = nil,
      from address: String? = nil
    ) async -> WebServiceResponse {
      let part = code.map { #","code":"\#($0)""# } ?? ""
      return await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: "/account/sign-in?ckAPIToken=\(server.apiToken)",
          body: Data(
            #"{"userName":"ada","password":"\#(password)","container":"c"\#(part)}"#.utf8
          ),
          clientAddress: address
        )
      )
    }
  }

  private func world() async throws -> World {
    let server = try await TestServer(administratorToken: "operator's token")
    _ = try await server.person()
    let service = server.service
    let account = try service.storage.account(named: "ada")
    let offer = try await service.secondFactors.begin(of: account)
    let entry = try service.storage.read { try $0.secondFactor(of: account.id, now: service.now) }
    let sealed = try #require(entry?.0.sealedSecret)
    let secret = try service.vault.open(sealed, for: "second factor \(account.id)")
    #expect(offer.secret == TimeCode.base32(secret))
    #expect(sealed.range(of: secret) == nil)
    var world = World(server: server, secret: secret, recovery: [])
    // No code is required before the app is confirmed.
    #expect(await world.signIn().status == 200)
    world.recovery = try await service.secondFactors.confirm(
      of: account,
      code: world.code,
      from: nil
    )
    server.clock.advance(seconds: 30)
    return world
  }

  @Test(
    "Codes equal those of RFC 6238's appendix",
    arguments: [
      (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"),
      (1_234_567_890, "005924"), (2_000_000_000, "279037"), (20_000_000_000, "353130"),
    ]
  )
  func vectors(seconds: Int64, code: String) {
    let secret = Data("12345678901234567890".utf8)
    #expect(TimeCode.code(secret, step: TimeCode.step(at: seconds * 1000)) == code)
  }

  @Test(
    "Base32 equals RFC 4648's vectors",
    arguments: [("", ""), ("f", "MY"), ("fooba", "MZXW6YTB")]
  )
  func base32(text: String, encoded: String) {
    #expect(TimeCode.base32(Data(text.utf8)) == encoded)
    #expect(
      TimeCode.address(Data("fooba".utf8), account: "a b", issuer: "h.example")
        == "otpauth://totp/h%2Eexample:a%20b?secret=MZXW6YTB&issuer=h%2Eexample&algorithm=SHA1"
        + "&digits=6&period=30"
    )
  }

  @Test("An account with a second factor requires password and code, each code once")
  func signIn() async throws {
    let world = try await world()
    #expect(await world.signIn().status == 401)
    #expect(await world.signIn("wrong", code: world.code).status == 401)
    #expect(await world.signIn(code: "000000").status == 401)
    #expect(await world.signIn(code: world.code).status == 200)
    // A used code is refused; the next one is accepted.
    #expect(await world.signIn(code: world.code).status == 401)
    world.server.clock.advance(seconds: 30)
    let code = world.code
    world.server.clock.advance(seconds: 29)
    #expect(await world.signIn(code: "\(code.prefix(3)) \(code.suffix(3))").status == 200)
    let early = TimeCode.code(
      world.secret,
      step: TimeCode.step(at: world.server.service.now) + 2
    )
    #expect(await world.signIn(code: early).status == 401)
  }

  @Test("Only one of several concurrent uses of a code succeeds")
  func atOnce() async throws {
    let world = try await world()
    let code = world.code
    let statuses = await withTaskGroup(of: Int.self) { group in
      for number in 0..<6 {
        group.addTask { await world.signIn(code: code, from: "192.0.2.\(number)").status }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.filter { $0 == 200 }.count == 1)
  }

  @Test("A recovery code is valid once, and new ones replace the others")
  func recovery() async throws {
    let world = try await world()
    #expect(world.recovery.count == 10)
    #expect(await world.signIn(code: world.recovery[0].lowercased()).status == 200)
    #expect(await world.signIn(code: world.recovery[0]).status == 401)
    #expect(await world.signIn(code: world.recovery[1]).status == 200)
    let service = world.server.service
    let account = try service.storage.account(named: "ada")
    let next = try await service.secondFactors.renewRecoveryCodes(of: account, from: nil)
    #expect(await world.signIn(code: world.recovery[2]).status == 401)
    #expect(await world.signIn(code: next[0]).status == 200)
    let body = try service.storage.read { try $0.entry(SecondFactor.key(account.id)) }?.body
    for code in next {
      #expect(body?.range(of: Data(code.replacing("-", with: "").utf8)) == nil)
    }
  }

  @Test("Wrong codes lock the account for an hour, from all networks together")
  func guessing() async throws {
    let world = try await world()
    for number in 0..<10 {
      #expect(await world.signIn(code: "00000x", from: "203.0.113.\(number)").status == 401)
    }
    #expect(await world.signIn(code: world.code, from: "192.0.2.1").status == 429)
    // A password without a code is not counted, and resets no counter.
    #expect(await world.signIn(from: "192.0.2.1").status == 401)
    #expect(await world.signIn(code: world.code, from: "192.0.2.1").status == 429)
    world.server.clock.advance(seconds: 3600)
    #expect(await world.signIn(code: world.code, from: "192.0.2.1").status == 200)
  }

  @Test("A user token confirms no factor that is confirmed, and uses up no attempt of its owner")
  func confirmingAgain() async throws {
    let world = try await world()
    let token = try await world.server.service.signIn(
      userName: "ada",
      container: TestServer.container
    )
    for _ in 0..<11 {
      let reply = await world.server.send(
        "POST",
        "/account/confirm-second-factor?ckAPIToken=\(world.server.apiToken)&ckWebAuthToken="
          + WebServicePath.escape(token),
        body: Data(#"{"code":"000000"}"#.utf8)
      )
      #expect(reply.status == 400)
    }
    #expect(await world.signIn(code: world.code).status == 200)
  }

  @Test("Codes for a factor that is not being set up are no attempts")
  func confirmingNothing() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let account = try server.service.storage.account(named: "ada")
    for _ in 0..<11 {
      await #expect {
        _ = try await server.service.secondFactors.confirm(of: account, code: "000000", from: nil)
      } throws: {
        ($0 as? ErrorDictionary)?.serverErrorCode == .authenticationFailed
      }
    }
  }

  @Test("Wrong codes for a factor that is not confirmed yet are counted by themselves")
  func confirmingWrongly() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let service = server.service
    let account = try service.storage.account(named: "ada")
    _ = try await service.secondFactors.begin(of: account)
    func confirm() async throws {
      _ = try await service.secondFactors.confirm(of: account, code: "00000x", from: nil)
    }
    for _ in 0..<10 {
      await #expect { try await confirm() } throws: {
        ($0 as? ErrorDictionary)?.serverErrorCode == .authenticationFailed
      }
    }
    await #expect { try await confirm() } throws: {
      ($0 as? ErrorDictionary)?.serverErrorCode == .throttled
    }
    // The attempts of sign-ins are counted elsewhere.
    let attempt = SignInAttempt(codeOf: account, sender: nil, limits: service.limits)
    for bucket in attempt.buckets {
      #expect(try service.storage.read { try $0.entry(bucket.key) } == nil)
    }
  }

  @Test("Every page and call that takes a password requires the code too")
  func everyEntrance() async throws {
    let world = try await world()
    let server = world.server
    let ada = Person(
      server: server,
      webAuthToken: try await server.service.signIn(
        userName: "ada",
        container: TestServer.container
      )
    )
    try await ada.makeZone()
    try await ada.save(.create, "a")
    let share = try await ada.share("a", publicPermission: .readOnly)
    let form = "user=ada&password=secret"
    let json = #"{"userName":"ada","password":"secret"}"#
    for (path, body) in [
      ("/sign-in?ckAPIToken=\(server.apiToken)&container=\(TestServer.container)", form),
      ("/share/\(share.shortGUID ?? "")", form), ("/delete-account", form),
      ("/account/delete", json), ("/admin/1/session/start", json),
    ] {
      #expect(await server.send("POST", path, body: Data(body.utf8)).status == 401, "\(path)")
    }
    await #expect(throws: ErrorDictionary.self) {
      try await server.service.signIn(
        userName: "ada",
        password: "secret",
        container: TestServer.container
      )
    }
    let page = "/sign-in?ckAPIToken=\(server.apiToken)&container=\(TestServer.container)"
    let body = Data("\(form)&code=\(world.code)".utf8)
    #expect(await server.send("POST", page, body: body).status == 200)
  }

  @Test("A device needs password and code although it shows a code itself")
  func device() async throws {
    let world = try await world()
    let server = world.server
    let begun = await server.send(
      "POST",
      "/account/device",
      body: Data("client_id=\(server.apiToken)&scope=\(TestServer.container)".utf8)
    )
    let reply = try #require(
      try JSONSerialization.jsonObject(with: begun.body) as? [String: Any]
    )
    let shown = try #require(reply["user_code"] as? String)
    let page = await server.send("GET", "/activate?user_code=\(shown)")
    let html = String(decoding: page.body, as: UTF8.self)
    // The form names every field once.
    let names = html.matches(of: /<input name="([^"]+)"/).map { String($0.1) }
    #expect(names == ["user_code", "user", "password", "code"])
    func letIn(_ form: String) async -> Int {
      await server.send(
        "POST",
        "/activate?user_code=\(shown)",
        body: Data("user_code=\(shown)&user=ada&password=secret\(form)".utf8)
      ).status
    }
    #expect(await letIn("") == 401)
    #expect(await letIn("&code=\(world.code)") == 200)
    let code = try #require(reply["device_code"] as? String)
    let granted = await server.send(
      "POST",
      "/account/token",
      body: Data(
        ("grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=\(code)"
          + "&client_id=\(server.apiToken)").utf8
      )
    )
    #expect(granted.status == 200)
    // No pending code is in the storage.
    let entries = try server.service.storage.read {
      try $0.entries(DirectoryRange(.deviceCode, limit: .max))
    }
    #expect(!entries.contains { $0.key.name.contains(shown.replacing("-", with: "")) })
  }

  @Test("An administrator removes a factor, which is logged")
  func removal() async throws {
    let world = try await world()
    let admin = Administrator(server: world.server, token: "operator's token")
    let users = try #require(try await admin.call("users/list")["users"] as? [[String: Any]])
    #expect(users.first?["hasSecondFactor"] as? Bool == true)
    _ = try await admin.call("users/remove-factor", #"{"userName":"ada"}"#)
    #expect(await admin.send("users/remove-factor", #"{"userName":"ada"}"#).status == 400)
    #expect(await world.signIn().status == 200)
    let lines = try await world.server.service.auditLog.lines(AuditQuery(kind: "second-factor"))
      .lines
    #expect(lines.map(\.action) == ["second-factor.remove", "second-factor.add"])
    #expect(lines.first?.by == "operator")
  }

  @Test("An unconfirmed factor expires, and a confirmed one is not replaced")
  func unconfirmed() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let service = server.service
    let account = try service.storage.account(named: "ada")
    _ = try await service.secondFactors.begin(of: account)
    server.clock.advance(seconds: 3601)
    await #expect(throws: ErrorDictionary.self) {
      try await service.secondFactors.confirm(of: account, code: "000000", from: nil)
    }
    let world = try await world()
    let other = try world.server.service.storage.account(named: "ada")
    await #expect(throws: AdministrationError.self) {
      try await world.server.service.secondFactors.begin(of: other)
    }
    #expect(await world.signIn(code: world.code).status == 200)
  }
}
