import CloudKitServer
import Foundation
import Testing
import WatershedSQLite

/// Folders whose database was lost: nothing may serve an empty one in its place.
@Suite("Folders without their database")
struct OrphanedFolderTests {
  /// What is left of a database.
  enum Rest: CaseIterable {
    case nothing, emptyFile, emptyFileAndLog, noTables
  }

  /// What else a server has in its folder.
  static let traces = ["field-keys.json", "assets/identity", "openings"]

  private func leave(_ rest: Rest, of database: URL) throws {
    switch rest {
    case .nothing: return
    case .emptyFile: try Data().write(to: database)
    case .emptyFileAndLog:
      try Data().write(to: database)
      // SQLite deletes the log of an empty file when it opens it.
      try Data("log".utf8).write(to: URL(fileURLWithPath: database.path + "-wal"))
    case .noTables:
      let connection = try SQLiteConnection(path: database.path)
      try connection.execute("CREATE TABLE a (b); DROP TABLE a")
    }
  }

  @Test(
    "An empty database beside a server's keys or files is refused, and nothing is changed",
    arguments: Rest.allCases,
    traces
  )
  func refused(rest: Rest, trace: String) async throws {
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent(trace)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try Data("1".utf8).write(to: file)
      try leave(rest, of: folder.appendingPathComponent("watershed.sqlite"))
      func names() throws -> Set<String> {
        Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path))
      }
      let before = try names()
      let configuration = ServiceConfiguration(dataFolder: folder)
      let error = #expect(throws: (any Error).self) { _ = try configuration.openStorage() }
      #expect("\(try #require(error))".contains("missing or empty"))
      // SQLite's own files of a database that it could open may stay.
      #expect(try names().subtracting(before).allSatisfy { $0.hasPrefix("watershed.sqlite-") })
      #expect(try names().isSuperset(of: before))
      guard rest != .nothing else { return }
      let finding = try #require(await StorageInspection(configuration).findings.first)
      #expect(finding.isDamage, "\(finding)")
    }
  }

  @Test("A new folder and an empty file alone become a server's", arguments: Rest.allCases)
  func accepted(rest: Rest) async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try leave(rest, of: folder.appendingPathComponent("watershed.sqlite"))
      try ServiceConfiguration(dataFolder: folder).openStorage().close()
      // Its own traces are beside its own database.
      try ServiceConfiguration(dataFolder: folder).openStorage().close()
    }
  }
}
