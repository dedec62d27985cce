import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("The page of a share")
struct SharePageTests {
  private func page(
    _ tree: SharedTree,
    _ method: String = "GET",
    form: String = ""
  ) async -> (response: WebServiceResponse, html: String) {
    let response = await tree.server.send(
      method,
      "/share/\(tree.share.shortGUID ?? "")",
      body: Data(form.utf8)
    )
    return (response, String(decoding: response.body, as: UTF8.self))
  }

  private func seal(_ html: String) throws -> String {
    let start = try #require(html.range(of: "name=\"seal\" value=\""))
    return String(html[start.upperBound...].prefix { $0 != "\"" })
  }

  @Test("The share page shows an anonymous visitor nothing of a private share")
  func closed() async throws {
    let tree = try await SharedTree(accepts: false)
    let (response, html) = await page(tree)
    #expect(response.status == 200)
    #expect(!html.contains("Notes"))
    #expect(!html.contains("Ada"))
    #expect(html.contains("name=\"password\""))
  }

  @Test("After signing in, an invited user sees the share and joins")
  func joining() async throws {
    let tree = try await SharedTree(accepts: false)
    let (_, offer) = await page(tree, "POST", form: "user=bob&password=secret")
    #expect(offer.contains("<h1>Notes</h1>"))
    #expect(offer.contains("Ada Example"))
    #expect(offer.contains("signed in as <strong>bob</strong>"))
    let (_, joined) = await page(tree, "POST", form: "seal=\(try seal(offer))")
    #expect(joined.contains("You have joined"))
    #expect(try await tree.sharedNames() == ["a", "b", "root", "share"])
  }

  @Test("An uninvited user, or a wrong password, reveals nothing")
  func refusals() async throws {
    let tree = try await SharedTree(accepts: false)
    _ = try await tree.server.person("dan")
    let (stranger, strangerHTML) = await page(tree, "POST", form: "user=dan&password=secret")
    #expect(stranger.status == 404)
    #expect(!strangerHTML.contains("<h1>Notes</h1>"))
    let (wrong, _) = await page(tree, "POST", form: "user=bob&password=no")
    #expect(wrong.status == 401)
    let (forged, _) = await page(tree, "POST", form: "seal=abc")
    #expect(forged.status == 421)
    #expect(await tree.server.send("GET", "/share/0unknown").status == 404)
  }

  @Test("An uninvited user may request access, and always gets the same reply")
  func asking() async throws {
    let tree = try await SharedTree()
    _ = try await tree.server.person("dan")
    func ask(_ name: String) async throws -> String {
      let (refused, offer) = await page(tree, "POST", form: "user=\(name)&password=secret")
      #expect(refused.status == 404)
      #expect(offer.contains("Request access"))
      #expect(!offer.contains("Ada") && !offer.contains("<h1>Notes</h1>"))
      let (asked, answer) = await page(tree, "POST", form: "seal=\(try seal(offer))&ask=yes")
      #expect(asked.status == 200)
      return answer
    }
    func requesters() async throws -> [String] {
      let people = try await tree.owner.lookup("share").sharing?.requesters
      return people?.compactMap { $0.userIdentity?.lookupInfo?.emailAddress } ?? []
    }
    let unheard = try await ask("dan")
    #expect(try await requesters() == [])
    let opened = RecordOperation(
      operationType: .forceUpdate,
      record: RecordDictionary(
        recordName: "share",
        recordType: ShareDictionary.recordType,
        sharing: ShareDictionary(denyAccessRequests: false)
      )
    )
    _ = try await tree.owner.modify([opened])[0].get()
    #expect(try await ask("dan") == unheard)
    #expect(try await requesters() == ["dan@example.com"])
    // Joining with such a seal is refused.
    let (_, offer) = await page(tree, "POST", form: "user=dan&password=secret")
    let (joined, _) = await page(tree, "POST", form: "seal=\(try seal(offer))")
    #expect(joined.status == 404)
    try await tree.owner.save(.forceDelete, "share", recordType: nil)
    #expect(try await ask("dan") == unheard)
  }

  @Test("A seal is valid for its share and for ten minutes")
  func seals() async throws {
    let tree = try await SharedTree(accepts: false)
    let (_, offer) = await page(tree, "POST", form: "user=bob&password=secret")
    let seal = try seal(offer)
    try await tree.owner.save(.create, "two")
    let other = try await tree.owner.share("two", "second", with: [.invited("bob")])
    let elsewhere = await tree.server.send(
      "POST",
      "/share/\(other.shortGUID ?? "")",
      body: Data("seal=\(seal)".utf8)
    )
    #expect(elsewhere.status == 421)
    tree.server.clock.advance(seconds: 601)
    #expect(await page(tree, "POST", form: "seal=\(seal)").response.status == 421)
  }

  @Test("A seal ends with the account's sessions")
  func endedSeals() async throws {
    for change in [
      AccountChanges(password: "secret"), .init(isDisabled: true),
    ] {
      let tree = try await SharedTree(accepts: false)
      let (_, offer) = await page(tree, "POST", form: "user=bob&password=secret")
      try await tree.server.service.accounts.change("bob", change)
      let (joined, _) = await page(tree, "POST", form: "seal=\(try seal(offer))")
      #expect(joined.status == 421)
    }
  }

  @Test("User input is escaped, and no script runs")
  func injection() async throws {
    let server = try await TestServer()
    let owner = try await server.person("ada")
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let evil = "</title><script>alert(1)</script>\"'<img src=x onerror=alert(1)>"
    var share = try await owner.share("root", publicPermission: .readOnly)
    let operation = RecordOperation.make(
      .forceUpdate,
      "share",
      ["cloudkit.title": .string(evil)],
      recordType: "cloudkit.share"
    )
    share = try await owner.modify([operation])[0].get()
    let response = await server.send("GET", "/share/\(share.shortGUID ?? "")")
    let html = String(decoding: response.body, as: UTF8.self)
    #expect(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
    #expect(!html.contains("<script"))
    #expect(!html.contains("<img"))
    let policy = try #require(response.headers["content-security-policy"])
    #expect(policy.hasPrefix("default-src 'none'"))
    #expect(!policy.contains("script-src"))
    #expect(response.headers["x-frame-options"] == "DENY")
  }
}
