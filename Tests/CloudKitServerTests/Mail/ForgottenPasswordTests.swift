import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Mailed links to a new password: their recipients, and what requests must not reveal.
@Suite("Forgotten passwords", .everyEngine)
struct ForgottenPasswordTests {
  @Test(
    "A reset link is mailed to the confirmed address, by name and by address, and valid once"
  )
  func forgotten() async throws {
    let world = try await MailWorld()
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
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    try await world.service.createAccount(userName: "bare", password: "secret")
    try await world.service.createAccount(
      userName: "shut",
      password: "secret",
      emailAddress: "shut@example.org"
    )
    try await world.service.accounts.change("shut", .init(isDisabled: true))
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
    let world = try await MailWorld()
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
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    try await world.service.accounts.change("ada", .init(isAdministrator: true))
    _ = await world.forgot("ada")
    let mail = try #require(await world.mails().first)
    #expect(!mail.text.contains("/reset-password"))
  }

  @Test("A mailed link is checked again when it is used: address, administration and factor")
  func judgedAgain() async throws {
    let world = try await MailWorld()
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
    try await world.service.accounts.change("ada", .init(isAdministrator: true))
    #expect(await use(ofAdministrator) == 400)
    try await world.service.accounts.change("ada", .init(isAdministrator: false))
    #expect(await use(ofAdministrator) == 200)
    _ = await world.mails()
    // Setting or removing the address by an administrator ends links that were sent to the former.
    let former = try await link()
    try await world.service.accounts.change("ada", .init(emailAddress: "ada@example.org"))
    #expect(await use(former) == 400)
    _ = await world.mails()
    let taken = try await link()
    try await world.service.accounts.change("ada", .init(emailAddress: ""))
    #expect(await use(taken) == 400)
    // A link that was made from rows read before the change.
    let late = try await world.service.accounts.passwordResetURL(
      for: "ada",
      mailedTo: "ada@example.com"
    )
    #expect(await use(late.replacing("https://cloud.example.org", with: "")) == 400)
    // A link from an administrator has no address.
    let given = try await world.service.accounts.passwordResetURL(for: "ada")
    #expect(await use(given.replacing("https://cloud.example.org", with: "")) == 200)
  }

  @Test("A mailed link is invalid for an account that was linked to an issuer since")
  func judgedIdentity() async throws {
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    _ = await world.forgot("ada")
    let link = try #require(await world.mails().first).link()
    let account = try world.service.storage.account(named: "ada")
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
    let world = try await MailWorld(limits: { $0.mailsPerAddress = 2 })
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
    let world = try await MailWorld(limits: {
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
    let world = try await MailWorld()
    _ = await world.post("/sign-up", "user=ada&password=secret&email=ada@example.org")
    let page = await world.post("/my-account", "user=ada&password=secret")
    let session = String(
      try #require(page.html.firstMatch(of: /name="session" type="hidden" value="([^"]+)"/)?.1)
    )
    let account = try world.service.storage.account(named: "ada")
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
    #expect(try world.service.storage.account(named: "ada").emailAddress == "ada@example.org")
    #expect(try links() == 5)
    // The newest link is among those that are kept.
    let newest = try #require(await world.mails().last).link()
    #expect(await world.confirm(newest) == 200)
  }

  @Test("A network requests ten mails, then one a minute")
  func mailsOfANetwork() async throws {
    let world = try await MailWorld()
    for _ in 1...10 { #expect(await world.forgot("nobody", from: "192.0.2.1").status == 200) }
    #expect(await world.forgot("nobody", from: "192.0.2.1").status == 429)
    #expect(await world.forgot("nobody", from: "192.0.2.2").status == 200)
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
}
