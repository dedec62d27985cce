import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Users' actions on their own accounts: by calls of an app, and on the page.
@Suite("A user's own account", .everyEngine)
struct OwnAccountTests {
  private func call(
    _ verb: String,
    _ body: String = "{}",
    _ server: TestServer,
    token: String?
  ) async -> WebServiceResponse {
    let user = token.map { "&ckWebAuthToken=\(WebServicePath.escape($0))" } ?? ""
    return await server.send(
      "POST",
      "/account/\(verb)?ckAPIToken=\(server.apiToken)\(user)",
      body: Data(body.utf8)
    )
  }

  private func overview(_ server: TestServer, _ token: String?) async throws -> AccountOverview {
    let reply = await call("overview", server, token: token)
    guard reply.status == 200 else {
      throw try WireCoding.decode(ErrorDictionary.self, from: reply.body)
    }
    return try WireCoding.decode(AccountOverview.self, from: reply.body)
  }

  private func call(
    _ verb: String,
    _ server: TestServer,
    token: String?
  ) async -> WebServiceResponse {
    await call(verb, "{}", server, token: token)
  }

  private func device(
    _ server: TestServer,
    as name: String = "ada"
  ) async throws
    -> DeviceCredentials
  {
    let reply = await server.send(
      "POST",
      "/account/sign-in?ckAPIToken=\(server.apiToken)",
      body: Data(
        (#"{"userName":"\#(name)","password":"secret","device":"phone","#
          + #""container":"\#(TestServer.container)"}"#).utf8
      )
    )
    return try WireCoding.decode(DeviceCredentials.self, from: reply.body)
  }

  private func opens(_ token: String?, _ server: TestServer) async -> Bool {
    await Person(server: server, webAuthToken: token).send(.listZones, Data("{}".utf8)).status
      == 200
  }

  @Test("A user lists their sessions, and ends one without affecting the others")
  func sessions() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    let other = try await server.person()
    let phone = try await device(server)
    let bob = try await server.person("bob")
    let seen = try await overview(server, ada.webAuthToken)
    #expect(seen.userName == "ada")
    #expect(seen.devices.map(\.device) == ["phone"])
    #expect(seen.sessions.count == 2)
    #expect(seen.sessions.filter(\.isOwn).count == 1)
    let id = try #require(seen.sessions.first { !$0.isOwn }?.id)
    // Not another user's.
    #expect(
      await call("end-session", #"{"id":"\#(id)"}"#, server, token: bob.webAuthToken).status == 400
    )
    #expect(
      await call(
        "end-device",
        #"{"id":"\#(seen.devices[0].id)"}"#,
        server,
        token: bob.webAuthToken
      ).status == 400
    )
    #expect(
      await call("end-session", #"{"id":"\#(id)"}"#, server, token: ada.webAuthToken).status == 200
    )
    #expect(await !opens(other.webAuthToken, server))
    #expect(await opens(ada.webAuthToken, server))
    #expect(await opens(phone.webAuthToken, server))
    let body = #"{"id":"\#(seen.devices[0].id)"}"#
    #expect(await call("end-device", body, server, token: ada.webAuthToken).status == 200)
    #expect(await !opens(phone.webAuthToken, server))
    #expect(try await overview(server, ada.webAuthToken).devices.isEmpty)
  }

  @Test("Changing the password requires the old one, ends other sessions, and keeps this device")
  func password() async throws {
    let server = try await TestServer()
    let page = try await server.person()
    let phone = try await device(server)
    let tablet = try await device(server)
    let events: DeviceTokenResponse = try await Person(
      server: server,
      webAuthToken: phone.webAuthToken
    ).extended.call(.createToken, DeviceTokenRequest(apnsEnvironment: "development"), in: nil)
    let wrong = #"{"password":"wrong","newPassword":"another"}"#
    #expect(
      await call("change-password", wrong, server, token: phone.webAuthToken).status == 401
    )
    let right = #"{"password":"secret","newPassword":"another"}"#
    #expect(
      await call("change-password", right, server, token: phone.webAuthToken).status == 200
    )
    #expect(await opens(phone.webAuthToken, server))
    #expect(await !opens(page.webAuthToken, server))
    #expect(await !opens(tablet.webAuthToken, server))
    _ = try server.service.devices.openEventStream(
      path: "/events/\(events.apnsToken)",
      lastEventID: nil
    )
    _ = try await server.service.sessions.refresh(phone.refreshToken)
    await #expect(throws: ErrorDictionary.self) {
      try await server.service.sessions.refresh(tablet.refreshToken)
    }
    _ = try await server.service.signIn(userName: "ada", password: "another", container: "c")
    let lines = try await server.service.auditLog.lines(AuditQuery(kind: "account")).lines
    #expect(lines.map(\.action) == ["account.password"])
  }

  @Test("Changing the address requires the password, and the new one is valid once confirmed")
  func address() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    func change(_ address: String, _ password: String = "secret") async -> Int {
      let body = #"{"password":"\#(password)","emailAddress":"\#(address)"}"#
      return await call("change-address", body, server, token: ada.webAuthToken).status
    }
    #expect(await change("ada@new.example", "wrong") == 401)
    #expect(await change("no address") == 400)
    #expect(await change("ada@new.example") == 200)
    let seen = try await overview(server, ada.webAuthToken)
    #expect(seen.emailAddress == "ada@new.example")
    #expect(seen.hasUnverifiedAddress)
    let found = try server.service.storage.read { try $0.account(owning: "ada@new.example") }
    #expect(found == nil)
    #expect(await opens(ada.webAuthToken, server))
  }

  @Test("A second factor is set up, renewed and removed by calls of an app")
  func secondFactor() async throws {
    let server = try await TestServer()
    let token = try await server.person().webAuthToken
    #expect(
      await call("begin-second-factor", #"{"password":"wrong"}"#, server, token: token).status
        == 401
    )
    let begun = await call("begin-second-factor", #"{"password":"secret"}"#, server, token: token)
    #expect(begun.status == 200)
    let account = try server.service.storage.account(named: "ada")
    func code() throws -> String { try server.secondFactorCode(of: account) }
    let first = #"{"code":"\#(try code())"}"#
    let confirmed = await call("confirm-second-factor", first, server, token: token)
    #expect(confirmed.status == 200)
    #expect(try await overview(server, token).recoveryCodes == 10)
    // The token alone, or with the password, no longer changes anything.
    let proof = #"{"password":"secret","newPassword":"another"}"#
    #expect(await call("change-password", proof, server, token: token).status == 401)
    server.clock.advance(seconds: 30)
    let both = #"{"password":"secret","code":"\#(try code())"}"#
    #expect(await call("renew-recovery-codes", both, server, token: token).status == 200)
    #expect(await call("remove-second-factor", both, server, token: token).status == 401)
    server.clock.advance(seconds: 30)
    let next = #"{"password":"secret","code":"\#(try code())"}"#
    #expect(await call("remove-second-factor", next, server, token: token).status == 200)
    #expect(try await !overview(server, token).hasSecondFactor)
  }

  @Test("Calls about the own account accept a user's token for the right app")
  func callers() async throws {
    let server = try await TestServer(administratorToken: "operator's token")
    let ada = try await server.person()
    for verb in OwnAccountCall.allCases {
      for token in [nil, "x", "operator's token", server.apiToken] {
        #expect(await call(verb.rawValue, server, token: token).status == 401, "\(verb)")
      }
    }
    let other = try await server.service.createAPIToken(container: "iCloud.other")
    let path = "/account/overview?ckWebAuthToken=\(WebServicePath.escape(ada.webAuthToken ?? ""))"
    #expect(await server.send("POST", "\(path)&ckAPIToken=\(other)").status == 401)
    #expect(await server.send("POST", path).status == 401)
    try await server.service.accounts.change("ada", .init(isDisabled: true))
    #expect(await call("overview", server, token: ada.webAuthToken).status == 401)
  }

  // MARK: The page

  private func session(_ html: String) throws -> String {
    String(try #require(html.firstMatch(of: /name="session" type="hidden" value="([^"]+)"/)?.1))
  }

  @Test("An unknown form of the page is refused, and every known one is on the page")
  func unknownForm() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let opened = await server.postMyAccount("user=ada&password=secret")
    let token = try session(opened.html)
    for form in ["do=nothing", "", "do=Device"] {
      let reply = await server.postMyAccount("session=\(token)&\(form)")
      #expect(reply.status == 400)
      #expect(reply.html.contains("The page has no such form."))
    }
    for action in ["password", "address", "begin", "export", "delete"] {
      #expect(opened.html.contains("name=\"do\" type=\"hidden\" value=\"\(action)\""))
    }
  }

  @Test(
    "On the page a user signs devices out and sets up a second factor, for a quarter of an hour"
  )
  func page() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let phone = try await device(server)
    #expect(await server.send("GET", "/my-account").status == 200)
    #expect(await server.postMyAccount("user=ada&password=wrong").status == 401)
    let opened = await server.postMyAccount("user=ada&password=secret")
    #expect(opened.status == 200)
    #expect(opened.html.contains("phone"))
    let token = try session(opened.html)
    // It gives no access to the data, nor to the calls of apps.
    #expect(await !opens(token, server))
    #expect(await call("overview", server, token: token).status == 401)
    let id = try #require(try server.service.sessions.devices(of: "ada").first?.id)
    #expect(await server.postMyAccount("session=\(token)&do=device&id=\(id)").status == 200)
    #expect(await !opens(phone.webAuthToken, server))
    let begun = await server.postMyAccount("session=\(token)&do=begin&password=secret")
    #expect(begun.html.contains("otpauth://totp/"))
    let letters = try #require(begun.html.firstMatch(of: /<code>([A-Z2-7]{32})<\/code>/)?.1)
    let account = try server.service.storage.account(named: "ada")
    let known = try server.service.storage.read {
      try $0.secondFactor(of: account.id, now: server.service.now)
    }
    let secret = try server.service.vault.open(
      try #require(known?.0.sealedSecret),
      for: "second factor \(account.id)"
    )
    #expect(TimeCode.base32(secret) == letters)
    let code = TimeCode.code(secret, step: TimeCode.step(at: server.service.now))
    let confirmed = await server.postMyAccount("session=\(token)&do=confirm&code=\(code)")
    #expect(confirmed.html.contains("recovery codes"))
    // A wrong password changes nothing; with the right one the page stays open.
    #expect(
      await server.postMyAccount("session=\(token)&do=password&password=no&new=another").status
        == 401
    )
    let changed = await server.postMyAccount(
      "session=\(token)&do=password&password=secret&new=another"
    )
    #expect(changed.status == 200)
    #expect(await server.postMyAccount("user=ada&password=another").status == 401)
    server.clock.advance(seconds: 15 * 60)
    #expect(await server.postMyAccount("session=\(token)&do=codes&password=another").status == 401)
  }

  @Test("A refused form shows its reason beside its fields, or at the top if the form is gone")
  func refusedForms() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let token = try session(await server.postMyAccount("user=ada&password=secret").html)
    let refused = await server.postMyAccount("session=\(token)&do=password&password=no&new=another")
    #expect(refused.status == 401)
    let parts = refused.html.split(separator: "id=\"refusal\"")
    #expect(parts.count == 2)
    let form = parts.first?.matches(of: /name="do" type="hidden" value="(\w+)"/).last
    #expect(form?.1 == "password")
    let field = "<input autofocus aria-describedby=\"refusal\" name=\"password\""
    #expect(refused.html.contains(field))
    let gone = await server.postMyAccount("session=\(token)&do=confirm&code=000000")
    #expect(gone.status != 200)
    #expect(!gone.html.contains("id=\"refusal\""))
    #expect(gone.html.contains("<p class=\"message\" role=\"status\">"))
  }

  @Test("A proof at another service waives no code of the account's own second factor")
  func issuersPage() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let account = try server.service.storage.account(named: "ada")
    _ = try await server.service.secondFactors.begin(of: account)
    func code() throws -> String { try server.secondFactorCode(of: account) }
    _ = try await server.service.secondFactors.confirm(of: account, code: try code(), from: nil)
    server.clock.advance(seconds: 30)
    let token = "a token of the page that an issuer opened"
    let session = StoredSession(
      digest: TokenDigest.of(token),
      container: PageSession.ownPageOfIssuer.rawValue,
      account: account.id,
      userRecordName: "",
      expires: server.service.now + 60_000,
      isKept: false
    )
    try await server.service.sessions.begin(session, of: account)
    let form = "session=\(token.replacing(" ", with: "+"))&password=secret"
    for change in [
      "do=remove", "do=codes", "do=begin", "do=password&new=another",
      "do=address&email=mallory@example.org",
    ] {
      #expect(await server.postMyAccount("\(form)&\(change)").status == 401, "\(change)")
    }
    #expect(try server.service.secondFactors.isOn(for: account.id))
    #expect(await server.postMyAccount("\(form)&do=remove&code=\(try code())").status == 200)
    #expect(try !server.service.secondFactors.isOn(for: account.id))
  }

  @Test("A user token or an administrator's session does not open the account page")
  func otherSessions() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await server.service.accounts.change("ada", .init(isAdministrator: true))
    let body = Data(#"{"userName":"ada","password":"secret"}"#.utf8)
    let reply = await server.send("POST", "/admin/1/session/start", body: body)
    let admin = try WireCoding.decode(AdminSession.self, from: reply.body).token
    for token in [admin, ada.webAuthToken ?? "", "x", ""] {
      #expect(await server.postMyAccount("session=\(token)&do=begin&password=secret").status == 401)
    }
    #expect(await call("overview", server, token: admin).status == 401)
  }
}
