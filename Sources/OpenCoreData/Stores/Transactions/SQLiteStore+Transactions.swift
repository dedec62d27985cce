import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Runs the body in a write transaction of rows, which is committed when it returns and rolled
  /// back when it throws.
  ///
  /// Commit observers and contexts are notified afterwards.
  package func write<Result>(
    author: String?,
    contextName: String? = nil,
    _ body: (StoreTransaction) throws -> Result
  ) throws -> Result {
    let outcome = try writing(author: author, contextName: contextName) { writer in
      let transaction = StoreTransaction(store: self, writer: writer)
      let result = try body(transaction)
      try transaction.finish()
      return result
    }
    if !outcome.record.isEmpty {
      announce(
        outcome.announcement(author: author, contextName: contextName, isContextSave: false),
        in: outcome.turn
      )
    }
    return outcome.result
  }

  /// Runs the body in one read transaction: all its reads see the same state.
  ///
  /// The data that it reads decides about other data, such as the history: it throws if the file was
  /// migrated, noticed or not.
  package func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result {
    try withReader { connection in
      let reader = StoreReader(store: self, reader: connection)
      if connection.connection.isInTransaction { return try body(reader) }
      return try connection.connection.transaction(.deferred) {
        try requireOpenedModel(connection)
        return try body(reader)
      }
    }
  }
}
