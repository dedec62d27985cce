import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// The admin API.
extension AccountLifeTests {
  @Test("A request of the admin API with an unknown member is refused and changes nothing")
  func unknownMembers() async throws {
    let administrator = try await administrator()
    let user = #"{"userName":"ada","password":"correct horse battery"}"#
    _ = try await administrator.call("users/create", user)
    for (path, body, name) in [
      ("users/update", #"{"userName":"ada","changes":{"isDisable":true}}"#, "isDisable"),
      ("users/update", #"{"userName":"ada","change":{},"changes":{}}"#, "change"),
      ("users/delete", #"{"userName":"ada","purged":false}"#, "purged"),
      ("users/list", #"{"limits":10}"#, "limits"),
      ("audit/list", #"{"kinds":"sign-in"}"#, "kinds"),
    ] {
      let refused = await administrator.send(path, body)
      #expect(refused.status == 400, "\(path) \(body)")
      let error = try WireCoding.decode(ErrorDictionary.self, from: refused.body)
      #expect(error.reason?.contains("'\(name)'") == true, "\(error.reason ?? "")")
    }
    let changed = await administrator.send(
      "users/update",
      #"{"userName":"ada","changes":{"familyName":"Lovelace","isDisabled":null}}"#
    )
    #expect(changed.status == 200)
    let list = try await administrator.call("users/list")
    let users = try #require(list["users"] as? [[String: Any]])
    #expect(users.first?["isDisabled"] as? Bool == false)
    #expect(users.first?["familyName"] as? String == "Lovelace")
  }

  @Test("The admin API accepts the operator's token or an administrator's session, nothing else")
  func bearerTokens() async throws {
    let admin = try await administrator()
    #expect(await admin.send("server/status").status == 200)
    for token in ["", "x", admin.server.apiToken] {
      var stranger = admin
      stranger.token = token
      #expect(await stranger.send("server/status").status == 401)
    }
    var person = admin
    person.token = try await admin.server.person().webAuthToken ?? ""
    #expect(await person.send("server/status").status == 401)
    // A user becomes an administrator, and signs in for a session.
    let start = #"{"userName":"ada","password":"secret"}"#
    #expect(await admin.send("session/start", start).status == 403)
    _ = try await admin.call(
      "users/update",
      #"{"userName":"ada","changes":{"isAdministrator":true}}"#
    )
    person.token = try #require(try await admin.call("session/start", start)["token"] as? String)
    #expect(await person.send("server/status").status == 200)
    // That session is not a user token.
    #expect(await admin.server.status(of: person.token) == 421)
    _ = try await admin.call(
      "users/update",
      #"{"userName":"ada","changes":{"isAdministrator":false}}"#
    )
    #expect(await person.send("server/status").status == 403)
  }

  @Test("Use renews an administrator's session for a day; without use it ends in half an hour")
  func administratorSessionRenewal() async throws {
    let admin = try await administrator()
    let server = admin.server
    _ = try await server.person()
    try await server.service.accounts.change("ada", .init(isAdministrator: true))
    let start = #"{"userName":"ada","password":"secret"}"#
    func signIn() async throws -> Administrator {
      let reply = try await admin.call("session/start", start)
      return Administrator(server: server, token: try #require(reply["token"] as? String))
    }
    let idle = try await signIn()
    let busy = try await signIn()
    // Twenty minutes from use to use, for a day.
    for _ in 0..<71 {
      server.clock.advance(seconds: 20 * 60)
      #expect(await busy.send("server/status").status == 200)
    }
    #expect(await idle.send("server/status").status == 401)
    server.clock.advance(seconds: 20 * 60)
    #expect(await busy.send("server/status").status == 401)
  }

  @Test("No sign-in of a page, an app or a program makes a session of the administration")
  func administratorsContainer() async throws {
    let admin = try await administrator()
    let server = admin.server
    _ = try await server.person()
    try await server.service.accounts.change("ada", .init(isAdministrator: true))
    for container in ["/admin", "/account", "a/b"] {
      let json = #"{"userName":"ada","password":"secret","container":"\#(container)"}"#
      let call = "/account/sign-in?ckAPIToken=\(server.apiToken)"
      #expect(await server.send("POST", call, body: Data(json.utf8)).status == 400)
      let page = "/sign-in?ckAPIToken=\(server.apiToken)&container=\(container)"
      let form = Data("user=ada&password=secret".utf8)
      #expect(await server.send("POST", page, body: form).status == 401)
      let device = Data("client_id=\(server.apiToken)&scope=\(container)".utf8)
      #expect(await server.send("POST", "/account/device", body: device).status == 400)
      let act = #"{"userName":"ada","container":"\#(container)"}"#
      #expect(await admin.send("users/sign-in", act).status == 400)
      await #expect(throws: ErrorDictionary.self) {
        try await server.service.signIn(userName: "ada", container: container)
      }
    }
  }

  @Test(
    "The admin API answers only under the server's own names",
    arguments: [
      ("127.0.0.1:8080", 200), ("localhost:1", 200), ("[::1]:8080", 200), ("192.168.1.5", 200),
      ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("", 403),
    ]
  )
  func hosts(name: String, status: Int) async throws {
    var admin = try await administrator()
    admin.host = name
    #expect(await admin.send("server/status").status == status)
  }

  @Test("Administrators' actions are in the audit log, newest first")
  func auditLog() async throws {
    let admin = try await administrator()
    _ = try await admin.call("users/create", #"{"userName":"eve","password":"long enough"}"#)
    admin.server.clock.advance(seconds: 1)
    _ = try await admin.call("users/delete", #"{"userName":"eve","purge":true}"#)
    let lines = try #require(try await admin.call("audit/list")["lines"] as? [[String: Any]])
    #expect(lines.map { $0["action"] as? String } == ["user.purge", "user.create"])
    #expect(lines.allSatisfy { $0["by"] as? String == "operator" })
    #expect(lines.allSatisfy { $0["about"] as? String == "eve" })
  }

  @Test("Keys and tokens are added, listed and removed; an invalid origin is refused")
  func tokensAndKeys() async throws {
    let admin = try await administrator()
    let made = try await admin.call(
      "tokens/create",
      #"{"container":"iCloud.a","allowedOrigins":["https://a.example"]}"#
    )
    let token = try #require(made["token"] as? String)
    #expect(
      await admin.send("tokens/create", #"{"allowedOrigins":["https://a.example/path"]}"#).status
        == 400
    )
    let listed = try #require(try await admin.call("tokens/list")["tokens"] as? [[String: Any]])
    #expect(listed.contains { $0["prefix"] as? String == String(token.prefix(8)) })
    #expect(!String(decoding: await admin.send("tokens/list").body, as: UTF8.self).contains(token))
    _ = try await admin.call("tokens/remove", #"{"token":"\#(token)"}"#)
    #expect(await admin.send("tokens/remove", #"{"token":"\#(token)"}"#).status == 400)
    #expect(await admin.send("keys/add", #"{"publicKey":"x","container":"c"}"#).status == 400)
    #expect(await admin.send("keys/remove", #"{"keyID":"x"}"#).status == 400)
    for path in ["nothing/list", "users/nothing", "users"] {
      #expect(await admin.send(path).status == 404)
    }
  }
}
