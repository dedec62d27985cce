import Crypto
import Foundation
import Testing
import WatershedPostgreSQL
import WatershedSQLite

@testable import CloudKitServer

@Suite("Migrations of the tables")
struct StorageMigrationTests {
  @Test("A file of the first version gets the tables of a new file")
  func firstVersion() async throws {
    try await withTemporaryFolder { folder in
      let old = try folder.filled { try $0.execute(FirstStorageVersion.tables) }
      try SQLiteStorage(folder: old, effects: .still).close()
      try #expect(TableDescription.inFile(of: old) == TableDescription.declaredInSQLite(folder))
    }
  }

  @Test("A file of the second version gets the tables of a new file")
  func secondVersion() async throws {
    try await withTemporaryFolder { folder in
      let old = try folder.filled { file in
        for statement in StorageFormat.sharedTablesInSQLite { try file.execute(statement) }
        try ServiceFacts(session: SQLiteSession(connection: file)).set("format", 2)
      }
      try SQLiteStorage(folder: old, effects: .still).close()
      try #expect(TableDescription.inFile(of: old) == TableDescription.declaredInSQLite(folder))
    }
  }

  @Test("The SQL of a released version never changes")
  func frozen() {
    var digest = SHA256()
    for step in StorageFormat.current.steps where step.version <= 7 {
      for dialect in [SQLDialect.sqlite, .postgreSQL] {
        for statement in step.statements(dialect) { digest.update(data: Data(statement.utf8)) }
      }
    }
    let found = digest.finalize().map { String(format: "%02x", $0) }.joined()
    #expect(found == "beb4f71414231c5dc9f06bedd68128d2d67135b1d6173e338a8a8343467316c7")
  }
}

@Suite("Migrations of the tables in PostgreSQL", .everyEngine)
struct PostgreSQLMigrationTests {
  @Test("A database of the second version gets the tables of a new database")
  func secondVersion() throws {
    guard TestEngine.current == .postgreSQL, let url = try TestEngine.freshDatabaseURL(),
      let other = try TestEngine.freshDatabaseURL()
    else { return }
    let connection = try PostgreSQLConnection(url: url)
    try connection.transaction {
      for statement in SecondStorageVersion.tablesInPostgreSQL { try connection.queue(statement) }
      let facts = ServiceFacts(session: PostgreSQLSession(connection: connection))
      try facts.set("format", 2)
      try facts.set("oldest server", 2)
    }
    for address in [url, other] { try PostgreSQLStorage(url: address, effects: .still).close() }
    try #expect(TableDescription.inDatabase(url) == TableDescription.inDatabase(other))
  }
}

/// The columns and indexes of a storage's tables, a line each.
private enum TableDescription {
  static func declaredInSQLite(_ folder: URL) throws -> [String] {
    let new = folder.appendingPathComponent("new")
    try SQLiteStorage(folder: new, effects: .still).close()
    return try inFile(of: new)
  }

  static func inFile(of folder: URL) throws -> [String] {
    let path = folder.appendingPathComponent("watershed.sqlite").path
    let file = try SQLiteConnection(path: path)
    let columns = """
      SELECT m.name || '.' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c."notnull" || ' '
        || coalesce(c.dflt_value, '') || ' ' || c.pk
      FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'
      """
    let indexes = "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    let layouts = "SELECT name || ' ' || wr FROM pragma_table_list WHERE schema = 'main'"
    return try [columns, indexes, layouts].flatMap { sql in
      try file.query(sql) { $0.text(0) }
    }.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }.sorted()
  }

  static func inDatabase(_ url: String) throws -> [String] {
    let connection = try PostgreSQLConnection(url: url)
    let schema = try connection.query("SELECT current_schema()")[0].text(0)
    let columns = """
      SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, collation_name,
        is_nullable, column_default)
      FROM information_schema.columns WHERE table_schema = current_schema()
      """
    let indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()"
    return try [columns, indexes].flatMap { sql in
      let rows = try connection.query(sql)
      return (0..<rows.count).map { rows[$0].text(0).replacing("\(schema).", with: "") }
    }.sorted()
  }
}

extension URL {
  /// A folder with a database file that the body fills.
  fileprivate func filled(_ body: (SQLiteConnection) throws -> Void) throws -> URL {
    let folder = appendingPathComponent("old")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = try SQLiteConnection(path: folder.appendingPathComponent("watershed.sqlite").path)
    try body(file)
    return folder
  }
}
