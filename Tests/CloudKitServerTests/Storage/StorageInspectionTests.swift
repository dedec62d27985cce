import CloudKitServer
import Foundation
import Testing
import WatershedSQLite

/// The result of inspecting a stopped server's database that cannot be read.
@Suite("Inspecting storage")
struct StorageInspectionTests {
  private func findings(
    _ change: (_ database: URL) async throws -> SQLiteConnection?
  ) async throws -> [StorageInspection.Finding] {
    try await withTemporaryFolder { folder in
      do { _ = try await TestServer(folder: folder) }
      let database = folder.appendingPathComponent("watershed.sqlite")
      let held = try await change(database)
      defer { withExtendedLifetime(held) {} }
      return await StorageInspection(ServiceConfiguration(dataFolder: folder)).findings
    }
  }

  @Test("A database that another program has locked is not reported as damaged")
  func locked() async throws {
    let findings = try await findings { database in
      let other = try SQLiteConnection(path: database.path)
      try other.execute("PRAGMA locking_mode = EXCLUSIVE")
      // A writer's open transaction leaves a log, which makes the reader request the lock.
      try other.execute("BEGIN IMMEDIATE; CREATE TABLE other (a); COMMIT")
      try other.execute("BEGIN IMMEDIATE")
      return other
    }
    #expect(findings.map(\.subject) == ["database"])
    #expect(findings.first?.isDamage == false)
    #expect(findings.first?.problem?.contains("locked") == true, "\(findings)")
  }

  @Test("A database with overwritten pages is reported as damaged")
  func damaged() async throws {
    let findings = try await findings { database in
      // Without its log, which may have every page.
      for suffix in ["-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: database.path + suffix)
      }
      try Data(repeating: 0x5a, count: 16_384).write(to: database)
      return nil
    }
    #expect(findings.map(\.isDamage) == [true], "\(findings)")
  }

  @Test("An intact database has no finding")
  func sound() async throws {
    let findings = try await findings { _ in nil }
    #expect(findings.first?.problem == nil, "\(findings)")
  }
}
