import CloudKit
import CloudKitServerHTTP
import Foundation
import Testing

@Suite("Examples: a server in an app's process")
struct ServerExamples {
  @Test("A record is saved on an embedded server")
  func savesOnAnEmbeddedServer() async throws {
    // example: EmbeddedServer
    let server = try await EmbeddedServer.start()
    try await server.createAccount(userName: "ada", password: "a long password")
    let container = CKContainer(
      identifier: "iCloud.org.example.notes",
      configuration: CKContainerConfiguration(
        url: server.url,
        containerIdentifiers: ["iCloud.org.example.notes"],
        environment: .development,
        apiToken: try await server.apiToken(for: "iCloud.org.example.notes"),
        webAuthToken: try await server.webAuthToken(
          for: "ada",
          container: "iCloud.org.example.notes"
        )
      )
    )
    try await container.privateCloudDatabase.save(CKRecord(recordType: "Note"))
    await server.stop()
    // end
  }

  @Test("A server's data is in a folder, and its schema from a file")
  func keepsDataInAFolder() async throws {
    try await Blog.withFolder { folder in
      let schema = """
        DEFINE SCHEMA
          RECORD TYPE Note (
            "___recordID" REFERENCE QUERYABLE,
            title STRING QUERYABLE SORTABLE,
            GRANT WRITE TO "_creator",
            GRANT CREATE TO "_icloud",
            GRANT READ TO "_world"
          );
        """
      // example: EmbeddedServer in a folder
      var configuration = EmbeddedServer.Configuration(
        dataFolder: folder.appendingPathComponent("server", isDirectory: true)
      )
      configuration.host = "0.0.0.0"  // devices of the local network
      configuration.logger.logLevel = .notice
      let server = try await EmbeddedServer.start(configuration)
      try await server.importSchema(schema, container: "iCloud.org.example.notes")
      // end
      await server.stop()
    }
  }
}
