/// An error of PostgreSQL, or of the connection to it.
package struct PostgreSQLError: Error, CustomStringConvertible, Sendable {
  /// The SQLSTATE, five characters (postgresql.org/docs/current/errcodes-appendix.html).
  package let state: String
  /// The server's error message.
  package let message: String
  /// The statement that was being run, if there is one.
  package let sql: String?
  /// Whether the connection was lost during a commit, so that it may or may not have been written.
  package internal(set) var leavesCommitOpen = false

  package init(state: String, message: String, sql: String? = nil) {
    self.state = state
    self.message = message
    self.sql = sql
  }

  package var description: String {
    let place = sql.map { " in: \($0.prefix(300))" } ?? ""
    return "PostgreSQL error \(state): \(message)\(place)"
  }

  /// The client library is missing on this machine.
  ///
  /// The state is the project's own, in a class that the standard leaves to implementations.
  package var isMissingLibrary: Bool { state == Self.missingLibrary }
  static let missingLibrary = "WS001"

  /// The connection is lost or could not be opened, or the server is starting or stopping.
  package var isConnectionLoss: Bool { state.hasPrefix("08") || state.hasPrefix("57P") }

  /// The server accepts no writes now: a standby before or after a fail-over, or a database that
  /// was set to read only.
  package var isReadOnly: Bool { state == "25006" || state == "55000" }

  /// The server reports an internal error, as a cluster's coordinator does that lost a worker
  /// during a commit.
  package var isInternal: Bool { state.hasPrefix("XX") || state.hasPrefix("58") }

  /// A statement, or its wait for a lock, exceeded its time limit.
  package var isTimeout: Bool { state == "57014" || state == "55P03" }

  /// The server has insufficient resources: too many connections, or a full disk.
  package var isOverload: Bool { state.hasPrefix("53") }

  /// A conflict with another transaction; a retry is likely to succeed.
  package var isTransient: Bool {
    state == "40001" || state == "40P01"
  }

  /// A row with the same key exists.
  package var isUniqueViolation: Bool { state == "23505" }

  static func lost(_ message: String, sql: String? = nil) -> PostgreSQLError {
    PostgreSQLError(state: "08006", message: message, sql: sql)
  }
}
