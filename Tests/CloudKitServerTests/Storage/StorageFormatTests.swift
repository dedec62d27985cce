import CloudKitWebServices
import Effects
import Foundation
import Testing
import WatershedPostgreSQL
import WatershedSQLite

@testable import CloudKitServer

@Suite("Versions of the tables", .everyEngine)
struct StorageFormatTests {
  private let effects = Effects.still
  private let key = PartitionKey.privateDatabase

  private func open(_ folder: URL, _ format: StorageFormat) throws -> any Storage {
    if let url = try TestEngine.databaseURL(for: folder) {
      return try PostgreSQLStorage(url: url, effects: effects, format: format)
    }
    return try SQLiteStorage(folder: folder, effects: effects, format: format)
  }

  /// A server of the next version, with an additional table.
  private func next(oldestServer: Int64) -> StorageFormat {
    var format = StorageFormat.current
    format.version += 1
    format.oldestServer = oldestServer
    format.steps.append(
      StorageFormat.Step(version: format.version, oldestServer: oldestServer) { _ in
        ["CREATE TABLE added (a bigint)", "INSERT INTO added (a) VALUES (1)"]
      }
    )
    return format
  }

  @Test("A newer server adds its tables, and an older one continues beside it")
  func expansion() async throws {
    try await withTemporaryFolder { folder in
      let old = try open(folder, .current)
      let id = try old.partition(key)
      let new = try open(folder, next(oldestServer: StorageFormat.current.version))
      #expect(try new.partition(key) == id)
      #expect(new.secret == old.secret)
      let third = try open(folder, .current)
      var batch = WriteBatch(partition: id)
      batch.counter = ChangeNumber(1)
      try third.commit(batch)
      #expect(try new.read { try $0.database(id).counter } == ChangeNumber(1))
      for storage in [old, new, third] { storage.close() }
    }
  }

  @Test(
    "An older server refuses to start after a newer one removed what it needs"
  )
  func contraction() async throws {
    try await withTemporaryFolder { folder in
      let version = StorageFormat.current.version
      try open(folder, .current).close()
      try open(folder, next(oldestServer: version + 1)).close()
      let error = #expect(throws: StorageVersionError.self) { try open(folder, .current) }
      #expect(
        error?.description
          == "The server's data has format \(version + 1) and needs a server of format "
          + "\(version + 1) or newer; this one knows format \(version). Use the server that wrote "
          + "it, or a newer one."
      )
      // The newer one still starts.
      try open(folder, next(oldestServer: version + 1)).close()
    }
  }

  @Test("An upgrade replaces full indexes by partial ones and keeps the others")
  func indexesOfOlderVersions() async throws {
    try await withTemporaryFolder { folder in
      let first = try open(folder, .current)
      let id = try first.partition(key)
      var batch = WriteBatch(partition: id)
      batch.counter = ChangeNumber(4)
      try first.commit(batch)
      first.close()
      // As the third version left them.
      let third = [
        "DROP INDEX records_by_change",
        "CREATE INDEX records_by_change ON records (partition, zone, change)",
        "DROP INDEX references_by_source",
        "CREATE INDEX references_by_source ON record_references (partition, zone, source)",
        "DROP INDEX directory_entries_by_owner",
        "CREATE INDEX directory_entries_by_owner ON directory_entries (kind, owner, name)",
        "DROP INDEX accounts_by_address",
      ]
      func indexes() throws -> [String] {
        if let url = TestEngine.knownURL(for: folder) {
          let rows = try PostgreSQLConnection(url: url).query(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()"
          )
          return (0..<rows.count).map { rows[$0].text(0) }
        }
        let path = folder.appendingPathComponent("watershed.sqlite").path
        return try SQLiteConnection(path: path).query(
          "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        ) { $0.text(0) }
      }
      let expected = Set(try indexes())
      if let url = TestEngine.knownURL(for: folder) {
        let connection = try PostgreSQLConnection(url: url)
        try connection.transaction {
          for statement in third { try connection.queue(statement) }
          try ServiceFacts(session: PostgreSQLSession(connection: connection)).set("format", 3)
        }
      } else {
        let path = folder.appendingPathComponent("watershed.sqlite").path
        let connection = try SQLiteConnection(path: path)
        for statement in third + ["PRAGMA user_version = 3"] { try connection.execute(statement) }
        try ServiceFacts(session: SQLiteSession(connection: connection)).set("format", 3)
      }
      let forward = try open(folder, .current)
      #expect(try forward.partition(key) == id)
      #expect(try forward.read { try $0.database(id).counter } == ChangeNumber(4))
      forward.close()
      let found = Set(try indexes())
      if TestEngine.current == .postgreSQL { #expect(found == expected) }
      #expect(found.contains { $0.contains("accounts_by_address") && $0.contains("lower(") })
    }
  }

  @Test("Data that is too old to be migrated is refused with a remedy")
  func tooOld() async throws {
    try await withTemporaryFolder { folder in
      try open(folder, .current).close()
      let version = StorageFormat.current.version
      let far = StorageFormat(version: version + 5, oldestServer: version + 5, steps: [])
      let error = #expect(throws: StorageVersionError.self) { try open(folder, far) }
      #expect(error?.description.contains("too old for this server") == true)
      try open(folder, .current).close()
    }
  }

  @Test("A step that fails leaves the tables unchanged")
  func failedStep() async throws {
    try await withTemporaryFolder { folder in
      try open(folder, .current).close()
      var broken = next(oldestServer: 1)
      broken.steps[broken.steps.count - 1].statements = { _ in
        ["CREATE TABLE added (a bigint)", "INSERT INTO nowhere VALUES (1)"]
      }
      #expect(throws: (any Error).self) { try open(folder, broken) }
      // The table of the failed step would make this one fail.
      try open(folder, next(oldestServer: StorageFormat.current.version)).close()
    }
  }
}

@Suite("Data of the first version")
struct FirstStorageVersionTests {
  @Test("A file of the first version is migrated with all its contents")
  func migration() async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let file = try SQLiteConnection(path: folder.appendingPathComponent("watershed.sqlite").path)
      try file.execute(FirstStorageVersion.tables)
      try file.execute(FirstStorageVersion.rows)
      try Data("3".utf8).write(to: folder.appendingPathComponent("openings"))

      let storage = try SQLiteStorage(folder: folder, effects: .still)
      #expect(storage.secret == Data("secret".utf8))
      #expect(storage.incarnation == "abc")
      let id = try storage.partition(
        PartitionKey(container: "c", environment: .development, scope: .private, owner: "_o")
      )
      #expect(id.rawValue == 7)
      try storage.read { (snapshot: any StorageSnapshot) throws in
        #expect(try snapshot.database(id).counter == ChangeNumber(12))
        #expect(try snapshot.livingZones(in: id).map(\.name) == ["notes"])
        let key = RecordKey(zone: ZoneNumber(1), name: "a")
        #expect(try snapshot.records(in: id, keys: [key])[key]?.fields == Data("{}".utf8))
        #expect(try snapshot.activeIndexes(in: id, types: ["Note"]).isEmpty)
        #expect(try snapshot.account(userName: "ADA")?.id == "1")
        #expect(try snapshot.session(digest: "d")?.userRecordName == "_o")
        #expect(try snapshot.device(token: "t")?.userRecordName == nil)
        #expect(try snapshot.subscriptions(in: id, user: "_o").map(\.id) == ["s"])
      }
      storage.close()
    }
  }
}
