import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

/// The decisions of a server about an account while another server commits a change of it.
@Suite("Account decisions under concurrent commits of another server", .everyEngine)
struct OvertakenAccountTests {
  private let server: TestServer
  private let storage: FlakyStorage
  private let account: StoredAccount

  init() async throws {
    let wrapped = Mutex<FlakyStorage?>(nil)
    server = try await TestServer(storage: { base in
      let storage = FlakyStorage(base)
      wrapped.withLock { $0 = storage }
      return storage
    })
    storage = try #require(wrapped.withLock { $0 })
    _ = try await server.person("ada")
    account = try server.service.storage.account(named: "ada")
  }

  /// The code of a link that went to the account's address.
  private func mailedCode() async throws -> String {
    let url = try await server.service.accounts.passwordResetURL(
      for: "ada",
      mailedTo: "ada@example.com"
    )
    return try #require(url.split(separator: "=").last.map(String.init))
  }

  private func opens(_ password: String) async -> Bool {
    await (try? server.service.passwords.check(userName: "ada", password: password, from: nil))
      != nil
  }

  @Test(
    "A mailed link resets no administrator's password whose second factor is removed meanwhile"
  )
  func removedFactor() async throws {
    let key = SecondFactor.key(account.id)
    let factor = SecondFactor(sealedSecret: Data(), isConfirmed: true)
    var setUp = WriteBatch()
    setUp.savedEntries = [try factor.entry(account.id, revision: 1)]
    try server.service.storage.commit(setUp)
    try await server.service.accounts.change("ada", .init(isAdministrator: true))
    let code = try await mailedCode()
    storage.interpose { batch, storage in
      guard !batch.accounts.isEmpty else { return false }
      var removal = WriteBatch()
      removal.removedEntries = [key]
      try storage.commit(removal)
      return true
    }
    await #expect(throws: AdministrationError.self) {
      try await server.service.accounts.resetPassword(
        code: code,
        password: "by the link",
        from: nil
      )
    }
    #expect(await opens("secret"))
    #expect(await !opens("by the link"))
  }

  @Test("A mailed link resets no password of an account that is linked to an issuer meanwhile")
  func linkedIdentity() async throws {
    let code = try await mailedCode()
    storage.interpose { [service = server.service] batch, storage in
      guard !batch.accounts.isEmpty else { return false }
      try storage.commit(Self.linking(service, storage))
      return true
    }
    await #expect(throws: AdministrationError.self) {
      try await server.service.accounts.resetPassword(
        code: code,
        password: "by the link",
        from: nil
      )
    }
    #expect(await !opens("by the link"))
  }

  @Test("Rehashing at sign-in never replaces a password that another server has just set")
  func renewedHash() async throws {
    var old = account
    let cost = PasswordCost(stored: 2)
    old.set(
      PasswordSecret(
        salt: Data(count: 16),
        hash: try PasswordHash.make("secret", salt: Data(count: 16), cost: cost),
        cost: cost
      )
    )
    var batch = WriteBatch()
    batch.accounts = [old]
    try server.service.storage.commit(batch)
    storage.interpose { [service = server.service] batch, storage in
      guard !batch.accounts.isEmpty else { return false }
      try storage.commit(Self.linking(service, storage))
      return true
    }
    // The password was right when it was checked; what it opens is decided against the account again.
    _ = await opens("secret")
    #expect(await !opens("secret"))
  }

  @Test("Two concurrent sign-ins that replace an old hash both succeed")
  func renewedTwice() async throws {
    func secret(cost: PasswordCost) throws -> PasswordSecret {
      PasswordSecret(
        salt: Data(count: 16),
        hash: try PasswordHash.make("secret", salt: Data(count: 16), cost: cost),
        cost: cost
      )
    }
    var old = account
    old.set(try secret(cost: PasswordCost(stored: 2)))
    var batch = WriteBatch()
    batch.accounts = [old]
    try server.service.storage.commit(batch)
    old.set(try secret(cost: PasswordCost(stored: 4)))
    batch.accounts = [old]
    let commits = Mutex(0)
    storage.interpose { [batch] _, storage in
      // The second commit of a sign-in is after the password was compared.
      let number = commits.withLock { count in
        count += 1
        return count
      }
      if number == 2 { try storage.commit(batch) }
      return number == 2
    }
    let signedIn = try await server.service.passwords.check(
      userName: "ada",
      password: "secret",
      from: nil
    )
    let stored = try server.service.storage.account(named: "ada")
    #expect(commits.withLock { $0 } == 2)
    #expect(signedIn.passwordHash == stored.passwordHash)
  }

  /// What a password permits besides a sign-in.
  enum Permitted: CaseIterable {
    case password, address, secondFactor, export, deletion, consent
  }

  @Test(
    "What a password permits does not happen if another server changes the password meanwhile",
    arguments: Permitted.allCases
  )
  func changedPassword(action: Permitted) async throws {
    let service = server.service
    let token = try await service.signIn(userName: "ada", container: TestServer.container)
    let own = try #require(try service.ownAccounts.account(ofToken: token, from: nil))
    let asked = await server.send(
      "POST",
      "/account/device",
      body: Data("client_id=\(server.apiToken)&scope=\(TestServer.container)".utf8)
    )
    let reply = try JSONSerialization.jsonObject(with: asked.body) as? [String: Any]
    let code = try #require(reply?["user_code"] as? String)
    let kinds: [DirectoryEntry.Kind] = [.accountState, .secondFactor, .accountExport, .deviceCode]
    storage.interpose { [service] batch, storage in
      guard batch.savedEntries.contains(where: { kinds.contains($0.key.kind) }) else {
        return false
      }
      try storage.commit(Self.linking(service, storage))
      return true
    }
    switch action {
    case .password:
      await #expect(throws: ErrorDictionary.self) {
        try await service.ownAccounts.changePassword(of: own, from: "secret", to: "another")
      }
      #expect(await !opens("another"))
    case .address:
      await #expect(throws: ErrorDictionary.self) {
        try await service.ownAccounts.changeAddress(
          of: own,
          to: "eve@example.com",
          password: "secret"
        )
      }
      let stored = try server.service.storage.account(named: "ada")
      #expect(stored.emailAddress == "ada@example.com")
    case .secondFactor:
      await #expect(throws: ErrorDictionary.self) {
        try await service.ownAccounts.beginSecondFactor(of: own, password: "secret")
      }
    case .export:
      await #expect(throws: ErrorDictionary.self) {
        try await service.exports.begin(of: own, password: "secret", code: nil)
      }
    case .deletion:
      await #expect(throws: ErrorDictionary.self) {
        try await service.ownAccounts.delete(own, password: "secret")
      }
      let (state, _) = try server.service.storage.read { try $0.state(of: account.id) }
      #expect(state.deletedAt == nil)
    case .consent:
      let page = await server.send(
        "POST",
        "/activate",
        body: Data("code=\(code)&user=ada&password=secret".utf8)
      )
      #expect(page.status == 401)
    }
  }

  /// The batch of another server that links the account to an issuer and takes its password away.
  private static func linking(
    _ service: CloudKitService,
    _ storage: any Storage
  ) throws -> WriteBatch {
    let address = "ada@example.com"
    let identity = ExternalIdentity(issuer: "issuer", subject: "s", emailAddress: address)
    let batch = try storage.read { try service.linking(identity, to: address, $0) }.0
    return try #require(batch)
  }
}
