import CloudKitWebServices
import Foundation
import Testing
import WatershedPostgreSQL
import WatershedSQLite

@testable import CloudKitServer

/// API tokens: shown once, stored as digests.
@Suite("API tokens", .everyEngine)
struct APITokenTests {
  private func opens(_ token: String, _ server: TestServer) async -> Bool {
    var visitor = server.visitor
    visitor.apiToken = token
    return await visitor.send(.caller, Data("{}".utf8), in: .public).status != 401
  }

  @Test("The data folder has no API token of the apps or of the server itself")
  func digests() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let token = try await server.service.createAPIToken(container: TestServer.container)
      await server.service.shutdown()
      try expectAbsent([token, server.apiToken], in: folder)
    }
  }

  @Test("The server shows its own token again after a restart, and no other")
  func ownToken() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      let app = try await first.service.createAPIToken()
      await first.service.shutdown()
      let second = try await TestServer(folder: folder, seed: 2)
      #expect(second.apiToken == first.apiToken)
      #expect(
        try await second.service.apiTokens.token(opening: "c", environment: .development)
          == first.apiToken
      )
      #expect(await opens(app, second))
      // After its removal, it is not created again.
      try await second.service.apiTokens.remove(second.apiToken)
      #expect(await !opens(second.apiToken, second))
      let next = try await second.service.bootstrapAPIToken()
      #expect(next != second.apiToken)
      #expect(await opens(next, second))
      await second.service.shutdown()
    }
  }

  @Test("A token is removed by its full text, or by a prefix that only one token has")
  func removal() async throws {
    let server = try await TestServer()
    let service = server.service
    let token = try await service.createAPIToken()
    #expect(await opens(token, server))
    await #expect(throws: AdministrationError.self) {
      try await service.apiTokens.remove("")
    }
    await #expect(throws: AdministrationError.self) {
      try await service.apiTokens.remove(String(token.prefix(7)))
    }
    try await service.apiTokens.remove(String(token.prefix(8)))
    #expect(await !opens(token, server))
    #expect(await opens(server.apiToken, server))
  }

  @Test("Plain tokens of an earlier version become digests and stay valid")
  func earlierTokens() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      await first.service.shutdown()
      let token = String(repeating: "0123456789abcdef", count: 4)
      let statements = [
        "ALTER TABLE api_tokens DROP COLUMN prefix", "ALTER TABLE api_tokens DROP COLUMN sealed",
        "INSERT INTO api_tokens (token, environment, allowed_origins) "
          + "VALUES ('\(token)', 'development', '[]')",
        "INSERT INTO devices (token, container, environment) "
          + "VALUES ('device of old', 'c', 'development')",
      ]
      if let url = TestEngine.knownURL(for: folder) {
        let connection = try PostgreSQLConnection(url: url)
        try connection.transaction {
          for statement in statements { try connection.queue(statement) }
          let facts = ServiceFacts(session: PostgreSQLSession(connection: connection))
          try facts.set("format", 6)
          try facts.set("oldest server", 2)
        }
      } else {
        let path = folder.appendingPathComponent("watershed.sqlite").path
        let connection = try SQLiteConnection(path: path)
        for statement in statements + ["PRAGMA user_version = 6"] {
          try connection.execute(statement)
        }
        let facts = ServiceFacts(session: SQLiteSession(connection: connection))
        try facts.set("format", 6)
        try facts.set("oldest server", 2)
      }
      let second = try await TestServer(folder: folder, seed: 2)
      #expect(await opens(token, second))
      let prefixes = try second.service.apiTokenDescriptions().map(\.prefix)
      #expect(prefixes.contains("01234567"))
      #expect(try second.service.storage.read { try $0.device(token: "device of old") } == nil)
      await second.service.shutdown()
      if TestEngine.current == .sqlite { try expectAbsent([token], in: folder) }
    }
  }

  private func expectAbsent(_ tokens: [String], in folder: URL) throws {
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    for case let file as URL in files ?? .init() {
      guard let bytes = try? Data(contentsOf: file) else { continue }
      for token in tokens {
        #expect(bytes.range(of: Data(token.utf8)) == nil, "\(file.lastPathComponent)")
      }
    }
  }

  @Test(
    "User tokens are sent over TLS, within the machine or to an app's own scheme",
    arguments: [
      ("https://app.example/after?a=b", true), ("http://localhost:3000/", true),
      ("http://127.0.0.1/x", true), ("http://[::1]:80/", true), ("org.example.app://in", true),
      ("http://app.example/", false), ("http://127.0.0.1.evil.example/", false),
      ("http://localhost@evil.example/", false), ("https:///x", false), ("//app.example", false),
      ("javascript:alert(1)", false), ("https://app.example/#part", false), ("", false),
    ]
  )
  func redirects(address: String, isTaken: Bool) async throws {
    let server = try await TestServer()
    let token = try? await server.service.createAPIToken(redirectURL: address)
    #expect((token != nil) == isTaken)
  }

  @Test("A request without a user registers no container")
  func inventedContainer() async throws {
    let server = try await TestServer()
    let path = WebServicePath(
      container: "iCloud.invented",
      environment: .development,
      database: .public,
      endpoint: .lookupRecords
    ).text(items: [(name: WebServiceName.apiToken, value: server.apiToken)])
    let body = try WireCoding.encode(LookupRecordsRequest(records: [LookupRecord(recordName: "r")]))
    #expect(await server.send("POST", path, body: body).status == 200)
    #expect(try server.service.containers().isEmpty)
  }
}
