import CloudKitServer
import Effects
import Foundation
import PostgreSQLServer
import Synchronization
import Testing
import WatershedPostgreSQL

/// What a test's servers keep their data in.
enum TestEngine: String, CaseIterable, Sendable {
  case sqlite
  case postgreSQL

  /// The engine of the test that runs.
  @TaskLocal static var current = TestEngine.sqlite

  static var isPostgreSQLInstalled: Bool { PostgreSQLServer.shared != nil }

  static var available: [TestEngine] { isPostgreSQLInstalled ? allCases : [.sqlite] }

  /// A new place in PostgreSQL, or the one that belongs to a folder; nil for SQLite.
  static func databaseURL(for folder: URL?) throws -> String? {
    guard current == .postgreSQL, let server = PostgreSQLServer.shared else { return nil }
    if let folder, let known = schemas.withLock({ $0[folder] }) { return server.url(schema: known) }
    let schema = server.freshSchema()
    try pool?.use { try $0.execute("CREATE SCHEMA \(schema)") }
    if let folder { schemas.withLock { $0[folder] = schema } }
    return server.url(schema: schema)
  }

  private static let schemas = Mutex<[URL: String]>([:])
  private static let pool = PostgreSQLServer.shared.map { PostgreSQLPool(url: $0.url) }

  /// An empty storage of the current engine.
  static func storage(_ effects: Effects, folder: URL? = nil) throws -> any Storage {
    if let url = try databaseURL(for: folder) {
      return try PostgreSQLStorage(url: url, effects: effects)
    }
    return try SQLiteStorage(folder: folder, effects: effects)
  }
}

/// Runs each test once for every engine that is installed.
struct EveryEngine: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @Sendable () async throws -> Void
  ) async throws {
    for engine in TestEngine.available {
      do {
        try await TestEngine.$current.withValue(engine) { try await function() }
      } catch {
        Issue.record(error, "with \(engine.rawValue)")
      }
    }
  }
}

extension Trait where Self == EveryEngine {
  /// One behaviour, whatever the data is kept in.
  static var everyEngine: Self { EveryEngine() }
}
