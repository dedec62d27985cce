import CloudKitServerHTTP
import Foundation
import OpenCloudKit
import Testing

@Suite("A server inside a process")
struct EmbeddedServerTests {
  private let containerID = "iCloud.org.example.embedded"

  @Test("Records of a folder are served again by the next server")
  func keepsItsData() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data", isDirectory: true)
      let record = CKRecord(recordType: "Note", recordID: CKRecord.ID(recordName: "n"))
      record["title"] = "kept"
      try await serving(.init(dataFolder: data)) { server in
        try await server.createAccount(userName: "ada", password: "correct horse battery")
        try await container(of: server).privateCloudDatabase.save(record)
      }
      try await serving(.init(dataFolder: data)) { server in
        let copy = try await container(of: server).privateCloudDatabase.record(for: record.recordID)
        #expect(copy["title"] as? String == "kept")
      }
    }
  }

  @Test("Two servers in memory share nothing")
  func isInMemory() async throws {
    try await serving(.init()) { first in
      try await first.createAccount(userName: "ada", password: "correct horse battery")
      try await serving(.init()) { second in
        await #expect(throws: EmbeddedServer.Failure.self) {
          _ = try await second.webAuthToken(for: "ada", container: containerID)
        }
      }
    }
  }

  @Test("A folder is served by one server at a time, and is free after it has stopped")
  func locksItsFolder() async throws {
    try await withTemporaryFolder { folder in
      try await serving(.init(dataFolder: folder)) { _ in
        let failure = await #expect(throws: EmbeddedServer.Failure.self) {
          _ = try await EmbeddedServer.start(.init(dataFolder: folder))
        }
        #expect(failure?.description == "Another server uses the data folder \(folder.path).")
      }
      try await serving(.init(dataFolder: folder)) { _ in }
    }
  }

  @Test("A port in use fails with a sentence, and leaves the folder free")
  func reportsAPortInUse() async throws {
    try await withTemporaryFolder { folder in
      try await serving(.init()) { server in
        var configuration = EmbeddedServer.Configuration(dataFolder: folder)
        configuration.port = try #require(server.url.port)
        let failure = await #expect(throws: EmbeddedServer.Failure.self) {
          _ = try await EmbeddedServer.start(configuration)
        }
        #expect(failure?.description.contains("is in use by another program") == true)
      }
      try await serving(.init(dataFolder: folder)) { _ in }
    }
  }

  @Test("A schema with an error replaces nothing, and the failure names its line")
  func refusesAWrongSchema() async throws {
    try await serving(.init()) { server in
      let failure = await #expect(throws: EmbeddedServer.Failure.self) {
        try await server.importSchema("DEFINE SCHEMA\n  RECORD TIPE A ();", container: containerID)
      }
      #expect(failure?.description.contains("line 2") == true)
    }
  }

  @Test("Production takes no record type that was not promoted")
  func servesProduction() async throws {
    try await serving(.init()) { server in
      try await server.createAccount(userName: "ada", password: "correct horse battery")
      let database = try await container(of: server, .production).privateCloudDatabase
      let error = await #expect(throws: CKError.self) {
        try await database.save(CKRecord(recordType: "Note"))
      }
      #expect(error?.code == .invalidArguments)
      try await container(of: server).privateCloudDatabase.save(CKRecord(recordType: "Note"))
    }
  }

  @Test("A short password is refused with a sentence")
  func refusesAShortPassword() async throws {
    try await serving(.init()) { server in
      let failure = await #expect(throws: EmbeddedServer.Failure.self) {
        try await server.createAccount(userName: "ada", password: "x")
      }
      #expect(failure?.description.contains("characters") == true)
    }
  }

  private func serving(
    _ configuration: EmbeddedServer.Configuration,
    _ body: (EmbeddedServer) async throws -> Void
  ) async throws {
    let server = try await EmbeddedServer.start(configuration)
    do {
      try await body(server)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private func container(
    of server: EmbeddedServer,
    _ environment: CKContainerConfiguration.Environment = .development
  ) async throws -> CKContainer {
    CKContainer(
      identifier: containerID,
      configuration: CKContainerConfiguration(
        url: server.url,
        containerIdentifiers: [containerID],
        environment: environment,
        apiToken: try await server.apiToken(
          for: containerID,
          environment: environment == .production ? .production : .development
        ),
        webAuthToken: try await server.webAuthToken(for: "ada", container: containerID)
      )
    )
  }
}
