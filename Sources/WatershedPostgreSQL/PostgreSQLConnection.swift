import Foundation

/// One connection to a PostgreSQL server, always in libpq's pipeline mode.
///
/// Statements are queued and sent together; `flush` waits for all their results
/// (postgresql.org/docs/current/libpq-pipeline-mode.html). The connection's owner confines it to
/// one thread at a time: a pool, or the listener.
package final class PostgreSQLConnection: @unchecked Sendable {
  // Unchecked: confined by its owner, see above.
  private let handle: LibPQ.Connection
  private let libpq: LibPQ
  private var prepared: [String: String] = [:]
  private var preparedCount = 0
  private var queue: [Queued] = []
  /// Called with each statement's text before the statement is first sent.
  private let observer: (@Sendable (String) -> Void)?
  /// Whether the connection is unusable.
  private(set) var isBroken = false
  /// Whether the owner has checked which server the connection leads to.
  package var isConfirmed = false
  /// The pool's generation of connections to which this one belongs.
  package internal(set) var generation = 0
  /// The longest silence of the server while an answer is due, in seconds; nil if there is no limit.
  ///
  /// The kernel of a server that hangs acknowledges what arrives, so keepalive does not notice it.
  package var answerLimit: Double?
  /// Whether the statements of the current transaction may take any time.
  private var hasNoLimit = false
  /// Bytes that were queued since libpq has sent all.
  private var queuedBytes = 0

  private struct Queued {
    enum Kind { case preparation, execution, collection, end }

    var kind: Kind
    var sql: String
  }

  /// The most prepared statements on the server; the project's own are fewer.
  private static let preparedLimit = 300

  /// Bytes that are queued before they are sent: libpq keeps them in memory.
  private static let queueLimit = 262_144

  /// libpq's settings in order: the URL can override the settings before it, but not those after
  /// it.
  ///
  /// The keepalive settings detect a silently dropped connection within a minute, while the
  /// connection waits for notifications or for a result; the system's default limits are hours.
  package static func settings(_ url: String) -> [(name: String, value: String)] {
    [
      ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "3"),
      ("tcp_user_timeout", "60000"), ("connect_timeout", "15"), ("dbname", url),
      ("client_encoding", "UTF8"), ("fallback_application_name", "watershed"),
    ]
  }

  /// Connects to a `postgresql://` URL, with all options that libpq supports in one.
  package init(
    url: String,
    answerLimit: Double? = nil,
    observer: (@Sendable (String) -> Void)? = nil
  ) throws {
    self.observer = observer
    self.answerLimit = answerLimit
    let libpq = try LibPQ.shared()
    self.libpq = libpq
    let settings = Self.settings(url)
    // libpq uses these strings only during the call.
    let names = settings.map { strdup($0.name) }
    let values = settings.map { strdup($0.value) }
    defer { for text in names + values { free(text) } }
    let opened = libpq.connectdbParams(
      names.map { UnsafePointer($0) } + [nil],
      values.map { UnsafePointer($0) } + [nil],
      1
    )
    guard let opened else { throw PostgreSQLError.lost("libpq had no memory to connect") }
    handle = opened
    guard libpq.status(opened) == LibPQ.ConnectionStatus.ok, libpq.enterPipelineMode(opened) == 1,
      libpq.setNonblocking(opened, 1) == 0
    else {
      let message = Self.message(of: opened, libpq)
      isBroken = true
      // All properties are initialized, so that `deinit` closes the handle.
      throw PostgreSQLError(state: "08001", message: message)
    }
    // Discards notices, which are meant for interactive use.
    _ = libpq.setNoticeProcessor(opened, { _, _ in }, nil)
  }

  deinit { libpq.finish(handle) }

  private static func message(of handle: LibPQ.Connection, _ libpq: LibPQ) -> String {
    String(cString: libpq.errorMessage(handle)).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  // MARK: Statements

  /// Queues a statement whose rows are discarded.
  package func queue(_ sql: String, _ values: [PostgreSQLValue] = []) throws {
    try send(sql, values, .execution)
  }

  /// Runs the queued statements and then this one, and returns its rows.
  package func query(_ sql: String, _ values: [PostgreSQLValue] = []) throws -> PostgreSQLResult {
    try send(sql, values, .collection)
    guard let result = try collect().last else {
      throw PostgreSQLError.lost("no answer", sql: sql)
    }
    return result
  }

  /// Runs the queued statements and then these, in one round trip.
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
    // A pipeline can't run several statements in one text.
    guard libpq.exitPipelineMode(handle) == 1 else { throw broken(script) }
    let result = libpq.exec(handle, script)
    defer { libpq.clear(result) }
    let status = libpq.resultStatus(result)
    guard libpq.enterPipelineMode(handle) == 1 else { throw broken(script) }
    guard status == LibPQ.ResultStatus.commandOK || status == LibPQ.ResultStatus.tuplesOK else {
      throw error(result, sql: script)
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
        libpq.sendQueryPrepared(
          handle,
          name,
          Int32(values.count),
          pointers,
          lengths,
          formats,
          1
        )
      } else {
        libpq.sendQueryParams(
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
    queuedBytes += buffer.size
    if queuedBytes > Self.queueLimit { try sendAll() }
  }

  /// Lets the statements of the current transaction take any time.
  package func liftLimits() throws {
    try queue("SET LOCAL statement_timeout = 0")
    hasNoLimit = true
  }

  /// The name of the prepared statement; the first use of a text prepares it.
  private func prepare(_ sql: String) throws -> String? {
    if let name = prepared[sql] { return name }
    observer?(sql)
    guard prepared.count < Self.preparedLimit else { return nil }
    preparedCount += 1
    let name = "s\(preparedCount)"
    guard libpq.sendPrepare(handle, name, sql, 0, nil) == 1 else { throw broken(sql) }
    queue.append(Queued(kind: .preparation, sql: sql))
    prepared[sql] = name
    return name
  }

  // MARK: Results

  /// Waits for the results of all queued statements; then throws the first error.
  package func flush() throws { _ = try collect() }

  /// As `flush`; returns the rows of the queries.
  private func collect() throws -> [PostgreSQLResult] {
    guard !isBroken else { throw PostgreSQLError.lost("the connection is closed") }
    guard !queue.isEmpty else { return [] }
    guard libpq.pipelineSync(handle) == 1 else { throw broken(nil) }
    queue.append(Queued(kind: .end, sql: ""))
    var failure: PostgreSQLError?
    var collected: [PostgreSQLResult] = []
    let waiting = queue
    queue.removeAll(keepingCapacity: true)
    try sendAll()
    for item in waiting {
      try awaitResult(item.sql)
      guard let answer = libpq.getResult(handle) else { throw broken(item.sql) }
      let status = libpq.resultStatus(answer)
      if item.kind == .end {
        libpq.clear(answer)
        guard status == LibPQ.ResultStatus.pipelineSync else { throw broken(item.sql) }
        continue
      }
      switch status {
      case LibPQ.ResultStatus.commandOK, LibPQ.ResultStatus.tuplesOK:
        if item.kind == .collection {
          collected.append(PostgreSQLResult(answer, libpq))
        } else {
          libpq.clear(answer)
        }
      default:
        // The server skips the statements after an error, up to the end of the pipeline.
        if status != LibPQ.ResultStatus.pipelineAborted, failure == nil {
          failure = error(answer, sql: item.sql)
        }
        if item.kind == .preparation { prepared[item.sql] = nil }
        libpq.clear(answer)
      }
      if libpq.status(handle) != LibPQ.ConnectionStatus.ok { throw broken(item.sql, failure) }
      // A null result ends each statement's results.
      try awaitResult(item.sql)
      guard libpq.getResult(handle) == nil else { throw broken(item.sql) }
    }
    if let failure { throw failure }
    return collected
  }

  /// Sends the queued statements; the next `flush` reads their results.
  private func sendOff() throws {
    guard libpq.pipelineSync(handle) == 1 else { throw broken(nil) }
    queue.append(Queued(kind: .end, sql: ""))
    try sendAll()
  }

  // MARK: Waiting

  /// Sends what libpq has in memory; reads meanwhile, so that the server does not wait for the client
  /// while the client waits for the server.
  private func sendAll() throws {
    while true {
      switch libpq.flush(handle) {
      case 0:
        queuedBytes = 0
        return
      case 1: try wait(for: POLLIN | POLLOUT, nil)
      default: throw broken(nil)
      }
    }
  }

  /// Waits until libpq has a result, or knows that there is none.
  private func awaitResult(_ sql: String) throws {
    while libpq.isBusy(handle) == 1 { try wait(for: POLLIN, sql) }
  }

  /// Waits until the socket can be used, at most as long as the server may be silent.
  private func wait(for events: Int32, _ sql: String?) throws {
    // First: with TLS, bytes that have arrived may be in a buffer.
    guard libpq.consumeInput(handle) == 1 else { throw broken(sql) }
    if events == POLLIN, libpq.isBusy(handle) == 0 { return }
    var descriptor = pollfd(fd: libpq.socket(handle), events: Int16(events), revents: 0)
    let limit = hasNoLimit ? nil : answerLimit
    let found = poll(&descriptor, 1, limit.map { Int32($0 * 1000) } ?? -1)
    guard found == 0 else { return }
    isBroken = true
    throw PostgreSQLError.lost("the server has been silent for \(limit ?? 0) seconds", sql: sql)
  }

  private func error(_ result: LibPQ.Answer?, sql: String?) -> PostgreSQLError {
    let state = libpq.resultErrorField(result, LibPQ.DiagnosticField.sqlState)
    let message = libpq.resultErrorField(result, LibPQ.DiagnosticField.primaryMessage)
    return PostgreSQLError(
      state: state.map { String(cString: $0) } ?? "08006",
      message: message.map { String(cString: $0) }
        ?? String(cString: libpq.resultErrorMessage(result))
        .trimmingCharacters(in: .whitespacesAndNewlines),
      sql: sql
    )
  }

  private func broken(_ sql: String?, _ cause: PostgreSQLError? = nil) -> PostgreSQLError {
    isBroken = true
    return cause.flatMap { $0.isConnectionLoss ? $0 : nil }
      ?? PostgreSQLError.lost(Self.message(of: handle, libpq), sql: sql)
  }

  // MARK: Transactions

  /// The isolation level of a transaction.
  package enum Isolation: String, Sendable {
    /// Each statement sees the transactions that were committed before it began.
    case readCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"
    /// All statements see one snapshot; the transaction is read only.
    case snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
  }

  /// Runs the body in a transaction: committed when it returns, rolled back when it throws.
  ///
  /// An error with `leavesCommitOpen` means that it is unknown whether the transaction was
  /// committed.
  package func transaction<Result>(
    _ isolation: Isolation = .readCommitted,
    _ body: () throws -> Result
  ) throws -> Result {
    try queue(isolation.rawValue)
    defer { hasNoLimit = false }
    var isCommitting = false
    do {
      let result = try body()
      try queue("COMMIT")
      isCommitting = isolation == .readCommitted
      switch isolation {
      case .readCommitted: try flush()
      // A read-only transaction does not wait: the next use of the connection reads the result.
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
    // Statements that were queued and not sent are flushed before the rollback.
    try? flush()
    try? queue("ROLLBACK")
    try? flush()
  }

  /// Cancels the connection's running statement; for use from any thread.
  package private(set) lazy var canceller = PostgreSQLCanceller(handle, libpq)

  // MARK: Notifications

  /// The file descriptor of the connection, to wait on.
  package var descriptor: Int32 { libpq.socket(handle) }

  /// The notifications that have arrived; it does not wait.
  package func notifications() throws -> [String] {
    guard libpq.consumeInput(handle) == 1 else { throw broken("LISTEN") }
    var payloads: [String] = []
    while let payload = libpq.nextNotification(handle) { payloads.append(payload) }
    return payloads
  }
}
