import Foundation
import Testing
import WatershedSQLite

@testable import CloudKitServer

@Suite("A copy of an SQLite file")
struct BackupBesideWritesTests {
  @Test("Copying during a transaction copies the state committed before it")
  func besideWriter() async throws {
    try await withTemporaryFolder { folder in
      let storage = try SQLiteStorage(folder: folder, effects: .still)
      defer { storage.close() }
      let id = try storage.partition(.privateDatabase)
      var batch = WriteBatch(partition: id)
      batch.records = [.plain("a", in: .defaultZone, tag: "t", change: 1)]
      batch.counter = ChangeNumber(1)
      try storage.commit(batch)
      let copy = folder.appendingPathComponent("copy.sqlite")
      try storage.changeFingerprints { _ in
        // Inside the writer's transaction.
        if !FileManager.default.fileExists(atPath: copy.path) { try storage.copy(to: copy) }
      }
      let found = try SQLiteConnection(path: copy.path, mode: .readOnly).query(
        "SELECT name FROM records"
      ) { $0.text(0) }
      #expect(found == ["a"])
    }
  }
}
