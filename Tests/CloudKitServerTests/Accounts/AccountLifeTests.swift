import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("The life cycle of accounts", .everyEngine)
struct AccountLifeTests {
  func administrator() async throws -> Administrator {
    let server = try await TestServer(administratorToken: "operator's token")
    return Administrator(server: server, token: "operator's token")
  }

  // MARK: Devices

  @Test("A phone that was off for three weeks, or for five months, still syncs")
  func awayForWeeks() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    var device = try await server.signIn(device: "phone")
    #expect(await server.status(of: device.webAuthToken) == 200)
    for days in [21.0, 150, 179] {
      server.clock.advance(seconds: days * 24 * 3600)
      #expect(await server.status(of: device.webAuthToken) == 421)
      device = try await server.refresh(device.refreshToken)
      #expect(await server.status(of: device.webAuthToken) == 200)
    }
    server.clock.advance(seconds: 181 * 24 * 3600)
    await #expect(throws: ErrorDictionary.self) {
      try await server.refresh(device.refreshToken)
    }
  }

  @Test("After a lost reply the previous refresh token is still valid")
  func lostReply() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let device = try await server.signIn(device: "phone")
    _ = try await server.refresh(device.refreshToken)
    server.clock.advance(seconds: 21 * 24 * 3600)
    let again = try await server.refresh(device.refreshToken)
    #expect(await server.status(of: again.webAuthToken) == 200)
  }

  @Test("A refresh token that is used a third time was copied, and ends the grant for both holders")
  func copiedToken() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let device = try await server.signIn(device: "phone")
    let second = try await server.refresh(device.refreshToken)
    let third = try await server.refresh(second.refreshToken)
    await #expect(throws: ErrorDictionary.self) {
      try await server.refresh(device.refreshToken)
    }
    await #expect(throws: (any Error).self) { try await server.refresh(third.refreshToken) }
    #expect(await server.status(of: third.webAuthToken) == 421)
    #expect(try server.service.sessions.devices(of: "ada").isEmpty)
  }

  @Test("Revoking a device invalidates its user tokens immediately")
  func revoked() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let (phone, tablet) = (
      try await server.signIn(device: "phone"), try await server.signIn(device: "tablet")
    )
    let devices = try server.service.sessions.devices(of: "ada")
    #expect(Set(devices.map(\.device)) == ["phone", "tablet"])
    let id = try #require(devices.first { $0.device == "phone" }?.id)
    try await server.service.sessions.revokeDevice(id)
    #expect(await server.status(of: phone.webAuthToken) == 421)
    #expect(await server.status(of: tablet.webAuthToken) == 200)
    await #expect(throws: ErrorDictionary.self) { try await server.refresh(phone.refreshToken) }
  }

  // MARK: Registration

  @Test(
    "Registration follows its policy",
    arguments: [
      (RegistrationPolicy.closed, false, 403), (.invitation, false, 400), (.open, false, 200),
      (.closed, true, 200), (.invitation, true, 200),
    ]
  )
  func registration(policy: RegistrationPolicy, isInvited: Bool, status: Int) async throws {
    let server = try await TestServer(registration: policy)
    var path = "/sign-up"
    if isInvited {
      let url = server.service.accounts.signUpURL(
        invitation: try await server.service.accounts.invite()
      )
      path = String(url.dropFirst("http://127.0.0.1:8080".count))
    }
    let form = Data("user=eve&password=long+enough&email=".utf8)
    #expect(await server.send("POST", path, body: form).status == status)
    let names = try server.service.accounts.descriptions().map(\.userName)
    #expect(names == (status == 200 ? ["eve"] : []))
    if isInvited {
      // An invitation is valid once.
      let second = Data("user=mallory&password=long+enough&email=".utf8)
      #expect(await server.send("POST", path, body: second).status != 200)
      #expect(try server.service.accounts.descriptions().map(\.userName) == ["eve"])
    }
  }

  @Test(
    "The form of a sign-up or a new password is shown only where it can succeed",
    arguments: [RegistrationPolicy.closed, .invitation, .open]
  )
  func forms(policy: RegistrationPolicy) async throws {
    let server = try await TestServer(registration: policy)
    let code = try await server.service.accounts.invite()
    func shows(_ path: String) async -> Bool {
      let page = await server.send("GET", path)
      let hasForm = String(decoding: page.body, as: UTF8.self).contains("<form")
      #expect(hasForm == (page.status == 200), "\(path): \(page.status)")
      return hasForm
    }
    #expect(await shows("/sign-up?invitation=\(code)"))
    #expect(await shows("/sign-up") == (policy == .open))
    #expect(await shows("/sign-up?invitation=other") == (policy == .open))
    let form = Data("user=eve&password=long+enough".utf8)
    #expect(await server.send("POST", "/sign-up?invitation=\(code)", body: form).status == 200)
    #expect(await shows("/sign-up?invitation=\(code)") == (policy == .open))

    let url = try await server.service.accounts.passwordResetURL(for: "eve")
    let path = String(url.dropFirst("http://127.0.0.1:8080".count))
    #expect(await shows(path))
    #expect(await !shows("/reset-password?code=other"))
    let password = Data("password=a+new+password".utf8)
    #expect(await server.send("POST", path, body: password).status == 200)
    #expect(await !shows(path))
  }

  @Test("The first administrator registers with an invitation, which expires after a week")
  func firstAdministrator() async throws {
    let server = try await TestServer()
    #expect(try !server.service.accounts.hasAdministrator())
    let code = try await server.service.accounts.invite(isAdministrator: true)
    server.clock.advance(seconds: 7 * 24 * 3600 + 1)
    let form = Data("user=root&password=long+enough".utf8)
    let late = await server.send("POST", "/sign-up?invitation=\(code)", body: form)
    #expect(late.status == 400)
    let fresh = try await server.service.accounts.invite(isAdministrator: true)
    #expect(await server.send("POST", "/sign-up?invitation=\(fresh)", body: form).status == 200)
    #expect(try server.service.accounts.hasAdministrator())
  }

  @Test("A reset link sets a new password once, and signs every device out")
  func passwordReset() async throws {
    let server = try await TestServer(limits: { $0.passwordRule.shortest = 6 })
    let person = try await server.person()
    let device = try await server.signIn(device: "phone")
    let url = try await server.service.accounts.passwordResetURL(for: "ada")
    let path = String(url.dropFirst("http://127.0.0.1:8080".count))
    #expect(await server.send("POST", path, body: Data("password=short".utf8)).status == 400)
    let body = Data("password=a+new+password".utf8)
    #expect(await server.send("POST", path, body: body).status == 200)
    #expect(await server.send("POST", path, body: body).status == 400)
    #expect(await server.status(of: person.webAuthToken ?? "") == 421)
    #expect(await server.status(of: device.webAuthToken) == 421)
    await #expect(throws: ErrorDictionary.self) { try await server.refresh(device.refreshToken) }
    await #expect(throws: ErrorDictionary.self) { try await server.signIn(device: "phone") }
  }

  @Test("Administrators list the users in pages, by name regardless of case")
  func pages() async throws {
    let server = try await TestServer()
    for name in ["eve", "Bob", "ada", "Dan", "carol"] { _ = try await server.person(name) }
    var pages: [[String]] = []
    while true {
      let last = pages.last?.last
      let page = try server.service.accounts.descriptions(after: last, limit: 2).map(\.userName)
      guard !page.isEmpty else { break }
      pages.append(page)
    }
    #expect(pages == [["ada", "Bob"], ["carol", "Dan"], ["eve"]])
    #expect(try server.service.status().users == 5)
  }

  // MARK: Deletion

  @Test("A deleted account is disabled at once, can be restored, and is purged after thirty days")
  func deletion() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "r", ["n": .int64(1)])
    try await person.save(.create, "p", ["n": .int64(1)], in: .public, zone: nil)
    let user: UserIdentity = try await person.call(.caller, [String: String](), in: .public)
    let service = server.service
    try await service.accounts.delete("ada")
    #expect(await server.status(of: person.webAuthToken ?? "") == 421)
    await #expect(throws: ErrorDictionary.self) { try await server.signIn(device: "phone") }
    try await service.accounts.restore("ada")
    #expect(try await server.person().lookup("r").content("n") == .int64(1))

    try await service.accounts.delete("ada")
    server.clock.advance(seconds: 29 * 24 * 3600)
    try await service.housekeep()
    #expect(try service.accounts.descriptions().map(\.userName) == ["ada"])
    server.clock.advance(seconds: 24 * 3600 + 1)
    try await service.housekeep()
    #expect(try service.accounts.descriptions().isEmpty)
    // A new account with the former name finds nothing; public records stay public.
    let other = try await server.person()
    await #expect(throws: ErrorDictionary.self) { try await other.lookup("r") }
    #expect(try await other.lookup("p", in: .public, zone: nil).recordName == "p")
    await #expect(throws: ErrorDictionary.self) {
      try await other.lookup(user.userRecordName ?? "", in: .public, zone: nil)
    }
  }

  @Test("A disabled account cannot sign in until it is enabled")
  func disabled() async throws {
    let admin = try await administrator()
    let person = try await admin.server.person()
    _ = try await admin.call(
      "users/update",
      #"{"userName":"ada","changes":{"isDisabled":true}}"#
    )
    #expect(await admin.server.status(of: person.webAuthToken ?? "") == 421)
    await #expect(throws: ErrorDictionary.self) { try await admin.server.signIn(device: "phone") }
    _ = try await admin.call(
      "users/update",
      #"{"userName":"ada","changes":{"isDisabled":false}}"#
    )
    _ = try await admin.server.signIn(device: "phone")
  }

  @Test("An account that was disabled before its deletion stays disabled when it is restored")
  func restoredBan() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let service = server.service
    try await service.accounts.change("ada", .init(isDisabled: true))
    await #expect(throws: AdministrationError.self) {
      try await service.accounts.restore("ada")
    }
    try await service.accounts.delete("ada")
    try await service.accounts.delete("ada")
    try await service.accounts.restore("ada")
    #expect(try service.accounts.descriptions().map(\.isDisabled) == [true])
    await #expect(throws: ErrorDictionary.self) { try await server.signIn(device: "phone") }
    try await service.accounts.change("ada", .init(isDisabled: false))
    _ = try await server.signIn(device: "phone")
  }

  @Test("A deleted account is enabled only by restoring it, since an enabled one would be purged")
  func enabledWhileDeleted() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let service = server.service
    try await service.accounts.delete("ada")
    try await service.accounts.change("ada", .init(isDisabled: false))
    #expect(try service.accounts.descriptions().map(\.isDisabled) == [true])
    await #expect(throws: ErrorDictionary.self) { try await server.signIn(device: "phone") }
    try await service.accounts.restore("ada")
    _ = try await server.signIn(device: "phone")
  }

  // MARK: Limits

  @Test("A user over the request rate is throttled and gets a retry time")
  func rateLimit() async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 2
      $0.requestBurst = 3
    })
    let ada = try await server.person()
    for _ in 0..<3 { #expect(await ada.send(.listZones, Data()).status == 200) }
    let refused = await ada.send(.listZones, Data())
    #expect(refused.status == 429)
    let error = try WireCoding.decode(ErrorDictionary.self, from: refused.body)
    #expect(error.serverErrorCode == .throttled)
    #expect(error.retryAfter == 0.5)
    #expect(refused.headers["retry-after"] == "1")
    // Others are not delayed, and neither is she after the retry time.
    let bob = try await server.person("bob")
    #expect(await bob.send(.listZones, Data()).status == 200)
    server.clock.advance(seconds: 0.5)
    #expect(await ada.send(.listZones, Data()).status == 200)
  }

  @Test("Invalid tokens and URLs are counted for the sender's network")
  func failedProofs() async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 2
      $0.requestBurst = 3
    })
    let ada = try await server.person()
    var stranger = server.visitor
    stranger.apiToken = "made up"
    for _ in 0..<3 { #expect(await stranger.send(.listZones, Data()).status == 401) }
    #expect(await stranger.send(.listZones, Data()).status == 429)
    for path in ["/assets/download/x", "/webcourier/x", "/events/x"] {
      #expect(await server.send("GET", path).status == 429)
    }
    // A user of the same network is not limited.
    #expect(await ada.send(.listZones, Data()).status == 200)
    server.clock.advance(seconds: 0.5)
    #expect(await stranger.send(.listZones, Data()).status == 401)
  }

  @Test("A full database refuses additions until something is deleted")
  func quota() async throws {
    let server = try await TestServer(limits: { $0.userQuota = 2000 })
    let ada = try await server.person()
    try await ada.makeZone()
    try await ada.save(.create, "a", ["t": .string(String(repeating: "x", count: 3000))])
    let body = try WireCoding.encode(
      ModifyRecordsRequest(operations: [.make(.create, "b")], zoneID: TestServer.zone)
    )
    let refused = await ada.send(.modifyRecords, body)
    #expect(refused.status == 413)
    let upload = try WireCoding.encode(
      UploadTokensRequest(tokens: [UploadTokenField(fieldName: "f", recordType: "Note")])
    )
    #expect(await ada.send(.uploadAssets, upload).status == 413)
    try await ada.save(.forceDelete, "a")
    server.clock.advance(seconds: 61)
    #expect(await ada.send(.modifyRecords, body).status == 200)
  }
}
