import Foundation
import Synchronization
import Testing
import WatershedSQLite

@testable import CloudKitServer

@Suite("Copies of tables")
struct TableCopyTests {
  /// A session that notes the bytes of each result, and the statements.
  private struct Weighed: SQLSession {
    let base: SQLiteSession
    let largest: Largest

    final class Largest: Sendable {
      let bytes = Mutex(0)
      /// The statements that read replies.
      let texts = Mutex<Set<String>>([])
    }

    var dialect: SQLDialect { base.dialect }

    func query<Result>(
      _ sql: String,
      _ values: [SQLValue],
      _ map: (SQLiteStatement) throws -> Result
    ) throws -> [Result] {
      var bytes = 0
      let isOfReplies = sql.contains("body FROM replies")
      if sql.contains("FROM replies") { _ = largest.texts.withLock { $0.insert(sql) } }
      let found = try base.query(sql, values) { row in
        if isOfReplies { bytes += row.blob(4).count }
        return try map(row)
      }
      largest.bytes.withLock { $0 = max($0, bytes) }
      return found
    }

    func run(_ sql: String, each values: [[SQLValue]]) throws { try base.run(sql, each: values) }

    func insert(
      into table: StorageTable,
      _ conflict: StorageTable.Conflict,
      _ rows: [[SQLValue]]
    ) throws { try base.insert(into: table, conflict, rows) }
  }

  private func session() throws -> SQLiteSession {
    let session = SQLiteSession(connection: try SQLiteConnection(path: ":memory:"))
    try StorageFormat.current.prepare(session)
    return session
  }

  @Test("Pages of any number of rows are read by the same statements")
  func statements() throws {
    let (source, target) = (try session(), try session())
    try source.run(
      "INSERT INTO partitions (partition, container, environment, scope, owner) "
        + "VALUES (1, 'c', 'development', 'private', '_u')",
      []
    )
    // Pages of one row, of two, and so on, of eight megabytes each.
    let sizes = (1...5).flatMap { Array(repeating: 8 * 1_048_576 / $0, count: $0) }
    let rows = sizes.enumerated().map { number, size -> [SQLValue] in
      [
        .integer(1), .text("_u"), .text("d"), .integer(Int64(number)), .bytes(Data(count: size)),
      ]
    }
    try source.insert(into: StorageTables.replies, .refused, rows)
    let largest = Weighed.Largest()
    try TableCopy(source: Weighed(base: source, largest: largest), target: target).run()
    #expect(try target.query("SELECT COUNT(*) FROM replies", []) { $0.int64(0) } == [15])
    // The sizes and the rows, of the first page and of later ones.
    #expect(largest.texts.withLock { $0.count } == 4)
  }

  @Test("A page of a copy ends at a number of bytes, and every row is copied once")
  func pages() throws {
    let (source, target) = (try session(), try session())
    try source.run(
      "INSERT INTO partitions (partition, container, environment, scope, owner) "
        + "VALUES (1, 'c', 'development', 'private', '_u')",
      []
    )
    let size = 3 * 1_048_576
    let body = SQLValue.bytes(Data(count: size))
    let rows = (1...7).map { number -> [SQLValue] in
      [
        .integer(1), .text("_u"), .text("d"), .integer(Int64(number)),
        // The fourth is larger than a page.
        number == 4 ? .bytes(Data(count: 4 * size)) : body,
      ]
    }
    try source.insert(into: StorageTables.replies, .refused, rows)
    let largest = Weighed.Largest()
    try TableCopy(source: Weighed(base: source, largest: largest), target: target).run()
    let copied = try target.query(
      "SELECT sequence, LENGTH(body) FROM replies ORDER BY sequence",
      []
    ) {
      [$0.int64(0), $0.int64(1)]
    }
    #expect(copied == (1...7).map { [Int64($0), Int64($0 == 4 ? 4 * size : size)] })
    #expect(largest.bytes.withLock { $0 } == 4 * size)
  }
}
