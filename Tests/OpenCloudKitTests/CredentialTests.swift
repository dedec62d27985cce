import CloudKitWebServices
import Crypto
import Foundation
import OpenCloudKit
import Testing

@Suite("Tokens and keys of programs")
struct CredentialTests {
  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("credentials-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }

  private func mode(_ url: URL) throws -> Int? {
    let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue
  }

  @Test("Only its owner can read a token file, and signing out removes it")
  func file() async throws {
    try await withFolder { folder in
      let file = TokenFile(folder.appendingPathComponent("deep/token"))
      #expect(try file.read() == nil)
      try file.write(SignInTokens(webAuthToken: "one"))
      #expect(try file.read() == SignInTokens(webAuthToken: "one"))
      #expect(try mode(file.url) == 0o600)
      #expect(try mode(file.url.deletingLastPathComponent()) == 0o700)
      let both = SignInTokens(webAuthToken: "two", refreshToken: "three")
      try file.write(both)
      #expect(try file.read() == both)
      #expect(try mode(file.url) == 0o600)
      try file.write(SignInTokens())
      #expect(try file.read() == nil)
    }
  }

  @Test("A token file that other users can read is refused")
  func openFile() async throws {
    try await withFolder { folder in
      let url = folder.appendingPathComponent("token")
      try Data("secret".utf8).write(to: url)
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: url.path)
      let error = #expect(throws: CKError.self) { try TokenFile(url).read() }
      #expect(error?.code == .badContainer)
      #expect(error?.description.contains("secret") == false)
    }
  }

  @Test("A renewed token is stored in the token file")
  func renewal() async throws {
    try await withFolder { folder in
      let url = folder.appendingPathComponent("token")
      try Data("one\n".utf8).write(to: url)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
      let service = ScriptedService()
      service.answer(
        "{\"userRecordName\":\"_me\"}",
        headers: ["x-apple-cloudkit-web-auth-token": "two"]
      )
      let container = CKContainer(
        identifier: "iCloud.test",
        configuration: CKContainerConfiguration(
          url: URL(string: "http://service.test"),
          apiToken: "api",
          webAuthTokenFile: url
        ),
        transport: ScriptedService.Transport(service: service)
      )
      _ = try await container.userRecordID()
      #expect(service.requests[0].path.contains("ckWebAuthToken=one"))
      #expect(try TokenFile(url).read() == SignInTokens(webAuthToken: "two"))
      try container.setWebAuthToken(nil)
      #expect(try TokenFile(url).read() == nil)
    }
  }

  @Test("A server key signs date, body and path, and no token is sent")
  func serverKey() async throws {
    try await withFolder { folder in
      let key = P256.Signing.PrivateKey()
      let url = folder.appendingPathComponent("eckey.pem")
      try Data(key.pemRepresentation.utf8).write(to: url)
      let service = ScriptedService()
      service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"T\"}]}")
      let container = CKContainer(
        identifier: "iCloud.test",
        configuration: CKContainerConfiguration(
          url: URL(string: "http://service.test"),
          serverKeyID: "key-1",
          serverKeyFile: url
        ),
        transport: ScriptedService.Transport(service: service)
      )
      _ = try await container.publicCloudDatabase.record(for: CKRecord.ID(recordName: "n"))
      let request = try #require(service.requests.first)
      #expect(!request.path.contains("ckAPIToken"))
      #expect(request.headers["x-apple-cloudkit-request-keyid"] == "key-1")
      let date = try #require(request.headers["x-apple-cloudkit-request-iso8601date"])
      #expect(date.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/) != nil)
      let text = try #require(request.headers["x-apple-cloudkit-request-signaturev1"])
      let signature = try P256.Signing.ECDSASignature(
        derRepresentation: #require(Data(base64Encoded: text))
      )
      let hash = Data(SHA256.hash(data: request.body)).base64EncodedString()
      #expect(
        key.publicKey.isValidSignature(
          signature,
          for: Data("\(date):\(hash):\(request.path)".utf8)
        )
      )
    }
  }

  @Test("An invalid server key is refused at configuration, and its error does not contain it")
  func badKey() async throws {
    try await withFolder { folder in
      let url = folder.appendingPathComponent("eckey.pem")
      try Data("-----BEGIN nonsense".utf8).write(to: url)
      let configuration = CKContainerConfiguration(
        url: URL(string: "http://service.test"),
        serverKeyID: "key-1",
        serverKeyFile: url
      )
      let error = #expect(throws: CKError.self) {
        try ResolvedConfiguration(checking: configuration, for: "iCloud.test")
      }
      #expect(error?.code == .badContainer)
      #expect(error?.description.contains("nonsense") == false)
    }
  }

  @Test("A configuration's description contains no tokens")
  func printing() {
    let configuration = CKContainerConfiguration(apiToken: "api-secret", webAuthToken: "web-secret")
    #expect(!"\(configuration)".contains("secret"))
  }
}
