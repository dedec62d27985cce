import Foundation
import PostgreSQLServer
import Testing
import WatershedPostgreSQL

@Suite("PostgreSQL connection", .enabled(if: PostgreSQLServer.shared != nil))
struct PostgreSQLConnectionTests {
  private let connection: PostgreSQLConnection

  init() throws {
    let server = try #require(PostgreSQLServer.shared)
    let schema = server.freshSchema()
    connection = try PostgreSQLConnection(url: server.url(schema: schema))
    try connection.execute(
      """
      CREATE SCHEMA \(schema);
      CREATE TABLE note (id bigint PRIMARY KEY, title text COLLATE "C", body bytea);
      """
    )
  }

  private func titles() throws -> [String] {
    let result = try connection.query("SELECT title FROM note ORDER BY id")
    return (0..<result.count).map { result[$0].text(0) }
  }

  @Test("A server that is silent for longer than the limit breaks its connection alone")
  func silence() throws {
    let server = try #require(PostgreSQLServer.shared)
    let pool = PostgreSQLPool(url: server.url, answerLimit: 0.1)
    let error = #expect(throws: PostgreSQLError.self) {
      try pool.use { try $0.query("SELECT pg_sleep(600)") }
    }
    #expect(error?.isConnectionLoss == true)
    #expect(error?.message.contains("silent") == true)
    #expect(pool.counts.idle == 0)
    // The next connection answers; its limit does not hold where a transaction lifted it.
    let number = try pool.use(answerLimit: 3600) { connection in
      try connection.transaction { try connection.query("SELECT 1::bigint")[0].int64(0) }
    }
    #expect(number == 1)
    try pool.use { connection in
      try connection.transaction {
        try connection.liftLimits()
        _ = try connection.query("SELECT pg_sleep(0.3)")
      }
      #expect(throws: PostgreSQLError.self) { try connection.query("SELECT pg_sleep(600)") }
    }
  }

  @Test("PostgreSQL values round-trip")
  func values() throws {
    let insert = "INSERT INTO note VALUES ($1, $2, $3)"
    try connection.queue(insert, [.integer(.min), .text("Ünï\u{1F30A}"), .bytes(Data([0, 255]))])
    try connection.queue(insert, [.integer(-1), .text(""), .bytes(Data())])
    try connection.queue(insert, [.integer(.max), .null, .null])
    let found = try connection.query("SELECT id, title, body FROM note ORDER BY id")
    try #require(found.count == 3)
    #expect((0..<3).map { found[$0].int64(0) } == [.min, -1, .max])
    #expect(found[0].text(1) == "Ünï\u{1F30A}")
    #expect(found[0].blob(2) == Data([0, 255]))
    #expect(found[1].optionalText(1) == "")
    #expect(found[2].optionalText(1) == nil)
  }

  @Test("A PostgreSQL array is one parameter")
  func arrays() throws {
    for id in 1...3 {
      try connection.queue(
        "INSERT INTO note (id, title) VALUES ($1, $2)",
        [.integer(Int64(id)), .text("t\(id)")]
      )
    }
    let byTitle = "SELECT id FROM note WHERE title = ANY ($1)"
    #expect(try connection.query(byTitle, [.texts(["t1", "t3", "none"])]).count == 2)
    #expect(try connection.query(byTitle, [.texts([])]).count == 0)
    #expect(
      try connection.query("SELECT id FROM note WHERE id = ANY ($1)", [.integers([2, 9])]).count
        == 1
    )
  }

  @Test("A failed statement rolls its transaction back and leaves the connection usable")
  func rollback() throws {
    let insert = "INSERT INTO note (id, title) VALUES ($1, $2)"
    try connection.transaction { try connection.queue(insert, [.integer(1), .text("kept")]) }
    let error = #expect(throws: PostgreSQLError.self) {
      try connection.transaction {
        try connection.queue(insert, [.integer(2), .text("lost")])
        try connection.queue(insert, [.integer(1), .text("double")])
        try connection.queue(insert, [.integer(3), .text("lost too")])
      }
    }
    #expect(error?.isUniqueViolation == true)
    #expect(error?.sql == insert)
    #expect(try titles() == ["kept"])
    struct Change: Error {}
    #expect(throws: Change.self) {
      try connection.transaction {
        try connection.queue(insert, [.integer(4), .text("taken back")])
        throw Change()
      }
    }
    #expect(try titles() == ["kept"])
  }

  @Test("A snapshot transaction does not see later commits of other connections")
  func snapshot() throws {
    let server = try #require(PostgreSQLServer.shared)
    let schema = try connection.query("SELECT current_schema()")[0].text(0)
    let other = try PostgreSQLConnection(url: server.url(schema: schema))
    try connection.transaction(.snapshot) {
      #expect(try titles() == [])
      try other.transaction { try other.queue("INSERT INTO note (id, title) VALUES (1, 'new')") }
      #expect(try titles() == [])
    }
    #expect(try titles() == ["new"])
  }

  @Test("One pipeline sends and receives more data than the socket's buffers hold")
  func largePipeline() throws {
    let body = Data(repeating: 7, count: 100_000)
    try connection.transaction {
      for id in 0..<200 {
        try connection.queue(
          "INSERT INTO note (id, body) VALUES ($1, $2) RETURNING body",
          [.integer(Int64(id)), .bytes(body)]
        )
      }
    }
    #expect(
      try connection.query("SELECT sum(length(body))::bigint FROM note")[0].int64(0)
        == 20_000_000
    )
  }

  @Test("A text with NUL is refused before anything is sent")
  func nul() throws {
    let error = #expect(throws: PostgreSQLError.self) {
      try connection.query("SELECT $1::text", [.text("a\0b")])
    }
    #expect(error?.state == "22021")
    #expect(try titles() == [])
  }

  @Test("A lost connection throws an error, and the pool opens another one")
  func loss() throws {
    let server = try #require(PostgreSQLServer.shared)
    let pool = PostgreSQLPool(url: server.url)
    let error = #expect(throws: PostgreSQLError.self) {
      try pool.use { lent in
        let process = try lent.query("SELECT pg_backend_pid()")[0].int64(0)
        _ = try connection.query(
          "SELECT pg_terminate_backend($1::bigint::int)",
          [.integer(process)]
        )
        _ = try lent.query("SELECT 1")
      }
    }
    #expect(error?.isConnectionLoss == true)
    #expect(try pool.use { try $0.query("SELECT 1::bigint")[0].int64(0) } == 1)
  }

  @Test("A loss ends the connections in use too, and one of those ends none that was opened later")
  func generations() throws {
    let server = try #require(PostgreSQLServer.shared)
    let pool = PostgreSQLPool(url: server.url)
    func lose() throws {
      try pool.use { _ -> Void in throw PostgreSQLError(state: "08006", message: "lost") }
    }
    try pool.use { _ -> Void in try? lose() }
    #expect(pool.counts.idle == 0)
    _ = try? pool.use { former -> Void in
      try? lose()
      try pool.use { later -> Void in
        #expect((try? pool.checkGeneration(of: former)) == nil)
        try pool.checkGeneration(of: later)
      }
      #expect(pool.counts.idle == 1)
      throw PostgreSQLError(state: "08006", message: "lost")
    }
    #expect(pool.counts.idle == 1)
  }

  @Test("Connecting to an address without a server throws an error with a reason")
  func noServer() {
    let error = #expect(throws: PostgreSQLError.self) {
      try PostgreSQLConnection(url: "postgresql:///postgres?host=/tmp/watershed-nowhere")
    }
    #expect(error?.isConnectionLoss == true)
    #expect(error?.message.contains("/tmp/watershed-nowhere") == true)
  }

  @Test("A commit that fails with an internal server error has an unknown outcome")
  func failedCommit() throws {
    try connection.execute(
      """
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'a worker is gone' USING ERRCODE = 'XX000'; END $$;
      CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON note
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail();
      """
    )
    let error = #expect(throws: PostgreSQLError.self) {
      try connection.transaction { try connection.queue("INSERT INTO note (id) VALUES (1)") }
    }
    #expect(error?.state == "XX000")
    #expect(error?.leavesCommitOpen == true)
  }
}
