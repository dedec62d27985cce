import Foundation

/// The outbox: what commits tell those who wait, in an order that has no gaps.
struct SQLEvents<Session: SQLSession> {
  let session: Session

  /// Writes an event with the commit that it tells of.
  func write(_ event: WriteBatch.EventWrite, _ partition: PartitionID) throws {
    // PostgreSQL's commits end out of order: the transaction's number says when all before it have
    // ended (`events(after:limit:)`). SQLite's writers queue, and a plain count will do.
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

  /// A transaction that began later has a greater number than all that have ended.
  private static var oldestRunning: String {
    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
  }

  func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    let settled =
      session.dialect == .sqlite ? "" : "AND transaction_id < \(Self.oldestRunning)"
    return try session.query(
      """
      SELECT transaction_id, number, partition, body FROM events
      WHERE (transaction_id, number) > ($1, $2) \(settled)
      ORDER BY transaction_id, number LIMIT $3
      """,
      [.integer(position.transaction), .integer(position.number), .integer(Int64(limit))]
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

  /// Whether there are events that wait for a transaction before them to end.
  func hasUnsettled() throws -> Bool {
    try !session.query(
      "SELECT 1 FROM events WHERE transaction_id >= \(Self.oldestRunning) LIMIT 1",
      []
    ) { _ in true }.isEmpty
  }

  /// The newest stays, so that no number is given out twice.
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
