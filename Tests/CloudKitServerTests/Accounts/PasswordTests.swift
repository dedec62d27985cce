import Foundation
import Testing

@testable import CloudKitServer

@Suite("Passwords")
struct PasswordTests {
  @Test("A password is hashed as in RFC 7914, 12 (scrypt)")
  func vector() throws {
    let made = try PasswordHash.make(
      "pleaseletmein",
      salt: Data("SodiumChloride".utf8),
      cost: PasswordCost(stored: 16_384)
    )
    #expect(
      made.hexadecimal
        == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
    )
  }

  @Test("A hash of an earlier version, PBKDF2, is accepted and replaced")
  func olderHashes() async throws {
    let server = try await TestServer()
    let account = StoredAccount(
      id: "x",
      userName: "old",
      passwordSalt: Data("salt".utf8),
      // The second test vector of RFC 6070, with SHA-256.
      passwordHash: try #require(
        Data(hexadecimal: "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43")
      ),
      passwordRounds: 2
    )
    var batch = WriteBatch()
    batch.accounts = [account]
    try server.service.storage.commit(batch)
    for _ in 0..<2 {
      _ = try await server.service.signIn(
        userName: "old",
        password: "password",
        container: TestServer.container
      )
      let stored = try server.service.storage.read { try $0.account(userName: "old") }
      #expect(stored.map(PasswordHash.isKeyed) == true)
    }
  }

  @Test("Without the key file a copy of the database is no help in trying passwords")
  func keyedHashes() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      _ = try await server.person()
      let storage = server.service.storage
      func signIn(_ server: TestServer) async -> Bool {
        let session = try? await server.service.signIn(
          userName: "ada",
          password: "secret",
          container: TestServer.container
        )
        return session != nil
      }
      let stored = try #require(try storage.read { try $0.account(userName: "ada") })
      let hash = try PasswordHash.make("secret", like: stored)
      #expect(stored.passwordHash.range(of: hash) == nil)
      // A rotation keeps the former key.
      _ = try server.service.rotateKeys(formerHaveLeaked: true)
      #expect(await signIn(server))
      // With the key of another server the right password is wrong.
      let other = try await TestServer(seed: 7)
      var batch = WriteBatch()
      batch.accounts = [stored]
      try other.service.storage.commit(batch)
      #expect(await !signIn(other))
      // A hash that an earlier version stored is accepted, and replaced.
      var plain = stored
      plain.passwordHash = hash
      batch.accounts = [plain]
      try other.service.storage.commit(batch)
      #expect(await signIn(other))
      let replaced = try other.service.storage.read { try $0.account(userName: "ada") }
      #expect(replaced.map(PasswordHash.isKeyed) == true)
      await server.service.shutdown()
    }
  }

  @Test("A reset link that a full queue refused stays valid until it has set a password")
  func resetUnderLoad() async throws {
    let server = try await TestServer(limits: {
      $0.waitingHashes = 1
      $0.waitingHashesOfKnown = 0
    })
    _ = try await server.person()
    let url = try await server.service.accounts.passwordResetURL(for: "ada")
    let path = String(url.dropFirst("http://127.0.0.1:8080".count))
    let body = Data("password=a+new+password".utf8)
    let refused = try await server.service.passwords.hashing.withPlace(
      of: nil,
      server.service.limits
    ) { _ in
      await server.send("POST", path, body: body)
    }
    #expect(refused.status == 429)
    #expect(await server.send("POST", path, body: body).status == 200)
    #expect(await server.send("POST", path, body: body).status == 400)
    _ = try await server.service.signIn(
      userName: "ada",
      password: "a new password",
      container: TestServer.container
    )
  }

  @Test("Only one of two concurrent uses of a reset link sets the password")
  func resetTwice() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let url = try await server.service.accounts.passwordResetURL(for: "ada")
    let path = String(url.dropFirst("http://127.0.0.1:8080".count))
    async let first = server.send("POST", path, body: Data("password=the+first+one".utf8))
    async let second = server.send("POST", path, body: Data("password=the+second+one".utf8))
    #expect(await [first.status, second.status].sorted() == [200, 400])
  }

  @Test("A new password has 128 characters at most, however many bytes they have")
  func longestPassword() {
    let rule = PasswordRule()
    func objection(_ text: String) -> String? { rule.objection(to: text, userName: "ada") }
    let words = "correct horse battery staple "
    let long = String(repeating: words, count: 5)
    #expect(objection(String(long.prefix(128))) == nil)
    #expect(objection(String(long.prefix(129))) == "A password has at most 128 characters.")
    let wide = String(repeating: "語学の勉強は楽しい", count: 15)
    #expect(objection(String(wide.prefix(128))) == nil)
    #expect(objection(String(wide.prefix(129))) != nil)
    #expect(objection(String(repeating: long, count: 10_000)) != nil)
  }

  @Test("A hash of a lower cost opens its account and is replaced by one of today's cost")
  func raisedCost() async throws {
    try await withTemporaryFolder { folder in
      let before = try await TestServer(folder: folder, limits: { $0.passwordRepetitions = 1 })
      _ = try await before.person()
      await before.service.shutdown()
      let server = try await TestServer(folder: folder, seed: 2, limits: { $0.passwordRounds = 4 })
      func cost() throws -> PasswordCost? {
        try server.service.storage.read { try $0.account(userName: "ada") }
          .map { PasswordCost(stored: $0.passwordRounds) }
      }
      #expect(try cost() != PasswordCost(server.service.limits))
      for _ in 0..<2 {
        _ = try await server.service.signIn(
          userName: "ada",
          password: "secret",
          container: TestServer.container
        )
        #expect(try cost() == PasswordCost(server.service.limits))
      }
      await server.service.shutdown()
    }
  }

  @Test("The default cost is OWASP's recommendation: 32,768 rounds of 1 KB, three times")
  func defaultCost() {
    let cost = PasswordCost(ServiceLimits())
    #expect(cost.rounds == 32_768)
    #expect(cost.repetitions == 3)
    #expect(PasswordCost(stored: cost.stored) == cost)
    #expect(PasswordCost(stored: 32_768).repetitions == 1)
  }

  @Test("A password opens the account in every Unicode composition")
  func normalForm() async throws {
    let server = try await TestServer()
    let (composed, decomposed) = ("caf\u{E9} au lait", "cafe\u{301} au lait")
    for (name, password) in [("a", composed), ("b", decomposed)] {
      try await server.service.createAccount(userName: name, password: password)
      for typed in [composed, decomposed] {
        _ = try await server.service.signIn(
          userName: name,
          password: typed,
          container: TestServer.container
        )
      }
    }
  }

  @Test("The text as typed is hashed only for an account whose hash may be that of it")
  func forms() {
    let decomposed = "cafe\u{301} au lait"
    func account(hashBytes: Int) -> StoredAccount {
      StoredAccount(
        id: "x",
        userName: "ada",
        passwordSalt: Data(),
        passwordHash: Data(count: hashBytes),
        passwordRounds: 2
      )
    }
    let counts = [nil, account(hashBytes: 32), account(hashBytes: 64), account(hashBytes: 100)]
      .map { PasswordService.forms(of: decomposed, for: $0).count }
    #expect(counts == [1, 2, 2, 1])
    let plain = PasswordService.forms(of: "au lait", for: account(hashBytes: 64))
    #expect(plain == ["au lait"])
  }

  @Test(
    "Common passwords are refused, and others are not",
    arguments: [
      ("password", false), ("Passwort2024!", false), ("1234567890", false), ("qwertyuiop", false),
      ("aaaaaaaaaaaa", false), ("abcabcabcabc", false), ("ada.lovelace", false), ("short", false),
      ("correct horse battery staple", false), ("IloveYou!!", false), ("0987654321", false),
      ("tulips on the sill", true), ("k7f2m-9xq4p-aaaaa", true), ("zwölf Boxkämpfer", true),
      (String(repeating: "ab1-", count: 257), false),
    ]
  )
  func rule(password: String, isTaken: Bool) {
    let objection = PasswordRule().objection(to: password, userName: "Ada.Lovelace")
    #expect((objection == nil) == isTaken, "\(objection ?? "")")
  }

  @Test("Administrators cannot set a password that its owner could not choose")
  func administrators() async throws {
    let server = try await TestServer(
      limits: { $0.passwordRule = PasswordRule() },
      administratorToken: "operator's token"
    )
    let administrator = Administrator(server: server, token: "operator's token")
    let weak = #"{"userName":"eve","password":"x"}"#
    #expect(await administrator.send("users/create", weak).status == 400)
    #expect(try !server.service.accounts.has(named: "eve"))
    let good = #"{"userName":"eve","password":"tulips on the sill"}"#
    #expect(await administrator.send("users/create", good).status == 200)
    let changes = #"{"userName":"eve","changes":{"password":"password123"}}"#
    #expect(await administrator.send("users/update", changes).status == 400)
    _ = try await server.service.signIn(
      userName: "eve",
      password: "tulips on the sill",
      container: TestServer.container
    )
  }
}

extension Data {
  fileprivate init?(hexadecimal text: String) {
    var bytes = Data()
    var rest = Substring(text)
    while !rest.isEmpty {
      guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    self = bytes
  }
}
