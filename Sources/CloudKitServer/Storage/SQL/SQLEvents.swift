import Foundation

/// The outbox: the notifications of commits, in an order without gaps.
struct SQLEvents<Session: SQLSession> {
  let session: Session

  /// Writes the event of a commit in the commit's transaction.
  func write(_ event: WriteBatch.EventWrite, _ partition: PartitionID) throws {
    // PostgreSQL's commits end out of order: the transaction's number shows when all earlier ones
    // have ended (`events(after:limit:)`). SQLite's writers are serial, so a count is sufficient.
    let (transaction, number) =
      switch session.dialect {
      case .sqlite: ("0", "(SELECT coalesce(max(number), 0) + 1 FROM events)")
      case .postgreSQL: ("pg_current_xact_id()::text::bigint", "0")
      }
    try session.run(
      """
      INSERT INTO events (transaction_id, number, partition, at, body)
      VALUES (\(transaction), \(number), $1, $2, $3)
      """,
      [.integer(partition.rawValue), .integer(event.time), .bytes(event.body)]
    )
  }

  /// The oldest running transaction; all transactions with smaller numbers have ended.
  private static var oldestRunning: String {
    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
  }

  /// Bytes of events that are in memory at a time.
  private static var bytesPerRead: Int64 { 8 * 1_048_576 }

  /// The next events in their order: up to a number and as many bytes as fit in memory, at least one.
  func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    let settled =
      session.dialect == .sqlite ? "" : "AND transaction_id < \(Self.oldestRunning)"
    let next = try session.query(
      """
      SELECT transaction_id, number, LENGTH(body) FROM events
      WHERE (transaction_id, number) > ($1, $2) \(settled)
      ORDER BY transaction_id, number LIMIT $3
      """,
      [.integer(position.transaction), .integer(position.number), .integer(Int64(limit))]
    ) { (EventPosition(transaction: $0.int64(0), number: $0.int64(1)), $0.int64(2)) }
    guard var last = next.first?.0 else { return [] }
    var bytes: Int64 = 0
    for (position, size) in next {
      bytes += size
      guard bytes <= Self.bytesPerRead else { break }
      last = position
    }
    // Bounded by an event that was settled: no other one can appear before it.
    return try session.query(
      """
      SELECT transaction_id, number, partition, body FROM events
      WHERE (transaction_id, number) > ($1, $2) AND (transaction_id, number) <= ($3, $4)
      ORDER BY transaction_id, number
      """,
      [
        .integer(position.transaction), .integer(position.number),
        .integer(last.transaction), .integer(last.number),
      ]
    ) { row in
      StoredEvent(
        position: EventPosition(transaction: row.int64(0), number: row.int64(1)),
        partition: PartitionID(rawValue: row.int64(2)),
        body: row.blob(3)
      )
    }
  }

  func newest() throws -> EventPosition {
    let sql =
      switch session.dialect {
      case .sqlite: "SELECT 0, coalesce(max(number), 0) FROM events"
      case .postgreSQL: "SELECT \(Self.oldestRunning) - 1, 0"
      }
    return try session.query(sql, []) {
      EventPosition(transaction: $0.int64(0), number: $0.int64(1))
    }.first ?? .start
  }

  /// Whether there are events that wait for an earlier transaction to end.
  func hasUnsettled() throws -> Bool {
    try !session.query(
      "SELECT 1 FROM events WHERE transaction_id >= \(Self.oldestRunning) LIMIT 1",
      []
    ) { _ in true }.isEmpty
  }

  /// Keeps the newest event, so that no number is assigned twice.
  func forget(before time: Int64) throws {
    try session.run(
      """
      DELETE FROM events WHERE at < $1
        AND (transaction_id, number) < (
          SELECT transaction_id, number FROM events
          ORDER BY transaction_id DESC, number DESC LIMIT 1
        )
      """,
      [.integer(time)]
    )
  }
}
