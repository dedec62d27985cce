import Foundation
import Testing

@testable import CloudKitServer

@Suite("Passwords")
struct PasswordTests {
  @Test("A password is hashed as scrypt says (RFC 7914, 12)")
  func vector() throws {
    let made = try PasswordHash.make(
      "pleaseletmein",
      salt: Data("SodiumChloride".utf8),
      rounds: 16_384
    )
    #expect(
      made.hexadecimal
        == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
    )
  }

  @Test("A hash of an earlier version, PBKDF2, still opens its account and is replaced")
  func olderHashes() async throws {
    let server = try await TestServer()
    let account = StoredAccount(
      id: "x",
      userName: "old",
      passwordSalt: Data("salt".utf8),
      // RFC 6070's second vector, for SHA-256.
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
      #expect(stored?.passwordHash.count == 64)
    }
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
