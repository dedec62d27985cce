import CPostgreSQL
import Foundation

/// One connection to a PostgreSQL server, always in libpq's pipeline mode.
///
/// Statements are queued and travel together; `flush` waits for all their answers
/// (postgresql.org/docs/current/libpq-pipeline-mode.html). A connection is confined to one thread
/// at a time by whoever owns it: a pool, or the listener.
package final class PostgreSQLConnection: @unchecked Sendable {
  // Unchecked: confined by its owner, see above.
  private let handle: OpaquePointer
  private var prepared: [String: String] = [:]
  private var preparedCount = 0
  private var queue: [Queued] = []
  /// Is shown each text before the server is.
  private let observer: (@Sendable (String) -> Void)?
  /// Set when the connection can be of no more use.
  private(set) var isBroken = false

  private struct Queued {
    enum Kind { case preparation, execution, collection, end }

    var kind: Kind
    var sql: String
  }

  /// Bounds the statements kept compiled on the server; our own are fewer.
  private static let preparedLimit = 300

  /// What libpq is given, in its order: what stands before the URL may be set by the URL, what stands
  /// behind it not.
  ///
  /// A network that drops a connection without a word is noticed within a minute, while the connection
  /// waits for notifications or for an answer; the system's own limits are hours.
  package static func settings(_ url: String) -> [(name: String, value: String)] {
    [
      ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "3"),
      ("tcp_user_timeout", "60000"), ("connect_timeout", "15"), ("dbname", url),
      ("client_encoding", "UTF8"), ("fallback_application_name", "watershed"),
    ]
  }

  /// Connects to a `postgresql://` URL, with everything that libpq understands in one.
  package init(url: String, observer: (@Sendable (String) -> Void)? = nil) throws {
    self.observer = observer
    let settings = Self.settings(url)
    // Kept by libpq only during the call.
    let names = settings.map { strdup($0.name) }
    let values = settings.map { strdup($0.value) }
    defer { for text in names + values { free(text) } }
    let opened = PQconnectdbParams(
      names.map { UnsafePointer($0) } + [nil],
      values.map { UnsafePointer($0) } + [nil],
      1
    )
    guard let opened else { throw PostgreSQLError.lost("libpq had no memory to connect") }
    handle = opened
    guard PQstatus(opened) == CONNECTION_OK, PQenterPipelineMode(opened) == 1 else {
      let message = Self.message(of: opened)
      isBroken = true
      // The class has all its properties: `deinit` closes it.
      throw PostgreSQLError(state: "08001", message: message)
    }
    // Notices are for people at a terminal.
    PQsetNoticeProcessor(opened, { _, _ in }, nil)
  }

  deinit { PQfinish(handle) }

  private static func message(of handle: OpaquePointer) -> String {
    String(cString: PQerrorMessage(handle)).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  // MARK: Statements

  /// Queues a statement whose rows nobody wants.
  package func queue(_ sql: String, _ values: [PostgreSQLValue] = []) throws {
    try send(sql, values, .execution)
  }

  /// Runs all that is queued and then this, and returns its rows.
  package func query(_ sql: String, _ values: [PostgreSQLValue] = []) throws -> PostgreSQLResult {
    try send(sql, values, .collection)
    guard let result = try collect().last else {
      throw PostgreSQLError.lost("no answer", sql: sql)
    }
    return result
  }

  /// Runs all that is queued and then these, all in one trip to the server and back.
  package func query(
    _ queries: [(sql: String, values: [PostgreSQLValue])]
  ) throws -> [PostgreSQLResult] {
    guard !queries.isEmpty else { return [] }
    for query in queries { try send(query.sql, query.values, .collection) }
    return try collect()
  }

  /// Runs statements without parameters, separated by semicolons, in one transaction.
  package func execute(_ script: String) throws {
    _ = try flush()
    // A pipeline takes one statement at a time.
    guard PQexitPipelineMode(handle) == 1 else { throw broken(script) }
    let result = PQexec(handle, script)
    defer { PQclear(result) }
    let status = PQresultStatus(result)
    guard PQenterPipelineMode(handle) == 1 else { throw broken(script) }
    guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else {
      throw Self.error(result, sql: script)
    }
  }

  private func send(_ sql: String, _ values: [PostgreSQLValue], _ kind: Queued.Kind) throws {
    guard !isBroken else { throw PostgreSQLError.lost("the connection is closed", sql: sql) }
    let buffer = ParameterBuffer(values)
    guard !buffer.holdsNUL else {
      throw PostgreSQLError(state: "22021", message: "a text holds the character NUL", sql: sql)
    }
    let name = try prepare(sql)
    let sent = buffer.withPointers { pointers, lengths, formats in
      if let name {
        PQsendQueryPrepared(
          handle,
          name,
          Int32(values.count),
          pointers,
          lengths,
          formats,
          1
        )
      } else {
        PQsendQueryParams(
          handle,
          sql,
          Int32(values.count),
          nil,
          pointers,
          lengths,
          formats,
          1
        )
      }
    }
    guard sent == 1 else { throw broken(sql) }
    queue.append(Queued(kind: kind, sql: sql))
  }

  /// The name the server knows the statement by, told to it at the first use.
  private func prepare(_ sql: String) throws -> String? {
    if let name = prepared[sql] { return name }
    observer?(sql)
    guard prepared.count < Self.preparedLimit else { return nil }
    preparedCount += 1
    let name = "s\(preparedCount)"
    guard PQsendPrepare(handle, name, sql, 0, nil) == 1 else { throw broken(sql) }
    queue.append(Queued(kind: .preparation, sql: sql))
    prepared[sql] = name
    return name
  }

  // MARK: Answers

  /// Waits for the answers to all that is queued; the first error is thrown when all are in.
  package func flush() throws { _ = try collect() }

  /// As `flush`; returns what queries found.
  private func collect() throws -> [PostgreSQLResult] {
    guard !isBroken else { throw PostgreSQLError.lost("the connection is closed") }
    guard !queue.isEmpty else { return [] }
    guard PQpipelineSync(handle) == 1 else { throw broken(nil) }
    queue.append(Queued(kind: .end, sql: ""))
    var failure: PostgreSQLError?
    var collected: [PostgreSQLResult] = []
    let waiting = queue
    queue.removeAll(keepingCapacity: true)
    for item in waiting {
      guard let answer = PQgetResult(handle) else { throw broken(item.sql) }
      let status = PQresultStatus(answer)
      if item.kind == .end {
        PQclear(answer)
        guard status == PGRES_PIPELINE_SYNC else { throw broken(item.sql) }
        continue
      }
      switch status {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
        if item.kind == .collection {
          collected.append(PostgreSQLResult(answer))
        } else {
          PQclear(answer)
        }
      default:
        // What follows an error up to the end of the pipeline is passed over.
        if status != PGRES_PIPELINE_ABORTED, failure == nil {
          failure = Self.error(answer, sql: item.sql)
        }
        if item.kind == .preparation { prepared[item.sql] = nil }
        PQclear(answer)
      }
      if PQstatus(handle) != CONNECTION_OK { throw broken(item.sql, failure) }
      // Each statement's answers end with nothing.
      guard PQgetResult(handle) == nil else { throw broken(item.sql) }
    }
    if let failure { throw failure }
    return collected
  }

  /// Sends what is queued; its answers are read by the next `flush`.
  private func sendOff() throws {
    guard PQpipelineSync(handle) == 1, PQflush(handle) >= 0 else { throw broken(nil) }
    queue.append(Queued(kind: .end, sql: ""))
  }

  private static func error(_ result: OpaquePointer?, sql: String?) -> PostgreSQLError {
    let state = PQresultErrorField(result, 67).map { String(cString: $0) }  // PG_DIAG_SQLSTATE, 'C'
    let message = PQresultErrorField(result, 77).map { String(cString: $0) }  // …_PRIMARY, 'M'
    return PostgreSQLError(
      state: state ?? "08006",
      message: message
        ?? String(cString: PQresultErrorMessage(result))
        .trimmingCharacters(in: .whitespacesAndNewlines),
      sql: sql
    )
  }

  private func broken(_ sql: String?, _ cause: PostgreSQLError? = nil) -> PostgreSQLError {
    isBroken = true
    return cause.flatMap { $0.isConnectionLoss ? $0 : nil }
      ?? PostgreSQLError.lost(Self.message(of: handle), sql: sql)
  }

  // MARK: Transactions

  /// How much a transaction sees of others.
  package enum Isolation: String, Sendable {
    /// Each statement sees what was committed before it began.
    case readCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"
    /// All statements see one moment; nothing is written.
    case snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
  }

  /// Runs the body in a transaction: committed when it returns, rolled back when it throws.
  ///
  /// An error whose `leavesCommitOpen` is true does not say whether it was written.
  package func transaction<Result>(
    _ isolation: Isolation = .readCommitted,
    _ body: () throws -> Result
  ) throws -> Result {
    try queue(isolation.rawValue)
    var isCommitting = false
    do {
      let result = try body()
      try queue("COMMIT")
      isCommitting = isolation == .readCommitted
      switch isolation {
      case .readCommitted: try flush()
      // Nothing was written: the answer is read when the connection is next used.
      case .snapshot: try sendOff()
      }
      return result
    } catch {
      rollBack()
      guard isCommitting, var loss = error as? PostgreSQLError,
        loss.isConnectionLoss || loss.isInternal
      else { throw error }
      loss.leavesCommitOpen = true
      throw loss
    }
  }

  private func rollBack() {
    guard !isBroken else { return }
    // What was queued and not sent goes with it.
    try? flush()
    try? queue("ROLLBACK")
    try? flush()
  }

  /// Ends what the connection runs, from any thread.
  package private(set) lazy var canceller = PostgreSQLCanceller(handle)

  // MARK: Notifications

  /// The file descriptor of the connection, to wait on.
  package var descriptor: Int32 { PQsocket(handle) }

  /// The notifications that have arrived; does not wait.
  package func notifications() throws -> [String] {
    guard PQconsumeInput(handle) == 1 else { throw broken("LISTEN") }
    var payloads: [String] = []
    while let notification = PQnotifies(handle) {
      payloads.append(String(cString: notification.pointee.extra))
      PQfreemem(notification)
    }
    return payloads
  }
}
