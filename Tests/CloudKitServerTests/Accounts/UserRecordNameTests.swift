import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Record names of users", .everyEngine)
struct UserRecordNameTests {
  private func recordName(_ server: TestServer, container: String) async throws -> String {
    let account = try server.service.storage.read { try $0.account(userName: "ada") }
    return try await server.service.users.user(
      account: try #require(account).id,
      container: container
    ).recordName
  }

  @Test("A user created after a backup has the same name after the backup is restored")
  func restored() async throws {
    try await withTemporaryFolder { folder in
      let backup = folder.appendingPathComponent("backup")
      let new = folder.appendingPathComponent("new")
      let server = try await TestServer(folder: folder.appendingPathComponent("old"))
      _ = try await server.person("ada")
      try await server.service.backUp(to: backup)
      let lost = try await recordName(server, container: "iCloud.later")
      #expect(lost != (try await recordName(server, container: "iCloud.another")))
      #expect(lost.wholeMatch(of: /_[0-9a-f]{32}/) != nil)
      await server.service.shutdown()
      try await BackupFolder(backup).restore(
        to: new,
        configuration: ServiceConfiguration(
          dataFolder: new,
          database: try TestEngine.databaseURL(for: new)
        )
      )
      let again = try await TestServer(folder: new, seed: 2)
      #expect(try await recordName(again, container: "iCloud.later") == lost)
      await again.service.shutdown()
    }
  }

  @Test("A new key of the server changes no name")
  func rotated() async throws {
    let vault = try await TestServer().service.vault
    let name = vault.userRecordName(account: "a", container: "c")
    for _ in 0..<12 { _ = try vault.rotate(now: 0) }
    #expect(vault.userRecordName(account: "a", container: "c") == name)
    #expect(vault.userRecordName(account: "ac", container: "") != name)
  }
}
