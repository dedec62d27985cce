import Foundation
import Testing
import WatershedSQLite

@Suite("SQLite connection")
struct SQLiteConnectionTests {
  private func open() throws -> SQLiteConnection {
    try SQLiteConnection(path: ":memory:")
  }

  @Test("SQLite values of every storage class round-trip")
  func values() throws {
    let connection = try open()
    try connection.execute("CREATE TABLE t (a)")
    let values: [SQLiteValue] = [
      .null, .integer(.min), .integer(.max), .real(-0.5), .text(""), .text("Ü 水\u{0}x"),
      .blob(Data()), .blob(Data([0, 1, 255])),
    ]
    for value in values { try connection.run("INSERT INTO t VALUES (?)", [value]) }
    let read = try connection.query("SELECT a FROM t ORDER BY rowid") { $0.value(0) }
    #expect(read == values)
  }

  @Test("A transaction that throws is rolled back")
  func rollback() throws {
    struct Broken: Error {}
    let connection = try open()
    try connection.execute("CREATE TABLE t (a)")
    #expect(throws: Broken.self) {
      try connection.transaction {
        try connection.run("INSERT INTO t VALUES (1)")
        throw Broken()
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try connection.scalar("SELECT count(*) FROM t") == .integer(0))
  }

  @Test("An error names its statement and its code")
  func errors() throws {
    let connection = try open()
    try connection.execute("CREATE TABLE t (a UNIQUE)")
    try connection.run("INSERT INTO t VALUES (1)")
    let error = #expect(throws: SQLiteError.self) {
      try connection.run("INSERT INTO t VALUES (1)")
    }
    #expect(error?.isConstraint == true)
    #expect(error?.sql == "INSERT INTO t VALUES (1)")
    let syntax = #expect(throws: SQLiteError.self) { try connection.execute("NONSENSE") }
    #expect(syntax?.message.contains("NONSENSE") == true)
  }

  @Test("Registered functions and collations are called")
  func functions() throws {
    let connection = try open()
    try connection.register(function: "twice", argumentCount: 1) { arguments in
      guard case .integer(let number) = arguments[0] else { return .null }
      return .integer(number * 2)
    }
    #expect(try connection.scalar("SELECT twice(21)") == .integer(42))
    try connection.register(collation: "backwards") { left, right in
      left == right ? .orderedSame : left < right ? .orderedDescending : .orderedAscending
    }
    let order = try connection.query(
      "SELECT column1 FROM (VALUES ('a'), ('c'), ('b')) ORDER BY column1 COLLATE backwards"
    ) { $0.text(0) }
    #expect(order == ["c", "b", "a"])
  }

  @Test("A function that throws fails its statement with its message")
  func throwingFunction() throws {
    struct Refusal: Error, CustomStringConvertible { var description = "not today" }
    let connection = try open()
    try connection.register(function: "refuse", argumentCount: 0) { _ in throw Refusal() }
    let error = #expect(throws: SQLiteError.self) { try connection.scalar("SELECT refuse()") }
    #expect(error?.message == "not today")
  }

  @Test("A file that is not a database and one that cannot be opened have different errors")
  func badFiles() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("sqlite-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let text = folder.appendingPathComponent("text")
    try Data(repeating: 0x41, count: 5000).write(to: text)
    let connection = try SQLiteConnection(path: text.path, mode: .readOnly)
    let error = #expect(throws: SQLiteError.self) {
      try connection.scalar("SELECT count(*) FROM sqlite_master")
    }
    #expect(error?.isNotADatabase == true)
    let missing = #expect(throws: SQLiteError.self) {
      try SQLiteConnection(path: folder.appendingPathComponent("none").path, mode: .readWrite)
    }
    #expect(missing?.cannotOpen == true)
  }
}

@Suite("SQLite reader pool")
struct SQLiteReaderPoolTests {
  @Test("A nested read uses a second connection")
  func nesting() throws {
    let pool = SQLiteReaderPool { try SQLiteConnection(path: ":memory:") }
    let isOther = try pool.read { outer in try pool.read { inner in outer !== inner } }
    #expect(isOther)
    let first = try pool.read { ObjectIdentifier($0) }
    let second = try pool.read { ObjectIdentifier($0) }
    #expect(first == second)
  }
}
