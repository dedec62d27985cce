import Foundation
import PostgreSQLServer
import WatershedPostgreSQL

/// The storage engine of a measured server; commits wait for the disk as in production.
enum ServerEngine: String, CaseIterable {
  case sqlite = "SQLite"
  case postgreSQL = "PostgreSQL"
}

/// The storage of one measurement: an empty folder, and an empty schema for PostgreSQL.
struct BenchRoom {
  let engine: ServerEngine
  let folder: URL
  /// The database's URL; nil for SQLite.
  let database: String?
  /// The parent process of PostgreSQL's processes.
  let serverProcess: Int32?

  /// The elapsed time and the processor time of the body, both in seconds.
  func measure(_ body: () async throws -> Void) async rethrows -> (time: Double, work: Double) {
    let roots = serverProcess.map { [$0] } ?? []
    let before = ProcessorMeter.seconds(roots: roots)
    let time = try await ServerBench.seconds(body)
    return (time, ProcessorMeter.seconds(roots: roots) - before)
  }

  /// Creates a room for the body; PostgreSQL is skipped if it is not installed.
  static func open(
    _ engine: ServerEngine,
    _ server: PostgreSQLServer?,
    _ body: @Sendable (BenchRoom) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-benchmark-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    guard engine == .postgreSQL else {
      let room = BenchRoom(engine: engine, folder: folder, database: nil, serverProcess: nil)
      return try await body(room)
    }
    guard let server else { return print("PostgreSQL is not installed.") }
    let schema = server.freshSchema()
    let connection = try PostgreSQLConnection(url: server.url)
    try connection.execute("CREATE SCHEMA \(schema)")
    try await body(
      BenchRoom(
        engine: engine,
        folder: folder,
        database: server.url(schema: schema),
        serverProcess: server.processIdentifier
      )
    )
    try connection.execute("DROP SCHEMA \(schema) CASCADE")
  }
}
