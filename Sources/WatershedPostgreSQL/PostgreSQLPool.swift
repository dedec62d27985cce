import Synchronization

/// A pool of connections to one server; each one serves one thread at a time.
///
/// If no connection is free, a caller opens another one, so that a nested read never waits for its
/// outer read.
package final class PostgreSQLPool: Sendable {
  private struct State {
    var idle: [PostgreSQLConnection] = []
    var used = 0
    var opened = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let url: String
  private let answerLimit: Double
  private let observer: (@Sendable (String) -> Void)?

  /// The most idle connections that are kept; each one is a process on the server.
  private static let idleLimit = 16
  /// The longest wait of a statement for a lock, in milliseconds.
  package static let lockTimeout = 10_000
  /// The longest duration of a statement, in milliseconds.
  ///
  /// A worker of a cluster that hangs must not block the threads of all requests. A statement that
  /// needs longer sets its own limit.
  package static let statementTimeout = 30_000
  /// The longest silence of the server while an answer is due, in seconds: twice a statement's limit, as
  /// a server sends the results of several statements together.
  package static let answerLimit = 60.0

  /// The observer is called with each statement's text before the statement is first sent.
  package init(
    url: String,
    answerLimit: Double = answerLimit,
    observer: (@Sendable (String) -> Void)? = nil
  ) {
    self.url = url
    self.answerLimit = answerLimit
    self.observer = observer
  }

  /// Notes that a connection was lost, in the pool or beside it.
  ///
  /// After a restart of the server the idle connections are likely to be lost too.
  package func noteLoss() {
    let lost = state.withLock { state in
      defer { state.idle.removeAll() }
      return state.idle
    }
    // Closed here, outside the lock.
    withExtendedLifetime(lost) {}
  }

  /// The connections that a thread has now, the idle ones, and all that were opened so far.
  package var counts: (used: Int, idle: Int, opened: Int) {
    state.withLock { ($0.used, $0.idle.count, $0.opened) }
  }

  /// Runs the body with a connection.
  ///
  /// A broken connection is not kept, nor one to a server that accepts no writes: another host of
  /// the URL may accept them.
  /// `answerLimit` replaces the pool's for this use.
  package func use<Result>(
    answerLimit: Double? = nil,
    _ body: (PostgreSQLConnection) throws -> Result
  ) throws -> Result {
    let connection = try state.withLock { $0.idle.popLast() } ?? open()
    if let answerLimit { connection.answerLimit = answerLimit }
    state.withLock { $0.used += 1 }
    var isOfUse = true
    defer {
      connection.answerLimit = self.answerLimit
      let isKept = isOfUse && !connection.isBroken
      state.withLock { state in
        state.used -= 1
        if isKept, !state.isClosed, state.idle.count < Self.idleLimit {
          state.idle.append(connection)
        }
      }
    }
    do {
      return try body(connection)
    } catch let error as PostgreSQLError where error.isConnectionLoss || error.isReadOnly {
      isOfUse = false
      noteLoss()
      throw error
    }
  }

  private func open() throws -> PostgreSQLConnection {
    let connection = try PostgreSQLConnection(
      url: url,
      answerLimit: answerLimit,
      observer: observer
    )
    // A process that hangs inside a transaction must not keep its row locks for long, and a commit
    // that waits for such a lock must fail with an error.
    try connection.queue("SET idle_in_transaction_session_timeout = 60000")
    try connection.queue("SET lock_timeout = \(Self.lockTimeout)")
    try connection.queue("SET statement_timeout = \(Self.statementTimeout)")
    try connection.flush()
    state.withLock { $0.opened += 1 }
    return connection
  }

  /// Closes the idle connections; those in use are closed when they are returned.
  package func close() {
    state.withLock { state in
      state.isClosed = true
      state.idle.removeAll()
    }
  }
}
