import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Mails that notify the holder of an account of changes to it.
@Suite("Notices about accounts", .everyEngine)
struct AccountNoticeTests {
  @Test("A sign-in from a network that is new to an account sends a notice, the first does not")
  func newNetwork() async throws {
    let world = try await MailWorld()
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

  @Test("The first five notices of a kind are sent, then one every five minutes")
  func manyNotices() async throws {
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    let account = try world.service.storage.account(named: "ada")
    for _ in 1...8 { world.service.mails.notify(account, of: .recoveryCodes, from: nil) }
    #expect(await world.mails().count == 5)
    world.service.mails.notify(account, of: .password, from: nil)
    #expect(await world.mails().count == 1)
    world.server.clock.advance(seconds: 300)
    for _ in 1...2 { world.service.mails.notify(account, of: .recoveryCodes, from: nil) }
    #expect(await world.mails().count == 1)
  }

  @Test("A code that is sent a second time is refused, noted as such, and brings a notice")
  func repeatedCode() async throws {
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    let account = try world.service.storage.account(named: "ada")
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
      let account = try? await world.service.passwords.check(
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
    let details = try await world.service.auditLog.lines(AuditQuery(kind: "sign-in")).lines
      .compactMap(\.detail)
    #expect(details.contains("used code") && details.contains("wrong code"))
  }

  @Test(
    "Changes of password and second factor and the deletion are notified to a confirmed address"
  )
  func notices() async throws {
    let world = try await MailWorld()
    _ = try await world.server.person("ada")
    try await world.service.accounts.change("ada", .init(password: "another"))
    let account = try world.service.storage.account(named: "ada")
    _ = try await world.service.secondFactors.begin(of: account)
    let known = try world.service.storage.read {
      try $0.secondFactor(of: account.id, now: world.service.now)
    }
    let secret = try world.service.vault.open(
      try #require(known?.0.sealedSecret),
      for: "second factor \(account.id)"
    )
    let code = TimeCode.code(secret, step: TimeCode.step(at: world.service.now))
    _ = try await world.service.secondFactors.confirm(of: account, code: code, from: nil)
    _ = try await world.service.secondFactors.renewRecoveryCodes(of: account, from: nil)
    try await world.service.secondFactors.remove(of: account, from: nil)
    try await world.service.accounts.change("ada", .init(emailAddress: "ada@example.org"))
    try await world.service.accounts.delete("ada")
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
