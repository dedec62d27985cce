import Synchronization

/// Connections to one server, each lent to one user at a time.
///
/// One that finds none free opens another, so a read inside a read never waits for itself.
package final class PostgreSQLPool: Sendable {
  private struct State {
    var idle: [PostgreSQLConnection] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let url: String
  private let observer: (@Sendable (String) -> Void)?

  /// Bounds the connections that are kept; each is a process on the server.
  private static let idleLimit = 16
  /// Milliseconds after which a statement gives up waiting for a lock.
  package static let lockTimeout = 10_000
  /// Milliseconds after which a statement gives up.
  ///
  /// A worker of a cluster that hangs must not keep the threads of all requests waiting. What takes
  /// long on purpose sets its own limit.
  package static let statementTimeout = 30_000

  /// The observer is shown each text of a statement before it is sent for the first time.
  package init(url: String, observer: (@Sendable (String) -> Void)? = nil) {
    self.url = url
    self.observer = observer
  }

  /// Lends a connection to the body; one that broke is not kept, nor one to a server that takes no
  /// writes: of the hosts in the URL another one may.
  package func use<Result>(_ body: (PostgreSQLConnection) throws -> Result) throws -> Result {
    let connection = try state.withLock { $0.idle.popLast() } ?? open()
    var isOfUse = true
    defer {
      if isOfUse, !connection.isBroken {
        state.withLock { state in
          if !state.isClosed, state.idle.count < Self.idleLimit { state.idle.append(connection) }
        }
      }
    }
    do {
      return try body(connection)
    } catch let error as PostgreSQLError where error.isConnectionLoss || error.isReadOnly {
      isOfUse = false
      // The others are likely to be gone too: a server that restarted has forgotten them all.
      state.withLock { $0.idle.removeAll() }
      throw error
    }
  }

  private func open() throws -> PostgreSQLConnection {
    let connection = try PostgreSQLConnection(url: url, observer: observer)
    // A server that hangs between statements must not keep everybody's rows locked, and a commit
    // that waits for one gives up in time to say so.
    try connection.queue("SET idle_in_transaction_session_timeout = 60000")
    try connection.queue("SET lock_timeout = \(Self.lockTimeout)")
    try connection.queue("SET statement_timeout = \(Self.statementTimeout)")
    try connection.flush()
    return connection
  }

  /// Closes what is idle; what is lent is closed when it comes back.
  package func close() {
    state.withLock { state in
      state.isClosed = true
      state.idle.removeAll()
    }
  }
}
