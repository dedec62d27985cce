import WatershedSQLite

/// A place in the history of a store: the changes before it, in the order of their transactions and numbers.
package struct HistoryPosition: Hashable, Sendable {
  /// The transaction of the last change before the position.
  package var transaction: Int64
  /// The number of that change, if more changes of its transaction may follow.
  package var change: Int64?

  package init(transaction: Int64, change: Int64? = nil) {
    self.transaction = transaction
    self.change = change
  }

  /// The last transaction all changes of which are before the position.
  package var wholeTransaction: Int64 { change == nil ? transaction : transaction - 1 }

  /// The condition for changes after a position; ``values`` are its values.
  ///
  /// A comparison of row values, so that the index of transactions begins at the position within a large transaction.
  package static let condition = "(c.ZTRANSACTIONID, c.Z_PK) > (?, ?)"

  package var values: [SQLiteValue] {
    [.integer(transaction), .integer(change ?? .max)]
  }
}

/// Some changes of the history, combined per row.
package struct PendingHistory: Sendable {
  package var changes: [RowReference: PendingRowChange]
  /// The position after which the next changes follow; nil if there are none.
  package var end: HistoryPosition?
}

extension HistoryReader {
  /// Up to `limit` changes after a position by any author except these, merged per row; without tombstones.
  func pendingChanges(
    after position: HistoryPosition,
    limit: Int,
    excludingAuthors authors: Set<String>
  ) throws -> PendingHistory {
    guard store.hasHistoryTables else { return PendingHistory(changes: [:]) }
    let excluded = authors.sorted()
    let marks = excluded.map { _ in "?" }.joined(separator: ", ")
    // The query has no sort, as the index of transactions has the changes of each in order: the limit ends the reading.
    let found = try connection.query(
      """
      \(Self.selection([])) WHERE \(HistoryPosition.condition) \
      AND coalesce(a.ZNAME, t.ZAUTHOR, '') NOT IN (\(marks)) \
      ORDER BY c.ZTRANSACTIONID, c.Z_PK LIMIT ?
      """,
      position.values + excluded.map(SQLiteValue.text)
        + [.integer(limit == .max ? -1 : Int64(limit) + 1)]
    ) { row in
      (number: row.int64(0), transaction: row.int64(1), change: try change(row, tombstones: 0))
    }
    var pending = PendingHistory(changes: merged(found.prefix(limit).compactMap(\.change)))
    if found.count > limit {
      let (last, next) = (found[limit - 1], found[limit])
      pending.end = HistoryPosition(
        transaction: last.transaction,
        change: last.transaction == next.transaction ? last.number : nil
      )
    }
    return pending
  }
}
