import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Mails about accounts that confirm addresses, and what all mails have in common.
@Suite("Mails about accounts", .everyEngine)
struct MailTests {
  @Test("The address of a sign-up is confirmed once its link is used, and only once")
  func signUp() async throws {
    let world = try await MailWorld()
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
    let lines = try await world.service.auditLog.lines(AuditQuery(kind: "account")).lines
    #expect(lines.map(\.action).sorted() == ["account.confirm-address", "account.register"])
  }

  @Test("A link confirms an address with the password of the account that requested it")
  func strangersLink() async throws {
    let world = try await MailWorld()
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
    let world = try await MailWorld()
    for name in ["ada", "bob", "eve"] {
      _ = await world.post("/sign-up", "user=\(name)&password=secret&email=\(name)@example.org")
    }
    let links = try await world.mails().map { try $0.link() }
    try #require(links.count == 3)
    try await world.service.accounts.change("bob", .init(emailAddress: "robert@example.org"))
    try await world.service.accounts.delete("eve")
    #expect(await world.confirm(links[1]) == 400)
    #expect(await world.confirm(links[2]) == 400)
    world.server.clock.advance(seconds: 24 * 3600)
    #expect(await world.confirm(links[0]) == 400)
    #expect(try world.verifiedAddress("ada") == nil)
    #expect(try world.verifiedAddress("bob") == "robert@example.org")
  }

  @Test("A confirmed address cannot become another account's")
  func takenAddress() async throws {
    let world = try await MailWorld()
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
    let world = try await MailWorld()
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
    let world = try await MailWorld()
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
    let world = try await MailWorld()
    for text in [
      "ada", "a@b@c", "ada@", "@b", "ada@-b.example", "a b@c", "a..b@c", "<a@b>", "\"a\"@b",
    ] {
      let escaped = WebServicePath.escape(text)
      let reply = await world.post("/sign-up", "user=ada&password=secret&email=\(escaped)")
      #expect(reply.status == 400, "\(text)")
      #expect(EmailAddress.objection(to: text) != nil, "\(text)")
      await #expect(throws: AdministrationError.self) {
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

  @Test("The figures about mails on the page of metrics have no labels and name no address")
  func figures() async throws {
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    _ = await world.forgot("ada")
    #expect(await world.mails().count == 1)
    let lines = world.service.metricsText.split(separator: "\n").filter { $0.contains("mails") }
    #expect(lines.contains("watershed_mails_sent_total 1"))
    #expect(lines.allSatisfy { line in !line.contains { "{@\"".contains($0) } })
  }
}
