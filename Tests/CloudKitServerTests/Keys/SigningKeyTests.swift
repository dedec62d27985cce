import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// The keys that seal tokens and URLs: where they are stored, and the effect of a new one.
@Suite("Signing keys")
struct SigningKeyTests {
  private static let day: Int64 = 24 * 60 * 60 * 1000

  private func signer(
    _ keys: [SigningKey],
    former: Data? = nil,
    _ clock: StoppedClock,
    reread: @escaping @Sendable () -> [SigningKey]? = { nil }
  ) -> Signer {
    Signer(keys: keys, former: former, clock: clock, reread: reread)
  }

  private func ring() -> KeyRing {
    var ring = KeyRing(first: Data(repeating: 9, count: 32))
    ring.addSigningKey(Data(repeating: 1, count: 32), now: 0)
    return ring
  }

  @Test("The database has no signing key: sealed texts need the key file")
  func place() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let ada = try await server.person()
      let keys = server.service.vault.signingKeys
      #expect(keys.count == 1)
      #expect(server.service.storage.secret == nil)
      try await ada.makeZone()
      await server.service.shutdown()
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      for name in names where name.hasPrefix("watershed.sqlite") {
        let bytes = try Data(contentsOf: folder.appendingPathComponent(name))
        for key in keys { #expect(bytes.range(of: key.key) == nil, "\(name)") }
      }
      let again = try await TestServer(folder: folder, seed: 2)
      #expect(again.service.vault.signingKeys == keys)
      await again.service.shutdown()
    }
  }

  @Test(
    "The secret of an older database can seal reading positions, and no capability",
    arguments: Signer.Purpose.allCases
  )
  func olderSecret(purpose: Signer.Purpose) throws {
    let clock = StoppedClock()
    let secret = Data(repeating: 7, count: 32)
    let thief = signer([SigningKey(id: "1", key: secret)], clock)
    let server = signer(ring().signingKeys, former: secret, clock)
    let opened = server.open(
      try thief.seal("x", for: purpose),
      as: String.self,
      for: purpose
    )
    let isHarmless = [.changeToken, .continuation, .unownedDevice].contains(purpose)
    #expect(opened == (isHarmless ? "x" : nil))
  }

  @Test("A client of an older server keeps its change token after the upgrade")
  func upgrade() async throws {
    try await withTemporaryFolder { folder in
      let old = try await TestServer(folder: folder)
      let ada = try await old.person()
      try await ada.makeZone()
      try await ada.save(.create, "a")
      // As if that server had signed with a secret in its database.
      let secret = Data(repeating: 7, count: 32)
      old.service.signer.use([SigningKey(id: "1", key: secret)])
      let token = try #require(try await ada.changes().syncToken)
      await old.service.shutdown()
      let new = try await TestServer(folder: folder, seed: 2)
      new.service.signer.use(
        [SigningKey(id: "0", key: secret, retired: 0)] + new.service.vault.signingKeys
      )
      let same = Person(server: new, webAuthToken: ada.webAuthToken)
      try await same.save(.create, "b")
      #expect(try await same.changes(since: token).names == ["b"])
      await new.service.shutdown()
    }
  }

  @Test(
    "After a rotation the former key's URLs are valid for a day, its change tokens for long"
  )
  func rotation() throws {
    let clock = StoppedClock()
    var ring = ring()
    let signer = signer(ring.signingKeys, clock)
    let address = try signer.seal("x", for: .download)
    let token = try signer.seal("x", for: .changeToken)
    ring.addSigningKey(Data(repeating: 2, count: 32), now: clock.now.wireMilliseconds)
    signer.use(ring.signingKeys)
    #expect(signer.open(address, as: String.self, for: .download) == "x")
    #expect(try signer.seal("x", for: .download) != address)
    clock.advance(seconds: Double(Self.day) / 1000)
    #expect(signer.open(address, as: String.self, for: .download) == nil)
    #expect(signer.open(token, as: String.self, for: .changeToken) == "x")
  }

  @Test("After a leak no capability that the former keys sealed is valid")
  func leak() async throws {
    let server = try await TestServer()
    let ticket = try server.service.signer.seal("x", for: .identityTicket)
    let token = try server.service.signer.seal("x", for: .changeToken)
    #expect(try server.service.rotateKeys(formerHaveLeaked: true) == "2")
    let signer = server.service.signer
    #expect(signer.open(ticket, as: String.self, for: .identityTicket) == nil)
    #expect(signer.open(token, as: String.self, for: .changeToken) == "x")
  }

  @Test("A running server refuses a key file that is another one and not an extended one")
  func replacedFile() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let vault = server.service.vault
      let keys = vault.signingKeys
      try ring().write(folder.appendingPathComponent("field-keys.json"))
      #expect(try vault.reread() == keys)
      #expect(vault.signingKeys == keys)
      await server.service.shutdown()
    }
  }

  @Test("A server uses the keys that another one has created")
  func otherServer() throws {
    let clock = StoppedClock()
    var ring = ring()
    let before = ring.signingKeys
    ring.addSigningKey(Data(repeating: 2, count: 32), now: clock.now.wireMilliseconds)
    let after = ring.signingKeys
    let text = try signer(after, clock).seal("x", for: .download)
    let other = signer(before, clock) { after }
    #expect(other.open(text, as: String.self, for: .download) == "x")
    #expect(try other.seal("x", for: .download) == text)
  }

  @Test("A key file of an earlier version gets a signing key, and keeps its field keys")
  func olderFile() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      await first.service.shutdown()
      let file = folder.appendingPathComponent("field-keys.json")
      var ring = try #require(try KeyRing.read(file))
      ring.signing = nil
      try ring.write(file)
      let second = try await TestServer(folder: folder, seed: 2)
      #expect(second.service.vault.keyIDs == ["1"])
      #expect(second.service.vault.signingKeys.count == 1)
      #expect(try KeyRing.read(file)?.signingKeys == second.service.vault.signingKeys)
      await second.service.shutdown()
    }
  }
}
