import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Password guessing, from one address and from many.
@Suite("Sign-in attempts", .everyEngine)
struct SignInAttemptTests {
  /// An address of the blocks for documentation (RFC 5737, RFC 3849).
  private static let owner = "192.0.2.1"
  private static let stranger = "198.51.100.7"

  private func signIn(
    _ server: TestServer,
    _ password: String,
    as userName: String = "ada",
    from address: String?
  ) async -> WebServiceResponse {
    let body =
      #"{"userName":"\#(userName)","password":"\#(password)","#
      + #""container":"\#(TestServer.container)"}"#
    return await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/account/sign-in?ckAPIToken=\(server.apiToken)",
        body: Data(body.utf8),
        clientAddress: address
      )
    )
  }

  @Test("Sixty concurrent sign-ins check no more passwords than an account may fail")
  func atOnce() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let statuses = await withTaskGroup(of: Int.self) { group in
      for number in 0..<60 {
        group.addTask { await signIn(server, "wrong \(number)", from: Self.stranger).status }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.filter { $0 == 401 }.count <= 10)
    #expect(statuses.allSatisfy { $0 == 401 || $0 == 429 })
    // The account is locked for this address, whichever of the sixty were checked.
    for _ in 0..<10 { _ = await signIn(server, "wrong", from: Self.stranger) }
    let refused = await signIn(server, "secret", from: Self.stranger)
    #expect(refused.status == 429)
    #expect(refused.headers["retry-after"] != nil)
  }

  @Test("One password tried on many names locks the address, not the accounts")
  func manyNames() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    var judged = 0
    for number in 0..<100 {
      let response = await signIn(server, "p", as: "n\(number)", from: "2001:db8::1")
      if response.status == 401 { judged += 1 }
    }
    #expect(judged <= 30)
    // Another address of the same network counts as the same; another network does not.
    #expect(await signIn(server, "secret", from: "2001:db8:0:0:ffff::2").status == 429)
    #expect(await signIn(server, "secret", from: "2001:db8:0:1::2").status == 200)
  }

  @Test("Another sender's wrong passwords do not lock the account's owner out")
  func ownerElsewhere() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    for _ in 0..<12 { _ = await signIn(server, "wrong", from: Self.stranger) }
    #expect(await signIn(server, "secret", from: Self.stranger).status == 429)
    #expect(await signIn(server, "secret", from: Self.owner).status == 200)
  }

  @Test("An account under attack from many addresses accepts known addresses")
  func knownAddress() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    #expect(await signIn(server, "secret", from: Self.owner).status == 200)
    for number in 0..<120 {
      _ = await signIn(server, "wrong", from: "203.0.113.\(number)")
    }
    #expect(await signIn(server, "secret", from: "192.0.2.99").status == 429)
    #expect(await signIn(server, "secret", from: Self.owner).status == 200)
    server.clock.advance(seconds: 15 * 60 + 1)
    #expect(await signIn(server, "secret", from: "192.0.2.99").status == 429)
    server.clock.advance(seconds: 45 * 60)
    #expect(await signIn(server, "secret", from: "192.0.2.99").status == 200)
  }

  @Test("Counts of wrong passwords survive a restart")
  func restart() async throws {
    try await withTemporaryFolder { folder in
      let clock = StoppedClock()
      let first = try await TestServer(folder: folder, clock: clock)
      _ = try await first.person()
      for _ in 0..<10 { _ = await signIn(first, "wrong", from: Self.stranger) }
      await first.service.shutdown()
      let second = try await TestServer(folder: folder, seed: 2, clock: clock)
      #expect(await signIn(second, "secret", from: Self.stranger).status == 429)
      await second.service.shutdown()
    }
  }

  @Test("Every page and call that takes a password counts its attempts together")
  func everyEntrance() async throws {
    let server = try await TestServer(limits: { $0.requestsPerSecond = nil })
    let ada = try await server.person()
    try await ada.makeZone()
    try await ada.save(.create, "a")
    let share = try await ada.share("a", publicPermission: .readOnly)
    let form = "user=ada&password=wrong"
    let json = #"{"userName":"ada","password":"wrong"}"#
    let entrances = [
      ("/sign-in?ckAPIToken=\(server.apiToken)&container=\(TestServer.container)", form),
      ("/share/\(share.shortGUID ?? "")", form), ("/delete-account", form),
      ("/account/delete", json), ("/admin/1/session/start", json),
    ]
    for (path, body) in entrances + entrances {
      let response = await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          body: Data(body.utf8),
          clientAddress: Self.stranger
        )
      )
      #expect(response.status == 401, "\(path)")
    }
    for (path, body) in entrances {
      let response = await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          body: Data(body.replacing("wrong", with: "secret").utf8),
          clientAddress: Self.stranger
        )
      )
      #expect(response.status == 429, "\(path)")
      #expect(response.headers["retry-after"] != nil, "\(path)")
    }
  }

  @Test("Networks of one site count together, and do not lock a name for the others")
  func site() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    #expect(await signIn(server, "secret", from: "2001:db8:0:ffff::1").status == 200)
    var judged = 0
    for number in 0..<100 {
      let address = "2001:db8:0:\(String(number, radix: 16))::1"
      if await signIn(server, "wrong", from: address).status == 401 { judged += 1 }
    }
    #expect(judged == 30)
    // A known network is not counted with its site, and other sites are not locked.
    #expect(await signIn(server, "secret", from: "2001:db8:0:fffe::1").status == 429)
    #expect(await signIn(server, "secret", from: "2001:db8:0:ffff::1").status == 200)
    #expect(await signIn(server, "secret", from: "2001:db8:1::1").status == 200)
  }

  @Test("One password tried on many names from many networks locks their site")
  func siteOverNames() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    var judged = 0
    for number in 0..<200 {
      let address = "2001:db8:0:\(String(number, radix: 16))::1"
      if await signIn(server, "p", as: "n\(number)", from: address).status == 401 { judged += 1 }
    }
    #expect(judged == 120)
    #expect(await signIn(server, "secret", from: "2001:db8:1::1").status == 200)
  }

  @Test("A new password ends the lock of the account on every network")
  func afterReset() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    for address in [Self.owner, Self.stranger] {
      for _ in 0..<10 { _ = await signIn(server, "wrong", from: address) }
      #expect(await signIn(server, "secret", from: address).status == 429)
    }
    let url = try await server.service.accounts.passwordResetURL(for: "ada")
    let path = String(url.dropFirst("http://127.0.0.1:8080".count))
    let body = Data("password=another+secret".utf8)
    #expect(await server.send("POST", path, body: body).status == 200)
    #expect(await signIn(server, "another secret", from: Self.owner).status == 200)
    #expect(await signIn(server, "another secret", from: Self.stranger).status == 200)
  }
}
