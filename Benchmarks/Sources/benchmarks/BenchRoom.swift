import Foundation
import PostgreSQLServer
import WatershedPostgreSQL

/// What a server's data is kept in while it is measured; waits for the disk as in production.
enum ServerEngine: String, CaseIterable {
  case sqlite = "SQLite"
  case postgreSQL = "PostgreSQL"
}

/// Where one measurement keeps its data: an empty folder, and an empty schema where it is
/// PostgreSQL's turn.
struct BenchRoom {
  let engine: ServerEngine
  let folder: URL
  /// Nil for SQLite.
  let database: String?
  /// The processes of PostgreSQL are below this one.
  let serverProcess: Int32?

  /// Time and processor time that the body takes, both in seconds.
  func measure(_ body: () async throws -> Void) async rethrows -> (time: Double, work: Double) {
    let roots = serverProcess.map { [$0] } ?? []
    let before = ProcessorMeter.seconds(roots: roots)
    let time = try await ServerBench.seconds(body)
    return (time, ProcessorMeter.seconds(roots: roots) - before)
  }

  /// Opens a room for the body; without PostgreSQL on this machine its turn is passed over.
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
