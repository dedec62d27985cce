import CSQLite
import Foundation

/// A trace event of a connection.
package enum SQLiteTraceEvent {
  /// A statement begins. The closure returns its text with the bound values.
  case began(sql: String, expanded: () -> String?)
  /// A statement has ended.
  case ended(sql: String, seconds: Double, rows: Int)
}

/// Retains a connection's trace callback, and counts rows for it.
final class SQLiteTracer {
  private let watch: (SQLiteTraceEvent) -> Void
  private var rows: [OpaquePointer: Int] = [:]
  /// Whether the callback is running: statements that it runs itself are not traced.
  private var isWatching = false

  init(_ watch: @escaping (SQLiteTraceEvent) -> Void) {
    self.watch = watch
  }

  func take(
    _ kind: UInt32,
    _ statement: OpaquePointer,
    _ detail: UnsafeMutableRawPointer?
  ) {
    guard !isWatching else { return }
    isWatching = true
    defer { isWatching = false }
    switch Int32(bitPattern: kind) {
    case SQLITE_TRACE_STMT:
      rows[statement] = 0
      guard let detail else { return }
      let sql = String(cString: detail.assumingMemoryBound(to: CChar.self))
      // SQLite reports the statements of a trigger as comments.
      guard !sql.hasPrefix("--") else { return }
      watch(
        .began(sql: sql) {
          guard let text = sqlite3_expanded_sql(statement) else { return nil }
          defer { sqlite3_free(text) }
          return String(cString: text)
        }
      )
    case SQLITE_TRACE_ROW:
      rows[statement, default: 0] += 1
    case SQLITE_TRACE_PROFILE:
      guard let detail, let sql = sqlite3_sql(statement) else { return }
      let nanoseconds = detail.assumingMemoryBound(to: Int64.self).pointee
      watch(
        .ended(
          sql: String(cString: sql),
          seconds: Double(nanoseconds) / 1_000_000_000,
          rows: rows.removeValue(forKey: statement) ?? 0
        )
      )
    default: return
    }
  }
}

extension SQLiteConnection {
  /// Sets a callback for the beginning and the end of statements; it runs on the thread that runs
  /// them.
  ///
  /// Without a callback tracing costs nothing (sqlite.org/c3ref/trace_v2.html).
  package func trace(_ watch: @escaping (SQLiteTraceEvent) -> Void) {
    let tracer = SQLiteTracer(watch)
    self.tracer = tracer
    let kinds = UInt32(SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE | SQLITE_TRACE_ROW)
    sqlite3_trace_v2(
      handle,
      kinds,
      { kind, context, statement, detail in
        guard let context, let statement else { return 0 }
        Unmanaged<SQLiteTracer>.fromOpaque(context).takeUnretainedValue()
          .take(kind, OpaquePointer(statement), detail)
        return 0
      },
      Unmanaged.passUnretained(tracer).toOpaque()
    )
  }

  /// SQLite's query plan, one line for each step.
  package func queryPlan(of sql: String) -> [String] {
    var compiled: OpaquePointer?
    guard
      sqlite3_prepare_v2(handle, "EXPLAIN QUERY PLAN \(sql)", -1, &compiled, nil) == SQLITE_OK
    else { return [] }
    defer { sqlite3_finalize(compiled) }
    var lines: [String] = []
    while sqlite3_step(compiled) == SQLITE_ROW {
      let numbers = (0..<3).map { String(sqlite3_column_int(compiled, Int32($0))) }
      let text = sqlite3_column_text(compiled, 3).map { String(cString: $0) } ?? ""
      lines.append(numbers.joined(separator: " ") + " " + text)
    }
    return lines
  }
}
