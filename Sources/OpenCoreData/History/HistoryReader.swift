import Foundation
import WatershedSQLite

/// One change of the history tables.
package struct RowHistoryChange: Sendable {
  package var changeNumber: Int64
  package var transactionNumber: Int64
  package var author: String?
  package var contextName: String?
  /// Seconds since 2001-01-01 00:00 UTC.
  package var timestamp: Double
  package var reference: RowReference
  package var kind: NSPersistentHistoryChangeType
  /// The names of the properties that an update changed; empty for inserts and deletes.
  package var changedProperties: [String]
  /// The preserved values of a deleted object, by attribute name.
  package var tombstone: [String: RowValue]
}

/// The combined changes of one row.
package struct PendingRowChange: Sendable {
  package var kind: NSPersistentHistoryChangeType
  package var changedProperties: Set<String>
  /// The last transaction that changed the row.
  package var transactionNumber: Int64
  package var tombstone: [String: RowValue]
  /// The first insertion of the row among these changes.
  package var insertion: RowInsertion?
}

/// The entry of the history that inserted a row: the same in every copy of the store, migrated or not.
package struct RowInsertion: Hashable, Sendable {
  package var transactionNumber: Int64
  /// Seconds since 2001-01-01 00:00 UTC.
  package var timestamp: Double
  /// The number of the change.
  package var changeNumber: Int64

  package init(transactionNumber: Int64, timestamp: Double, changeNumber: Int64) {
    self.transactionNumber = transactionNumber
    self.timestamp = timestamp
    self.changeNumber = changeNumber
  }
}

/// Reads the history tables through one connection.
struct HistoryReader {
  let connection: SQLiteConnection
  let store: SQLiteStore

  func lastTransactionNumber() throws -> Int64 {
    guard store.keepsHistory || store.hasHistoryTables else { return 0 }
    let value = try connection.scalar(
      "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
      [.integer(Int64(HistoryTables.transaction))]
    )
    guard case .integer(let number)? = value else { return 0 }
    return number
  }

  /// How many transactions are kept after one; their numbers have no gaps but deleted ones.
  func transactionCount(after number: Int64) throws -> Int64 {
    let kept = try connection.scalar(
      "SELECT COUNT(*) FROM ATRANSACTION WHERE Z_PK > ?",
      [.integer(number)]
    )
    guard case .integer(let count)? = kept else { return 0 }
    return count
  }

  /// The changes of up to `limit` transactions after one, in order; 0 for no limit.
  func changes(after transaction: Int64, limit: Int = 0) throws -> [RowHistoryChange] {
    guard store.hasHistoryTables else { return [] }
    let preserved = store.tombstoneColumns
    return try connection.query(
      """
      \(Self.selection(preserved)) WHERE c.ZTRANSACTIONID IN \
      (SELECT Z_PK FROM ATRANSACTION WHERE Z_PK > ? ORDER BY Z_PK LIMIT ?) \
      ORDER BY c.ZTRANSACTIONID, c.Z_PK
      """,
      [.integer(transaction), .integer(limit > 0 ? Int64(limit) : -1)]
    ) { row in try change(row, tombstones: preserved.count) }
    .compactMap { $0 }
  }

  /// The columns of changes that ``change(_:tombstones:)`` reads.
  static func selection(_ preserved: [String]) -> String {
    """
    SELECT c.Z_PK, c.ZTRANSACTIONID, a.ZNAME, n.ZNAME, t.ZTIMESTAMP, c.ZENTITY, c.ZENTITYPK, \
    c.ZCHANGETYPE, c.ZCOLUMNS, t.ZAUTHOR, t.ZCONTEXTNAME\(preserved.map { ", c.\($0)" }.joined()) \
    FROM ACHANGE AS c JOIN ATRANSACTION AS t ON t.Z_PK = c.ZTRANSACTIONID \
    LEFT JOIN ATRANSACTIONSTRING AS a ON a.Z_PK = t.ZAUTHORTS \
    LEFT JOIN ATRANSACTIONSTRING AS n ON n.Z_PK = t.ZCONTEXTNAMETS
    """
  }

  func pendingChanges(
    after transaction: Int64,
    excludingAuthors authors: Set<String>
  ) throws -> [RowReference: PendingRowChange] {
    merged(
      try changes(after: transaction).filter { change in
        !(change.author.map(authors.contains) ?? false)
      }
    )
  }

  /// Combines changes, which are in their order, per row.
  func merged(_ changes: some Sequence<RowHistoryChange>) -> [RowReference: PendingRowChange] {
    var result: [RowReference: PendingRowChange] = [:]
    for change in changes {
      let names = Set(change.changedProperties)
      let insertion =
        change.kind == .insert
        ? RowInsertion(
          transactionNumber: change.transactionNumber,
          timestamp: change.timestamp,
          changeNumber: change.changeNumber
        ) : nil
      guard var known = result[change.reference] else {
        result[change.reference] = PendingRowChange(
          kind: change.kind,
          changedProperties: names,
          transactionNumber: change.transactionNumber,
          tombstone: change.tombstone,
          insertion: insertion
        )
        continue
      }
      known.insertion = known.insertion ?? insertion
      known.transactionNumber = change.transactionNumber
      known.changedProperties.formUnion(names)
      if change.kind == .delete {
        known.kind = .delete
        known.tombstone = change.tombstone
      } else if change.kind == .insert {
        known.kind = .insert
      }
      result[change.reference] = known
    }
    return result
  }

  /// A change of the history; nil for one of an entity that the model lacks.
  func change(_ row: SQLiteStatement, tombstones: Int) throws -> RowHistoryChange? {
    let number = Int32(truncatingIfNeeded: row.int64(5))
    guard let entity = store.schema.entity(number: number),
      let kind = NSPersistentHistoryChangeType(rawValue: Int(row.int64(7)))
    else { return nil }
    var tombstone: [String: RowValue] = [:]
    if kind == .delete {
      for (index, kept) in entity.history.preserved.enumerated() where index < tombstones {
        var form = entity.columns[kept.rowIndex].form
        // A tombstone contains the value itself, never the name of its file.
        if form == .externalData { form = .data }
        let value = try DictionaryStatement.stored(row.value(11 + index), form, store.coding)
        if !value.isNull { tombstone[kept.name] = value }
      }
    }
    return RowHistoryChange(
      changeNumber: row.int64(0),
      transactionNumber: row.int64(1),
      author: row.optionalText(2) ?? row.optionalText(9),
      contextName: row.optionalText(3) ?? row.optionalText(10),
      timestamp: row.double(4),
      reference: RowReference(entityNumber: number, key: row.int64(6)),
      kind: kind,
      changedProperties: kind == .update
        ? row.optionalBlob(8).map(entity.history.names) ?? [] : [],
      tombstone: tombstone
    )
  }
}
