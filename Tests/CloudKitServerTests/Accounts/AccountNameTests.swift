import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// User names are compared regardless of the case and the composition of their letters.
@Suite("User names", .everyEngine)
struct AccountNameTests {
  /// "Jürgen" with a composed letter, and with a combining mark after the u.
  private static let composed = "J\u{FC}rgen"
  private static let decomposed = "Ju\u{308}rgen"

  private func opens(_ server: TestServer, _ name: String, _ password: String) async -> String? {
    try? await server.service.passwords.check(userName: name, password: password, from: nil).id
  }

  @Test("A name opens its account in every composition, and is taken in each of them")
  func forms() async throws {
    let server = try await TestServer()
    let id = try await server.service.createAccount(userName: Self.decomposed, password: "secret")
    for name in [Self.composed, Self.decomposed, Self.composed.uppercased()] {
      #expect(await opens(server, name, "secret") == id)
      await #expect(throws: AdministrationError.self) {
        try await server.service.createAccount(userName: name, password: "secret")
      }
    }
    let shown = try server.service.accounts.descriptions().map(\.userName)
    #expect(shown.count == 1)
    #expect(shown[0].utf8.elementsEqual(Self.composed.utf8))
  }

  /// Stores an account as an earlier version did, in the typed form.
  private func store(_ name: String, like id: String, in server: TestServer) throws -> String {
    let storage = server.service.storage
    var account = try #require(try storage.read { try $0.account(id: id) })
    account.id = UUID().uuidString
    account.userName = name
    var batch = WriteBatch()
    batch.accounts = [account]
    try storage.commit(batch)
    return account.id
  }

  @Test(
    "A name stored by an earlier version in another form is valid in that and the new form"
  )
  func earlierVersion() async throws {
    let server = try await TestServer()
    let other = try await server.service.createAccount(userName: "other", password: "secret")
    let old = try store(Self.decomposed, like: other, in: server)
    #expect(await opens(server, Self.decomposed, "secret") == old)
    #expect(await opens(server, Self.composed, "secret") == old)
    // It can be changed, and keeps its row.
    try await server.service.accounts.change(Self.composed, .init(password: "another"))
    #expect(await opens(server, Self.decomposed, "another") == old)
    await #expect(throws: AdministrationError.self) {
      try await server.service.createAccount(userName: Self.composed, password: "secret")
    }
  }

  @Test("Two names that an earlier version distinguished each open their own account")
  func equalNames() async throws {
    let server = try await TestServer()
    let other = try await server.service.createAccount(userName: "other", password: "secret")
    let decomposed = try store(Self.decomposed, like: other, in: server)
    let composed = try store(Self.composed, like: other, in: server)
    #expect(await opens(server, Self.decomposed, "secret") == decomposed)
    #expect(await opens(server, Self.composed, "secret") == composed)
    try await server.service.accounts.change(Self.decomposed, .init(password: "another"))
    #expect(await opens(server, Self.decomposed, "another") == decomposed)
    #expect(await opens(server, Self.composed, "secret") == composed)
    // The pages of the list have each of them once.
    let first = try server.service.accounts.descriptions(limit: 1)
    let second = try server.service.accounts.descriptions(after: first[0].userName, limit: 1)
    let third = try server.service.accounts.descriptions(after: second[0].userName, limit: 2)
    #expect(Set((first + second + third).map(\.id)) == [other, decomposed, composed])
    #expect(third.count == 1)
  }

  @Test("Wrong passwords are counted for a name in all its forms")
  func counts() async throws {
    let server = try await TestServer()
    let sender = SenderAddress("192.0.2.1")
    _ = try await server.service.createAccount(userName: Self.composed, password: "secret")
    for number in 0..<10 {
      await #expect(throws: ErrorDictionary.self) {
        try await server.service.passwords.check(
          userName: number.isMultiple(of: 2) ? Self.composed : Self.decomposed,
          password: "wrong",
          from: sender
        )
      }
    }
    let error = await #expect(throws: ErrorDictionary.self) {
      try await server.service.passwords.check(
        userName: Self.decomposed,
        password: "secret",
        from: sender
      )
    }
    #expect(error?.serverErrorCode == .throttled)
  }

  @Test("A name of few characters with many combining marks cannot be registered")
  func marks() async throws {
    let server = try await TestServer(registration: .open)
    func register(_ name: String) async throws {
      try await server.service.accounts.register(
        userName: name,
        password: "secret",
        emailAddress: nil,
        invitation: nil,
        from: nil
      )
    }
    await #expect(throws: AdministrationError.self) {
      try await register("e" + String(repeating: "\u{301}", count: 600))
    }
    try await register(String(repeating: "é", count: 200))
  }
}
