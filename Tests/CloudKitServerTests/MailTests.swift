import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Mails about accounts: their recipients, their links, and what requests must not reveal.
@Suite("Mails about accounts", .everyEngine)
struct MailTests {
  /// A server that sends mail.
  private struct World {
    let outbox = TestOutbox()
    let server: TestServer

    var service: CloudKitService { server.service }

    init(
      registration: RegistrationPolicy = .open,
      limits: (inout ServiceLimits) -> Void = { _ in }
    ) async throws {
      server = try await TestServer(
        limits: limits,
        registration: registration,
        baseURL: "https://cloud.example.org",
        mailSender: outbox
      )
    }

    /// The mails sent so far, after the queue is idle.
    func mails() async -> [MailMessage] {
      await service.mail?.finishWork()
      return outbox.take()
    }

    func post(
      _ path: String,
      _ form: String = "",
      from address: String? = nil
    ) async -> (status: Int, html: String) {
      let reply = await service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          headers: ["host": "cloud.example.org"],
          body: Data(form.utf8),
          clientAddress: address
        )
      )
      return (reply.status, String(decoding: reply.body, as: UTF8.self))
    }

    func get(_ path: String) async -> Int {
      await service.respond(
        to: WebServiceRequest(method: "GET", path: path, headers: ["host": "cloud.example.org"])
      ).status
    }

    func forgot(_ name: String, from address: String? = nil) async -> (status: Int, html: String) {
      await post("/forgot-password", "user=\(WebServicePath.escape(name))", from: address)
    }

    func confirm(_ link: String, password: String = "secret") async -> Int {
      await post(link, "password=\(password)").status
    }

    func verifiedAddress(_ name: String) throws -> String? {
      let account = try service.account(named: name)
      return try service.storage.read { try $0.verifiedAddress(of: account) }
    }

    func opens(_ name: String, _ password: String) async -> Bool {
      (try? await service.checkPassword(userName: name, password: password, from: nil)) != nil
    }
  }

  // MARK: Addresses

  @Test("The address of a sign-up is confirmed once its link is used, and only once")
  func signUp() async throws {
    let world = try await World()
    #expect(
      await world.post("/sign-up", "user=ada&password=secret&email=ada@example.org").status == 200
    )
    let mail = try #require(await world.mails().first)
    #expect(mail.to == "ada@example.org")
    #expect(try world.verifiedAddress("ada") == nil)
    let link = try mail.link()
    #expect(await world.get(link) == 200)
    #expect(try world.verifiedAddress("ada") == nil)
    #expect(await world.confirm(link) == 200)
    #expect(try world.verifiedAddress("ada") == "ada@example.org")
    #expect(await world.confirm(link) == 400)
    let lines = try await world.service.auditLines(AuditQuery(kind: "account")).lines
    #expect(lines.map(\.action).sorted() == ["account.confirm-address", "account.register"])
  }

  @Test("A link confirms an address with the password of the account that requested it")
  func strangersLink() async throws {
    let world = try await World()
    try await world.service.createAccount(userName: "victim", password: "own secret")
    _ = await world.post("/sign-up", "user=mallory&password=secret&email=victim@example.org")
    let link = try #require(await world.mails().first).link()
    let page = await world.service.respond(
      to: WebServiceRequest(method: "GET", path: link, headers: ["host": "cloud.example.org"])
    )
    let html = String(decoding: page.body, as: UTF8.self)
    #expect(html.contains("mallory"))
    #expect(html.contains("victim@example.org"))
    #expect(await world.post(link).status == 401)
    #expect(await world.confirm(link, password: "own+secret") == 401)
    #expect(
      await world.post(link, "user=victim&password=own+secret").status == 401
    )
    #expect(try world.verifiedAddress("mallory") == nil)
    #expect(try world.verifiedAddress("victim") == nil)
    #expect(await world.get("/verify-address?code=x") == 400)
  }

  @Test("A confirmation link ends after a day, with another address and with the account")
  func spentLinks() async throws {
    let world = try await World()
    for name in ["ada", "bob", "eve"] {
      _ = await world.post("/sign-up", "user=\(name)&password=secret&email=\(name)@example.org")
    }
    let links = try await world.mails().map { try $0.link() }
    try #require(links.count == 3)
    try await world.service.changeAccount("bob", .init(emailAddress: "robert@example.org"))
    try await world.service.deleteAccount("eve")
    #expect(await world.confirm(links[1]) == 400)
    #expect(await world.confirm(links[2]) == 400)
    world.server.clock.advance(seconds: 24 * 3600)
    #expect(await world.confirm(links[0]) == 400)
    #expect(try world.verifiedAddress("ada") == nil)
    #expect(try world.verifiedAddress("bob") == "robert@example.org")
  }

  @Test("A confirmed address cannot become another account's")
  func takenAddress() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    _ = await world.post("/sign-up", "user=eve&password=secret&email=ada@example.com")
    let link = try #require(await world.mails().first).link()
    #expect(await world.confirm(link) == 400)
    #expect(
      try world.service.storage.read { try $0.account(owning: "ada@example.com") }?.userName
        == "ada"
    )
  }

  @Test("A mail to an unconfirmed address has no text that its sender typed")
  func strangersText() async throws {
    let world = try await World()
    _ = await world.post(
      "/sign-up",
      "user=WIN+at+http://evil.example&password=secret&email=victim@example.org"
    )
    let mail = try #require(await world.mails().first)
    #expect(!mail.text.contains("evil"))
    #expect(!mail.subject.contains("evil"))
  }

  @Test(
    "A new address replaces the confirmed one when its link is used, and the former is notified"
  )
  func changedAddress() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    _ = await world.forgot("ada")
    let reset = try #require(await world.mails().first).link()
    let page = await world.post("/my-account", "user=ada&password=secret")
    let session = String(
      try #require(page.html.firstMatch(of: /name="session" type="hidden" value="([^"]+)"/)?.1)
    )
    let form = "session=\(session)&do=address&password=secret&email="
    #expect(await world.post("/my-account", form + "first@example.org").status == 200)
    let changed = await world.post("/my-account", form + "ada@example.org")
    #expect(changed.html.contains("ada@example.org is not confirmed yet"))
    #expect(try world.verifiedAddress("ada") == "ada@example.com")
    let mails = await world.mails()
    #expect(mails.map(\.to) == ["first@example.org", "ada@example.org"])
    // The last requested address is the valid one.
    #expect(await world.confirm(try mails[0].link()) == 400)
    #expect(await world.confirm(try mails[1].link()) == 200)
    #expect(try world.verifiedAddress("ada") == "ada@example.org")
    #expect(await world.mails().map(\.to) == ["ada@example.com"])
    // A reset link was sent to the former address.
    #expect(await world.post(reset, "password=another").status == 400)
    #expect(await world.post("/my-account", "session=\(session)&do=verify").status == 400)
  }

  @Test("An invalid address is refused at sign-up, on the page and by administrators")
  func refusedAddresses() async throws {
    let world = try await World()
    for text in [
      "ada", "a@b@c", "ada@", "@b", "ada@-b.example", "a b@c", "a..b@c", "<a@b>", "\"a\"@b",
    ] {
      let escaped = WebServicePath.escape(text)
      let reply = await world.post("/sign-up", "user=ada&password=secret&email=\(escaped)")
      #expect(reply.status == 400, "\(text)")
      #expect(EmailAddress.objection(to: text) != nil, "\(text)")
      await #expect(throws: CloudKitService.AdministrationError.self) {
        try await world.service.createAccount(
          userName: "ada",
          password: "secret",
          emailAddress: text
        )
      }
    }
    for text in ["a@b", "o'hara+x@mail.example.org", "jürgen@bücher.example", "1@2.example"] {
      #expect(EmailAddress.objection(to: text) == nil, "\(text)")
    }
    let longest = String(repeating: "a", count: 64) + "@" + String(repeating: "b.", count: 94) + "c"
    #expect(longest.utf8.count == 254)
    #expect(EmailAddress.objection(to: longest) == nil)
    #expect(EmailAddress.objection(to: longest + "c") != nil)
    #expect(EmailAddress.objection(to: "a" + longest.dropLast(2)) != nil)
  }

  // MARK: Forgotten passwords

  @Test(
    "A reset link is mailed to the confirmed address, by name and by address, and valid once"
  )
  func forgotten() async throws {
    let world = try await World()
    let ada = try await world.server.person("ada")
    for name in ["ada", "Ada@Example.com"] {
      #expect(await world.forgot(name).status == 200)
      let mails = await world.mails()
      #expect(mails.map(\.to) == ["ada@example.com"])
      let link = try #require(mails.first).link()
      #expect(await world.post(link, "password=by+\(name.count)+letters").status == 200)
      #expect(await world.post(link, "password=again").status == 400)
      #expect(await world.opens("ada", "by \(name.count) letters"))
      // The address is notified of the new password too.
      #expect(await world.mails().map(\.to) == ["ada@example.com"])
    }
    #expect(await ada.send(.listZones, Data("{}".utf8)).status != 200)
    world.server.clock.advance(seconds: 1)
    _ = await world.forgot("ada")
    let late = try #require(await world.mails().first).link()
    world.server.clock.advance(seconds: 3600)
    #expect(await world.post(late, "password=late").status == 400)
  }

  @Test("The reply to a forgotten password is the same, whether there is an account or not")
  func enumeration() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    try await world.service.createAccount(userName: "bare", password: "secret")
    try await world.service.createAccount(
      userName: "shut",
      password: "secret",
      emailAddress: "shut@example.org"
    )
    try await world.service.changeAccount("shut", .init(isDisabled: true))
    _ = await world.post("/sign-up", "user=typed&password=secret&email=typed@example.org")
    _ = await world.mails()
    let answers = await [
      world.forgot("ada"), world.forgot("bare"), world.forgot("shut"), world.forgot("typed"),
      world.forgot("typed@example.org"), world.forgot("nobody"), world.forgot(""),
      world.forgot(String(repeating: "x", count: 5000)),
    ]
    #expect(answers.allSatisfy { $0.status == 200 })
    #expect(Set(answers.map(\.html)).count == 1)
    #expect(await world.mails().map(\.to) == ["ada@example.com"])
  }

  @Test("A user name that looks like another user's address does not withhold mails from the owner")
  func misleadingName() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    _ = await world.post("/sign-up", "user=ada@example.com&password=secret")
    _ = await world.mails()
    #expect(await world.forgot("ada@example.com").status == 200)
    let mail = try #require(await world.mails().first)
    #expect(mail.to == "ada@example.com")
    #expect(mail.text.contains("the account ada on"))
  }

  @Test("An administrator without a second factor gets a mail, and no link")
  func administrators() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    try await world.service.changeAccount("ada", .init(isAdministrator: true))
    _ = await world.forgot("ada")
    let mail = try #require(await world.mails().first)
    #expect(!mail.text.contains("/reset-password"))
  }

  @Test("A mailed link is checked again when it is used: address, administration and factor")
  func judgedAgain() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    func link() async throws -> String {
      _ = await world.forgot("ada")
      let mail = try #require(await world.mails().last)
      return try mail.link()
    }
    func use(_ link: String) async -> Int {
      await world.post(link, "password=by+the+link").status
    }
    let ofAdministrator = try await link()
    try await world.service.changeAccount("ada", .init(isAdministrator: true))
    #expect(await use(ofAdministrator) == 400)
    try await world.service.changeAccount("ada", .init(isAdministrator: false))
    #expect(await use(ofAdministrator) == 200)
    _ = await world.mails()
    // Setting or removing the address by an administrator ends links that were sent to the former.
    let former = try await link()
    try await world.service.changeAccount("ada", .init(emailAddress: "ada@example.org"))
    #expect(await use(former) == 400)
    _ = await world.mails()
    let taken = try await link()
    try await world.service.changeAccount("ada", .init(emailAddress: ""))
    #expect(await use(taken) == 400)
    // A link that was made from rows read before the change.
    let late = try await world.service.passwordResetURL(for: "ada", mailedTo: "ada@example.com")
    #expect(await use(late.replacing("https://cloud.example.org", with: "")) == 400)
    // A link from an administrator has no address.
    let given = try await world.service.passwordResetURL(for: "ada")
    #expect(await use(given.replacing("https://cloud.example.org", with: "")) == 200)
  }

  @Test("A mailed link is invalid for an account that was linked to an issuer since")
  func judgedIdentity() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    _ = await world.forgot("ada")
    let link = try #require(await world.mails().first).link()
    let account = try world.service.account(named: "ada")
    try await world.service.write {
      var batch = WriteBatch()
      batch.savedEntries = [
        DirectoryEntry(DirectoryEntry.Key(.identity, "issuer subject"), owner: account.id)
      ]
      return (batch, ())
    }
    #expect(await world.post(link, "password=by+the+link").status == 400)
    #expect(await world.opens("ada", "secret"))
  }

  @Test("An address gets a limited number of mails per hour, and the reply stays the same")
  func mailsOfAnAddress() async throws {
    let world = try await World(limits: { $0.mailsPerAddress = 2 })
    _ = try await world.server.person("ada")
    for number in 1...4 {
      #expect(await world.forgot("ada", from: "192.0.2.\(number)").status == 200)
    }
    #expect(await world.mails().count == 2)
    world.server.clock.advance(seconds: 1800)
    _ = await world.forgot("ada", from: "192.0.2.9")
    #expect(await world.mails().count == 1)
  }

  @Test("Requests to confirm an address do not use up reset links of its owner")
  func separateShares() async throws {
    let world = try await World(limits: {
      $0.mailsPerAddress = 2
      $0.mailsPerHour = 2
    })
    _ = try await world.server.person("ada")
    for number in 1...3 {
      _ = await world.post(
        "/sign-up",
        "user=eve\(number)&password=secret&email=ada@example.com",
        from: "192.0.2.\(number)"
      )
    }
    #expect(await world.mails().count == 2)
    _ = await world.forgot("ada")
    let mails = await world.mails()
    #expect(mails.map(\.to) == ["ada@example.com"])
    #expect(mails.first?.text.contains("/reset-password") == true)
  }

  @Test("An account requests a limited number of links per hour, and the newest few are kept")
  func linksOfAnAccount() async throws {
    let world = try await World()
    _ = await world.post("/sign-up", "user=ada&password=secret&email=ada@example.org")
    let page = await world.post("/my-account", "user=ada&password=secret")
    let session = String(
      try #require(page.html.firstMatch(of: /name="session" type="hidden" value="([^"]+)"/)?.1)
    )
    let account = try world.service.account(named: "ada")
    func links() throws -> Int {
      try world.service.storage.read { try $0.verifications(of: account.id) }.count
    }
    for _ in 1...5 {
      world.server.clock.advance(seconds: 1)
      #expect(await world.post("/my-account", "session=\(session)&do=verify").status == 200)
    }
    #expect(try links() == 5)
    #expect(await world.post("/my-account", "session=\(session)&do=verify").status == 429)
    let form = "session=\(session)&do=address&password=secret&email="
    #expect(await world.post("/my-account", form + "other@example.org").status == 429)
    #expect(try world.service.account(named: "ada").emailAddress == "ada@example.org")
    #expect(try links() == 5)
    // The newest link is among those that are kept.
    let newest = try #require(await world.mails().last).link()
    #expect(await world.confirm(newest) == 200)
  }

  @Test("A network requests ten mails, then one a minute")
  func mailsOfANetwork() async throws {
    let world = try await World()
    for _ in 1...10 { #expect(await world.forgot("nobody", from: "192.0.2.1").status == 200) }
    #expect(await world.forgot("nobody", from: "192.0.2.1").status == 429)
    #expect(await world.forgot("nobody", from: "192.0.2.2").status == 200)
  }

  @Test("The figures about mails on the page of metrics have no labels and name no address")
  func figures() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    _ = await world.forgot("ada")
    #expect(await world.mails().count == 1)
    let lines = world.service.metricsText.split(separator: "\n").filter { $0.contains("mails") }
    #expect(lines.contains("watershed_mails_sent_total 1"))
    #expect(lines.allSatisfy { line in !line.contains { "{@\"".contains($0) } })
  }

  @Test("A server without a mail server has no link to the page, and the page says so")
  func withoutMail() async throws {
    let server = try await TestServer()
    #expect(await server.send("GET", "/forgot-password").status == 404)
    #expect(
      await server.send("POST", "/forgot-password", body: Data("user=ada".utf8)).status == 404
    )
    let page = await server.send(
      "GET",
      "/sign-in?ckAPIToken=\(server.apiToken)&container=\(TestServer.container)"
    )
    #expect(!String(decoding: page.body, as: UTF8.self).contains("forgot-password"))
  }

  // MARK: Notices

  @Test("A sign-in from a network that is new to an account sends a notice, the first does not")
  func newNetwork() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    for address in ["192.0.2.1", "192.0.2.1", "198.51.100.7", "198.51.100.7"] {
      let page = await world.post("/my-account", "user=ada&password=secret", from: address)
      #expect(page.status == 200)
    }
    _ = await world.post("/my-account", "user=ada&password=wrong", from: "203.0.113.1")
    let mails = await world.mails()
    #expect(mails.map(\.to) == ["ada@example.com"])
    #expect(mails.first?.text.contains("198.51.100.7") == true)
  }

  @Test("Of many changes of a kind the first five send a notice, and later one every five minutes")
  func manyNotices() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    let account = try world.service.account(named: "ada")
    for _ in 1...8 { world.service.notify(account, of: .recoveryCodes, from: nil) }
    #expect(await world.mails().count == 5)
    world.service.notify(account, of: .password, from: nil)
    #expect(await world.mails().count == 1)
    world.server.clock.advance(seconds: 300)
    for _ in 1...2 { world.service.notify(account, of: .recoveryCodes, from: nil) }
    #expect(await world.mails().count == 1)
  }

  @Test("A code that is sent a second time is refused, noted as such, and brings a notice")
  func repeatedCode() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    let account = try world.service.account(named: "ada")
    let secret = Data(repeating: 7, count: TimeCode.secretLength)
    let step = TimeCode.step(at: world.service.now)
    let factor = SecondFactor(
      sealedSecret: try world.service.vault.seal(secret, for: "second factor \(account.id)"),
      isConfirmed: true,
      lastStep: step - 1
    )
    var batch = WriteBatch()
    batch.savedEntries = [try factor.entry(account.id, revision: 1)]
    try world.service.storage.commit(batch)
    func signIn(_ code: String) async -> Bool {
      let account = try? await world.service.checkPassword(
        userName: "ada",
        password: "secret",
        code: code,
        from: nil
      )
      return account != nil
    }
    let code = TimeCode.code(secret, step: step)
    #expect(await signIn(code))
    #expect(await world.mails().isEmpty)
    #expect(await !signIn("000000"))
    #expect(await world.mails().isEmpty)
    #expect(await !signIn(code))
    #expect(await world.mails().map(\.to) == ["ada@example.com"])
    let details = try await world.service.auditLines(AuditQuery(kind: "sign-in")).lines
      .compactMap(\.detail)
    #expect(details.contains("used code") && details.contains("wrong code"))
  }

  @Test(
    "Changes of password and second factor and the deletion are notified to a confirmed address"
  )
  func notices() async throws {
    let world = try await World()
    _ = try await world.server.person("ada")
    let account = try world.service.account(named: "ada")
    try await world.service.changeAccount("ada", .init(password: "another"))
    _ = try await world.service.beginSecondFactor(of: account)
    let known = try world.service.storage.read {
      try $0.secondFactor(of: account.id, now: world.service.now)
    }
    let secret = try world.service.vault.open(
      try #require(known?.0.sealedSecret),
      for: "second factor \(account.id)"
    )
    let code = TimeCode.code(secret, step: TimeCode.step(at: world.service.now))
    _ = try await world.service.confirmSecondFactor(of: account, code: code, from: nil)
    _ = try await world.service.renewRecoveryCodes(of: account, from: nil)
    try await world.service.removeSecondFactor(of: account, from: nil)
    try await world.service.changeAccount("ada", .init(emailAddress: "ada@example.org"))
    try await world.service.deleteAccount("ada")
    let mails = await world.mails()
    #expect(
      mails.map(\.to) == Array(repeating: "ada@example.com", count: 5) + ["ada@example.org"]
    )
    #expect(
      mails.map { String($0.subject.split(separator: ": ").last ?? "") } == [
        "new password", "second factor set up", "new recovery codes", "second factor removed",
        "another address", "deleted",
      ]
    )
    #expect(mails.allSatisfy { $0.text.contains("https://cloud.example.org/forgot-password") })
  }
}
