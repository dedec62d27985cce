import CloudKitMirroring
import Foundation
import Testing
import WatershedSQLite

/// `watershed recovery list`: a store's recovery list from its file alone.
@Suite("The recovery list of a file")
struct RecoveryListTests {
  /// A file with the mirroring's tables and two entries, as a store has them.
  private func makeStore(at url: URL, keepingLog: Bool = false) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(path: url.path)
    if keepingLog { try connection.execute("PRAGMA journal_mode = WAL") }
    let metadata = MirrorMetadata(connection)
    try metadata.open()
    try metadata.keep(
      RecoveredEdit(
        record: "r1",
        entityName: "Note",
        reason: "Another device deleted the object.",
        noted: 0,
        fields: FieldBag([
          "CD_title": .string("kept"), "CD_count": .integer(7), "CD_share": .double(0.5),
          "CD_at": .date(MirrorDate(milliseconds: 1_700_000_000_001)),
          "CD_bytes": .data(Data([1, 2, 3])),
        ])
      )
    )
    try metadata.keep(
      RecoveredEdit(record: "r2", entityName: "Tag", reason: "x", noted: 1, fields: FieldBag())
    )
    return connection
  }

  private func entries(_ outcome: CommandProcess.Outcome) throws -> [[String: Any]] {
    try #require(outcome.exitCode == 0, "\(outcome.errors)")
    let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
    return try #require((object as? [String: Any])?["entries"] as? [[String: Any]])
  }

  @Test("Entries are listed with their values, and the file and its folder stay as they were")
  func list() async throws {
    try await withTemporaryFolder { folder in
      let store = folder.appendingPathComponent("Model.sqlite")
      do { _ = try makeStore(at: store) }
      let before = try Data(contentsOf: store)
      let found = try entries(try await CommandProcess.run("recovery", "list", store.path))
      #expect(found.map { $0["record"] as? String } == ["r1", "r2"])
      #expect(found[0]["entity"] as? String == "Note")
      #expect(found[0]["date"] as? Int == 978_307_200_000)
      let fields = try #require(found[0]["fields"] as? [String: Any])
      #expect(fields["CD_title"] as? String == "kept")
      #expect(fields["CD_count"] as? Int == 7)
      #expect(fields["CD_share"] as? Double == 0.5)
      #expect((fields["CD_at"] as? [String: String])?["value"] == "1700000000001")
      #expect((fields["CD_bytes"] as? [String: String]) == ["type": "BYTES", "value": "AQID"])
      #expect(try Data(contentsOf: store) == before)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["Model.sqlite"])
      let one = try await CommandProcess.run("recovery", "list", store.path, "--limit", "1")
      #expect(try entries(one).count == 1)
    }
  }

  @Test("Entries that are in the log of an open store are listed too")
  func openStore() async throws {
    try await withTemporaryFolder { folder in
      let store = folder.appendingPathComponent("Model.sqlite")
      let connection = try makeStore(at: store, keepingLog: true)
      let found = try entries(try await CommandProcess.run("recovery", "list", store.path))
      #expect(found.count == 2)
      // Held until here: the last connection would copy the log.
      try connection.execute("SELECT 1")
    }
  }

  @Test("A missing file, a file that is no store and tables of another version are errors")
  func refusals() async throws {
    try await withTemporaryFolder { folder in
      let missing = folder.appendingPathComponent("missing.sqlite")
      let none = try await CommandProcess.run("recovery", "list", missing.path)
      #expect(none.exitCode == 1)
      #expect(none.errors.contains("There is no file"), "\(none.errors)")
      #expect(none.errors.contains("next: name the .sqlite file"), "\(none.errors)")
      #expect(!FileManager.default.fileExists(atPath: missing.path))
      let plain = folder.appendingPathComponent("plain.sqlite")
      do { try SQLiteConnection(path: plain.path).execute("CREATE TABLE a (b)") }
      let notMirrored = try await CommandProcess.run("recovery", "list", plain.path)
      #expect(notMirrored.exitCode == 1)
      #expect(notMirrored.errors.contains("is not mirrored"), "\(notMirrored.errors)")
      let newer = folder.appendingPathComponent("newer.sqlite")
      do {
        let connection = try makeStore(at: newer)
        try MirrorMetadata(connection).setMeta(.version, .integer(MirrorMetadata.version + 1))
      }
      let refused = try await CommandProcess.run("recovery", "list", newer.path)
      #expect(refused.exitCode == 1)
      #expect(refused.errors.contains("version \(MirrorMetadata.version + 1)"), "\(refused.errors)")
    }
  }
}
