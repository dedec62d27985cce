import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The audit log: its contents, what it leaves out, and searching it.
@Suite("The audit log", .everyEngine)
struct AuditTests {
  private static let address = "192.0.2.1"

  private func server() async throws -> Administrator {
    let server = try await TestServer(administratorToken: "operator's token")
    _ = try await server.person()
    return Administrator(server: server, token: "operator's token")
  }

  private func send(
    _ server: TestServer,
    _ path: String,
    _ body: String,
    from address: String = address
  ) async -> WebServiceResponse {
    await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: path,
        body: Data(body.utf8),
        clientAddress: address
      )
    )
  }

  private func signIn(
    _ server: TestServer,
    _ password: String,
    as userName: String = "ada",
    from address: String = address
  ) async -> WebServiceResponse {
    await send(
      server,
      "/account/sign-in?ckAPIToken=\(server.apiToken)",
      #"{"userName":"\#(userName)","password":"\#(password)","device":"phone","#
        + #""container":"\#(TestServer.container)"}"#,
      from: address
    )
  }

  private func lines(
    _ server: TestServer,
    _ query: AuditQuery = AuditQuery()
  ) async throws -> [AuditLine] {
    try await server.service.auditLog.lines(query).lines
  }

  @Test("Sign-ins, failures, consents and ends of sessions have lines with address and device")
  func events() async throws {
    let admin = try await server()
    let server = admin.server
    #expect(await signIn(server, "wrong").status == 401)
    server.clock.advance(seconds: 1)
    let reply = await signIn(server, "secret")
    let device = try WireCoding.decode(DeviceCredentials.self, from: reply.body)
    server.clock.advance(seconds: 1)
    let page = "/sign-in?ckAPIToken=\(server.apiToken)&container=\(TestServer.container)"
    #expect(await send(server, page, "user=ada&password=secret").status == 200)
    server.clock.advance(seconds: 1)
    _ = await send(server, "/account/sign-out", #"{"refreshToken":"\#(device.refreshToken)"}"#)
    server.clock.advance(seconds: 1)
    _ = try await admin.call(
      "users/update",
      #"{"userName":"ada","changes":{"password":"another","isDisabled":false}}"#
    )
    let found = try await lines(server)
    #expect(
      found.map(\.action) == [
        "user.update", "sign-out.device", "sign-in.page", "sign-in.device", "sign-in.failure",
      ]
    )
    #expect(found.allSatisfy { $0.about == "ada" })
    #expect(found.dropFirst().allSatisfy { $0.address == Self.address })
    #expect(found[1].device == "phone" && found[3].device == "phone")
    #expect(found[0].detail == "password, enabled")
    let text = String(decoding: await admin.send("audit/list").body, as: UTF8.self)
    for secret in ["wrong", "secret", "another", device.refreshToken, device.webAuthToken] {
      #expect(!text.contains(secret) || secret == "wrong", "\(secret)")
    }
  }

  @Test("A password that was typed as a name is not logged")
  func typedPassword() async throws {
    let server = try await server().server
    _ = await signIn(server, "x", as: "correct horse battery")
    let found = try await lines(server)
    #expect(found.map(\.about) == [""])
    #expect(found.map(\.detail) == ["no such account"])
  }

  @Test("Lines are found by account, kind, time and address")
  func filters() async throws {
    let admin = try await server()
    let server = admin.server
    _ = try await server.person("bob")
    _ = await signIn(server, "secret", from: "2001:db8::1")
    server.clock.advance(seconds: 60)
    let time = server.service.now
    _ = await signIn(server, "wrong", as: "bob")
    server.clock.advance(seconds: 60)
    _ = await signIn(server, "secret", as: "bob")
    func actions(_ query: AuditQuery) async throws -> [String] {
      try await lines(server, query).map(\.action)
    }
    #expect(try await actions(.init(account: "ADA")) == ["sign-in.device"])
    #expect(try await actions(.init(kind: "sign-in.failure")) == ["sign-in.failure"])
    #expect(try await actions(.init(kind: "sign")) == [])
    #expect(try await actions(.init(kind: "sign-in")).count == 3)
    #expect(try await actions(.init(since: time)) == ["sign-in.device", "sign-in.failure"])
    #expect(try await actions(.init(address: "2001:db8::ffff")) == ["sign-in.device"])
    // In pages, and through the remote connection.
    var names: [String] = []
    var query = AuditQuery(limit: 1, account: "bob")
    while true {
      let page = try await server.service.auditLog.lines(query)
      names += page.lines.map(\.action)
      guard let last = page.last else { break }
      query.after = last
    }
    #expect(names == ["sign-in.device", "sign-in.failure"])
    let reply = try await admin.call("audit/list", #"{"account":"bob","kind":"sign-in.failure"}"#)
    #expect((reply["lines"] as? [Any])?.count == 1)
  }

  @Test("Failures with unknown names do not use up the lines of failures with accounts")
  func inventedNames() async throws {
    let server = try await TestServer(limits: { $0.auditedFailuresPerHour = 2 })
    _ = try await server.person()
    for number in 0..<4 {
      _ = await signIn(server, "wrong", as: "x\(number)", from: "203.0.113.\(number)")
    }
    for number in 0..<4 { _ = await signIn(server, "wrong", from: "198.51.100.\(number)") }
    #expect(try await lines(server).map(\.about).sorted() == ["", "", "ada", "ada"])
  }

  @Test("Many failures of one account, or of one sender, do not use up the lines of others")
  func shares() async throws {
    let server = try await TestServer(limits: { limits in
      limits.auditedFailuresPerHour = 8
      limits.auditedFailuresPerShare = 3
    })
    for name in ["ada", "bob", "eve"] { _ = try await server.person(name) }
    // Failures of one account, from many networks.
    for number in 0..<9 { _ = await signIn(server, "wrong", from: "203.0.113.\(number)") }
    // Failures from one network, with unknown names, and with accounts.
    for number in 0..<9 { _ = await signIn(server, "wrong", as: "x\(number)", from: "192.0.2.1") }
    for name in ["bob", "bob", "eve"] {
      _ = await signIn(server, "wrong", as: name, from: "192.0.2.1")
    }
    // The first failure of an account is logged although its network's share is used up.
    #expect(
      try await lines(server).map(\.about).sorted() == [
        "", "", "", "ada", "ada", "ada", "bob", "eve",
      ]
    )
  }

  @Test("An administrator's look-ups of people and their devices are in the log")
  func looks() async throws {
    let admin = try await server()
    _ = try await admin.call("users/list")
    admin.server.clock.advance(seconds: 1)
    _ = try await admin.call("users/devices", #"{"userName":"ada"}"#)
    let found = try await lines(admin.server)
    #expect(found.map(\.action) == ["user.devices", "user.list"])
    #expect(found.map(\.about) == ["ada", ""])
    #expect(found.map(\.by) == ["operator", "operator"])
  }

  @Test("Failures are kept for thirty days, and so many of an hour")
  func failures() async throws {
    let server = try await TestServer(limits: { $0.auditedFailuresPerHour = 5 })
    _ = try await server.person()
    for number in 0..<9 { _ = await signIn(server, "wrong", from: "203.0.113.\(number)") }
    #expect(try await lines(server).count == 5)
    server.clock.advance(seconds: 3600)
    _ = await signIn(server, "wrong")
    _ = await signIn(server, "secret")
    #expect(try await lines(server).count == 7)
    server.clock.advance(seconds: 31 * 24 * 3600)
    try await server.service.housekeep()
    #expect(try await lines(server).map(\.action) == ["sign-in.device"])
  }
}
