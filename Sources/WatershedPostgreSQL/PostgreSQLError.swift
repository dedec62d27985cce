/// What PostgreSQL refused, or why it could not be asked.
package struct PostgreSQLError: Error, CustomStringConvertible, Sendable {
  /// The five characters of the SQL standard (postgresql.org/docs/current/errcodes-appendix.html).
  package let state: String
  /// The server's own words.
  package let message: String
  /// The statement that was being run, where there is one.
  package let sql: String?
  /// The connection went while a commit was under way: it may have been written.
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

  /// The connection is gone or was never there, or the server is starting or stopping.
  package var isConnectionLoss: Bool { state.hasPrefix("08") || state.hasPrefix("57P") }

  /// The server takes no writes now: a standby before or after a fail-over, or a database that was set
  /// to read only.
  package var isReadOnly: Bool { state == "25006" || state == "55000" }

  /// The server failed itself, as a cluster's coordinator does that lost a worker at a commit.
  package var isInternal: Bool { state.hasPrefix("XX") || state.hasPrefix("58") }

  /// A statement or the wait for a lock took longer than it may.
  package var isTimeout: Bool { state == "57014" || state == "55P03" }

  /// The server has no room: too many connections, a full disk.
  package var isOverload: Bool { state.hasPrefix("53") }

  /// Another transaction was in the way; the same again may well succeed.
  package var isTransient: Bool {
    state == "40001" || state == "40P01"
  }

  /// A row of the same key is there already.
  package var isUniqueViolation: Bool { state == "23505" }

  static func lost(_ message: String, sql: String? = nil) -> PostgreSQLError {
    PostgreSQLError(state: "08006", message: message, sql: sql)
  }
}
