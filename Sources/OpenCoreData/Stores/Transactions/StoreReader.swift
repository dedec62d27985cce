import WatershedSQLite

/// A consistent view of a store, valid only inside the body that it is passed to.
package final class StoreReader {
  private let store: SQLiteStore
  private let reader: StoreConnection

  init(store: SQLiteStore, reader: StoreConnection) {
    self.store = store
    self.reader = reader
  }

  /// The connection, for the caller's own tables.
  package var connection: SQLiteConnection { reader.connection }

  package func row(_ reference: RowReference) throws -> Row? {
    try store.readRow(reference, from: reader)
  }

  package func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    var result: [RowReference: Row] = [:]
    for row in try store.readRows(references, from: reader) { result[row.reference] = row }
    return result
  }

  package func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try store.readDestinations(of: relationship, from: sources, on: reader)
  }

  package func fetch(_ request: RowFetch) throws -> RowFetchResult {
    try store.fetch(request, from: reader)
  }

  /// The changes of up to `limit` transactions after `transaction`, in order; 0 for no limit.
  package func changes(after transaction: Int64, limit: Int = 0) throws -> [RowHistoryChange] {
    try HistoryReader(connection: connection, store: store)
      .changes(after: transaction, limit: limit)
  }

  /// The changes after a transaction by any author except these, merged per row.
  package func pendingChanges(
    after transaction: Int64,
    excludingAuthors authors: Set<String>
  ) throws -> [RowReference: PendingRowChange] {
    try HistoryReader(connection: connection, store: store)
      .pendingChanges(after: transaction, excludingAuthors: authors)
  }

  /// The number of the newest transaction in the history; 0 where there is none.
  package var lastTransactionNumber: Int64 {
    get throws { try HistoryReader(connection: connection, store: store).lastTransactionNumber() }
  }
}
