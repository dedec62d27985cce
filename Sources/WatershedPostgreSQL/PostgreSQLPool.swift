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
    var generation = 0
    var isClosed = false

    /// Begins a generation; the idle connections are to be closed outside the lock.
    mutating func beginGeneration() -> [PostgreSQLConnection] {
      defer { idle.removeAll() }
      generation += 1
      return idle
    }
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

  /// Notes that a connection of the generation was lost, in the pool or beside it.
  ///
  /// After a restart of the server the other connections are likely to be lost too, and after a
  /// fail-over they may lead to the former server: the idle ones are closed, those in use when they are
  /// returned. The loss of a connection of a former generation says nothing about the present ones.
  package func noteLoss(in generation: Int) {
    let lost = state.withLock { $0.generation == generation ? $0.beginGeneration() : [] }
    // Closed here, outside the lock.
    withExtendedLifetime(lost) {}
  }

  /// Begins a generation of connections, since the others may lead to another server than this one.
  package func beginGeneration(with connection: PostgreSQLConnection) {
    let former = state.withLock { state in
      defer { connection.generation = state.generation }
      return state.beginGeneration()
    }
    withExtendedLifetime(former) {}
  }

  /// The number of the present generation of connections; it rises with each loss.
  package var generation: Int { state.withLock { $0.generation } }

  /// The connections that a thread has now, the idle ones, and all that were opened so far.
  package var counts: (used: Int, idle: Int, opened: Int) {
    state.withLock { ($0.used, $0.idle.count, $0.opened) }
  }

  /// Throws a loss if others were lost since the connection was opened, or if it led to another server.
  package func checkGeneration(of connection: PostgreSQLConnection) throws {
    guard connection.generation != generation else { return }
    throw PostgreSQLError.lost("the connection is older than the loss of another one")
  }

  /// Runs the body with a connection.
  ///
  /// A broken connection is not kept, nor one of a former generation, nor one to a server that accepts
  /// no writes: another host of the URL may accept them.
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
        if isKept, connection.generation == state.generation, !state.isClosed,
          state.idle.count < Self.idleLimit
        {
          state.idle.append(connection)
        }
      }
    }
    do {
      return try body(connection)
    } catch let error as PostgreSQLError where error.isConnectionLoss || error.isReadOnly {
      isOfUse = false
      noteLoss(in: connection.generation)
      throw error
    }
  }

  private func open() throws -> PostgreSQLConnection {
    // Before it connects: a loss meanwhile may concern this connection too.
    let generation = generation
    let connection = try PostgreSQLConnection(
      url: url,
      answerLimit: answerLimit,
      observer: observer
    )
    connection.generation = generation
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
