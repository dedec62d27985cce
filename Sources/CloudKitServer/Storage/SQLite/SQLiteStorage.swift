import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import WatershedSQLite

/// The embedded storage: one SQLite file in WAL mode, every commit on the disk before it is
/// acknowledged.
package final class SQLiteStorage: Storage {
  package let secret: Data
  private let identity: Mutex<String>
  private let writer: SQLiteConnection
  /// Guards the writer; the file's readers have connections of their own.
  private let writing = NSRecursiveLock()
  /// Nil in memory, where the writer reads too.
  private let readers: SQLiteReaderPool?
  private let partitions = Mutex<[PartitionKey: PartitionID]>([:])
  private let randomness: any RandomSource
  private let schemas = SchemaCache()

  package var incarnation: String { identity.withLock { $0 } }

  /// Opens or makes the file in `folder`; nil keeps everything in memory.
  package init(folder: URL?, effects: Effects) throws {
    randomness = effects.randomness
    if let folder {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let path = folder.appendingPathComponent("watershed.sqlite").path
      writer = try SQLiteConnection(path: path)
      try writer.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
      readers = SQLiteReaderPool {
        let reader = try SQLiteConnection(path: path, mode: .readOnly)
        try reader.execute("PRAGMA query_only = ON")
        return reader
      }
    } else {
      writer = try SQLiteConnection(path: ":memory:")
      readers = nil
    }
    try Self.prepareTables(writer)
    secret = try Self.kept("secret", in: writer) { .blob(effects.randomness.bytes(32)) }.blob
    var known = try Self.kept("incarnation", in: writer) {
      .text(effects.randomness.bytes(8).hexadecimal)
    }.text
    if let folder, try Self.countOpening(of: writer, in: folder) {
      known = effects.randomness.bytes(8).hexadecimal
      try Self.write(incarnation: known, in: writer)
    }
    identity = Mutex(known)
  }

  private static func write(incarnation: String, in writer: SQLiteConnection) throws {
    try writer.run(
      "UPDATE service SET value = ? WHERE name = 'incarnation'",
      [.text(incarnation)]
    )
  }

  private static func prepareTables(_ writer: SQLiteConnection) throws {
    try writer.transaction {
      let version = try writer.scalar("PRAGMA user_version") ?? .integer(0)
      switch version {
      case .integer(0):
        try writer.execute(SQLiteTables.definition)
        try writer.execute("PRAGMA user_version = \(SQLiteTables.version)")
      case .integer(1):
        try writer.execute(SQLiteTables.sharing)
        try writer.execute("PRAGMA user_version = \(SQLiteTables.version)")
      case .integer(Int64(SQLiteTables.version)): break
      default: throw StorageVersionError(found: version)
      }
    }
  }

  /// A value of the service table, made at the first start.
  private static func kept(
    _ name: String,
    in writer: SQLiteConnection,
    _ make: () -> SQLiteValue
  ) throws -> SQLiteValue {
    if let value = try writer.scalar("SELECT value FROM service WHERE name = ?", [.text(name)]) {
      return value
    }
    let value = make()
    try writer.run("INSERT INTO service (name, value) VALUES (?, ?)", [.text(name), value])
    return value
  }

  /// Counts how often the file was opened, in the file and beside it.
  ///
  /// A file that knows of fewer openings than its neighbour was put back from a copy.
  private static func countOpening(of writer: SQLiteConnection, in folder: URL) throws -> Bool {
    let beside = folder.appendingPathComponent("openings")
    let told = (try? String(contentsOf: beside, encoding: .utf8)).flatMap { Int64($0) } ?? 0
    let known = try kept("openings", in: writer) { .integer(0) }.integer
    let next = max(told, known) + 1
    try writer.run(
      "UPDATE service SET value = ? WHERE name = 'openings'",
      [.integer(next)]
    )
    try Data(String(next).utf8).write(to: beside, options: .atomic)
    return known < told
  }

  package func beginNewIncarnation() throws {
    let next = randomness.bytes(8).hexadecimal
    try writing.withLock { try Self.write(incarnation: next, in: writer) }
    identity.withLock { $0 = next }
  }

  package func read<Result>(_ body: (any StorageSnapshot) throws -> Result) throws -> Result {
    guard let readers else {
      return try writing.withLock { try body(SQLiteSnapshot(connection: writer, schemas: schemas)) }
    }
    return try readers.read { reader in
      try reader.transaction(.deferred) {
        try body(SQLiteSnapshot(connection: reader, schemas: schemas))
      }
    }
  }

  package func commit(_ batch: WriteBatch) throws {
    try writing.withLock {
      try writer.transaction { try SQLiteCommit(connection: writer, batch: batch).run() }
    }
  }

  package func partition(_ key: PartitionKey) throws -> PartitionID {
    if let known = partitions.withLock({ $0[key] }) { return known }
    let columns: [SQLiteValue] = [
      .text(key.container), .text(key.environment.rawValue), .text(key.scope.rawValue),
      .text(key.owner),
    ]
    let id = try writing.withLock {
      try writer.transaction {
        try writer.run(
          """
          INSERT OR IGNORE INTO partitions (container, environment, scope, owner)
          VALUES (?, ?, ?, ?)
          """,
          columns
        )
        return try writer.query(
          """
          SELECT partition FROM partitions
          WHERE container = ? AND environment = ? AND scope = ? AND owner = ?
          """,
          columns
        ) { PartitionID(rawValue: $0.int64(0)) }.first
      }
    }
    guard let id else { throw ExpectationFailed(what: "partition") }
    partitions.withLock { $0[key] = id }
    return id
  }

  package func activateIndex(
    in partition: PartitionID,
    type: String,
    field: String,
    entries: (StoredRecord) throws -> [IndexKey]
  ) throws {
    try writing.withLock {
      try writer.transaction {
        try writer.run(
          "INSERT OR IGNORE INTO active_indexes (partition, type, field) VALUES (?, ?, ?)",
          [.integer(partition.rawValue), .text(type), .text(field)]
        )
        guard writer.changes > 0 else { return }
        var made: [IndexEntry] = []
        let snapshot = SQLiteSnapshot(connection: writer, schemas: schemas)
        try snapshot.scan(in: partition, type: type) { record in
          for key in try entries(record) {
            made.append(IndexEntry(type: type, field: field, value: key, key: record.key))
          }
        }
        var batch = WriteBatch(partition: partition)
        batch.addedIndexEntries = made
        try SQLiteCommit(connection: writer, batch: batch).run()
      }
    }
  }

  package func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    try read { snapshot in
      guard let snapshot = snapshot as? SQLiteSnapshot else { return [] }
      return try snapshot.events(after: position, limit: limit)
    }
  }

  package func newestEvent() throws -> EventPosition {
    try writing.withLock {
      let number = try writer.scalar("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
      return EventPosition(number: number?.integer ?? 0)
    }
  }

  package func forgetEvents(before time: Int64) throws {
    try writing.withLock {
      try writer.transaction {
        try writer.run("DELETE FROM events WHERE at < ?", [.integer(time)])
      }
    }
  }

  package func close() {
    readers?.drain()
    writing.withLock {
      // Leaves one file behind instead of three; the log is complete either way.
      if readers != nil { try? writer.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
    }
  }
}

/// The file was written by another version of the server.
package struct StorageVersionError: Error, CustomStringConvertible {
  var found: SQLiteValue

  package var description: String {
    "The server's data has format \(found.integer); this server reads format "
      + "\(SQLiteTables.version). Use the server that wrote it, or a newer one."
  }
}

extension SQLiteValue {
  var integer: Int64 {
    if case .integer(let value) = self { value } else { 0 }
  }

  var text: String {
    if case .text(let value) = self { value } else { "" }
  }

  var blob: Data {
    if case .blob(let value) = self { value } else { Data() }
  }
}
