import CloudKitServer
import Foundation
import Testing

/// Other users of the machine, if the data folder is readable for them.
@Suite("Modes of files")
struct FileModeTests {
  /// Files and folders below a folder that other users may read.
  private func open(below folder: URL) throws -> [String] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    return try paths.filter { path in
      let place = folder.appendingPathComponent(path).path
      let mode = try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions]
      return ((mode as? NSNumber)?.intValue ?? 0) & 0o077 != 0
    }
  }

  @Test("A server's files are readable only for their owner, including backups and restored data")
  func modes() async throws {
    try await withTemporaryFolder { folder in
      // As an operator may have created it.
      let data = folder.appendingPathComponent("data")
      try FileManager.default.createDirectory(
        at: data,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o755]
      )
      let server = try await TestServer(folder: data)
      let ada = try await server.person()
      try await ada.makeZone()
      try await ada.save(.create, "a", ["file": .asset(try await ada.upload(Data([1, 2, 3])))])
      #expect(try open(below: data) == [])
      #expect(try FileManager.default.subpathsOfDirectory(atPath: data.path).count > 4)
      let backup = folder.appendingPathComponent("backup")
      _ = try await server.service.backUp(to: backup)
      #expect(try open(below: backup) == [])
      let restored = folder.appendingPathComponent("restored")
      try await BackupFolder(backup).restore(
        to: restored,
        configuration: ServiceConfiguration(dataFolder: restored)
      )
      #expect(try open(below: restored) == [])
      await server.service.shutdown()
    }
  }
}
