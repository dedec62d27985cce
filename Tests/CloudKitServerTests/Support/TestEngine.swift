import CloudKitServer
import Effects
import Foundation
import PostgreSQLServer
import Synchronization
import Testing
import WatershedPostgreSQL

/// The storage engine of a test's servers.
enum TestEngine: String, CaseIterable, Sendable {
  case sqlite
  case postgreSQL

  /// The engine of the running test.
  @TaskLocal static var current = TestEngine.sqlite

  static var isPostgreSQLInstalled: Bool { PostgreSQLServer.shared != nil }

  static var available: [TestEngine] { isPostgreSQLInstalled ? allCases : [.sqlite] }

  /// A new schema in PostgreSQL, or the one of a folder; nil for SQLite.
  static func databaseURL(for folder: URL?) throws -> String? {
    guard current == .postgreSQL, let server = PostgreSQLServer.shared else { return nil }
    if let folder, let known = schemas.withLock({ $0[folder] }) { return server.url(schema: known) }
    let schema = try TestSchemas.shared?.take() ?? ""
    lease.schemas.withLock { $0.append(schema) }
    if let folder { schemas.withLock { $0[folder] = schema } }
    return server.url(schema: schema)
  }

  /// A schema that no other test has used or will use: the files of emptied tables keep their size,
  /// by which PostgreSQL chooses plans.
  static func freshDatabaseURL() throws -> String? {
    guard let server = PostgreSQLServer.shared, let schema = try TestSchemas.shared?.create() else {
      return nil
    }
    lease.freshSchemas.withLock { $0.append(schema) }
    return server.url(schema: schema)
  }

  /// The resources of the running test.
  @TaskLocal static var lease = TestLease()

  /// For other processes: the database of a folder's servers.
  static func knownURL(for folder: URL) -> String? {
    schemas.withLock { $0[folder] }.flatMap { PostgreSQLServer.shared?.url(schema: $0) }
  }

  private static let schemas = Mutex<[URL: String]>([:])

  /// An empty storage of the current engine.
  static func storage(_ effects: Effects, folder: URL? = nil) throws -> any Storage {
    if let url = try databaseURL(for: folder) {
      return try PostgreSQLStorage(url: url, effects: effects) { ClusterRules.check($0) }
    }
    return try SQLiteStorage(folder: folder, effects: effects)
  }
}

extension TestEngine {
  /// Runs a test with an engine, and returns its schemas of PostgreSQL.
  static func run(
    with engine: TestEngine,
    _ body: @Sendable () async throws -> Void
  ) async throws {
    guard engine == .postgreSQL, let schemas = TestSchemas.shared else {
      return try await $current.withValue(engine) { try await body() }
    }
    await TestGate.shared.enter()
    let lease = TestLease()
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(
        try await $lease.withValue(lease) {
          try await $current.withValue(engine) { try await body() }
        }
      )
    } catch {
      outcome = .failure(error)
    }
    // A server's pending writes must not appear in the next test.
    for service in lease.services.withLock({ $0 }) where await service.isReady() {
      await service.shutdown()
    }
    for schema in lease.schemas.withLock({ $0 }) { try schemas.giveBack(schema) }
    for schema in lease.freshSchemas.withLock({ $0 }) { try schemas.drop(schema) }
    await TestGate.shared.leave()
    try outcome.get()
  }
}

/// The schemas that one test has taken, and the servers on them.
final class TestLease: Sendable {
  let schemas = Mutex<[String]>([])
  /// The schemas that are dropped after the test.
  let freshSchemas = Mutex<[String]>([])
  let services = Mutex<[CloudKitService]>([])
}

/// Limits the tests that use PostgreSQL concurrently, so that few schemas are enough.
private actor TestGate {
  static let shared = TestGate(width: 4)

  private var free: Int
  private var waiters: [CheckedContinuation<Void, Never>] = []

  init(width: Int) { free = width }

  func enter() async {
    guard free == 0 else {
      free -= 1
      return
    }
    await withCheckedContinuation { waiters.append($0) }
  }

  func leave() {
    if waiters.isEmpty { free += 1 } else { waiters.removeFirst().resume() }
  }
}

/// Schemas that are created once and emptied between tests: creating the tables takes longer than
/// most tests.
private final class TestSchemas: Sendable {
  static let shared = PostgreSQLServer.shared.map { TestSchemas($0) }

  private let server: PostgreSQLServer
  private let pool: PostgreSQLPool
  private let free = Mutex<[String]>([])

  init(_ server: PostgreSQLServer) {
    self.server = server
    pool = PostgreSQLPool(url: server.url)
  }

  func take() throws -> String {
    try free.withLock { $0.popLast() } ?? create()
  }

  func create() throws -> String {
    let schema = server.freshSchema()
    try pool.use { try $0.execute("CREATE SCHEMA \(schema)") }
    return schema
  }

  func drop(_ schema: String) throws {
    try pool.use { try $0.execute("DROP SCHEMA \(schema) CASCADE") }
  }

  func giveBack(_ schema: String) throws {
    let isReusable = try pool.use { connection in
      let tables = try connection.query(
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = $1",
        [.text(schema)]
      )
      let names = (0..<tables.count).map { tables[$0].text(0) }
      // A test of versions leaves other tables than the next one expects.
      guard names.contains("service"), !names.contains("added") else {
        try connection.execute("DROP SCHEMA \(schema) CASCADE")
        return false
      }
      let facts = "WHERE name NOT IN ('format', 'oldest server')"
      try connection.execute(
        names.map { "DELETE FROM \(schema).\($0) \($0 == "service" ? facts : "");" }
          .joined(separator: "\n")
      )
      return true
    }
    if isReusable { free.withLock { $0.append(schema) } }
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
        try await TestEngine.run(with: engine, function)
      } catch {
        Issue.record(error, "with \(engine.rawValue)")
      }
    }
  }
}

extension Trait where Self == EveryEngine {
  /// Runs a test with every engine, because the behavior must be the same.
  static var everyEngine: Self { EveryEngine() }
}
