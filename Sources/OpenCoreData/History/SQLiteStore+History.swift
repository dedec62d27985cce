import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Runs a history request on this store.
  ///
  /// For tests.
  package func executeHistory(
    _ request: NSPersistentHistoryChangeRequest
  ) throws -> NSPersistentHistoryResult {
    try request.run(on: [self])
  }

  /// The token of the newest transaction; nil if no history is kept.
  package var currentHistoryToken: NSPersistentHistoryToken? {
    get throws {
      guard hasHistoryTables else { return nil }
      let number = try read { try $0.lastTransactionNumber }
      return NSPersistentHistoryToken(transactionNumbers: [identifier ?? "": number])
    }
  }

  /// The first transactions after a bound, with their changes or without; a limit of 0 is none.
  func history(
    after bound: NSPersistentHistoryChangeRequest.Bound,
    withChanges: Bool,
    limit: Int
  ) throws -> [NSPersistentHistoryTransaction] {
    guard hasHistoryTables else { return [] }
    return try read { reader in
      let history = HistoryReader(connection: reader.connection, store: self)
      let first: Int64
      switch bound {
      case .date(let date): first = try history.lastTransaction(upTo: date)
      case .token(let token):
        let number = token?.transactionNumbers[identifier ?? ""]
        if let number { try requireKept(after: number, history) }
        first = number ?? 0
      }
      return withChanges
        ? try transactions(after: first, limit: limit, history)
        : try history.transactions(after: first, limit: limit, storeID: identifier ?? "")
    }
  }

  /// The transactions before a bound, with their changes or without.
  func transactions(
    before bound: NSPersistentHistoryChangeRequest.Bound,
    withChanges: Bool
  ) throws -> [NSPersistentHistoryTransaction] {
    guard hasHistoryTables else { return [] }
    return try read { reader in
      let history = HistoryReader(connection: reader.connection, store: self)
      let last = try lastTransaction(before: bound, history)
      return withChanges
        ? try transactions(after: 0, history).filter { $0.transactionNumber <= last }
        : try history.transactions(after: 0, upTo: last, storeID: identifier ?? "")
    }
  }

  /// Deletes the transactions before a bound, or those of them that were selected; returns how many.
  func deleteHistory(
    before bound: NSPersistentHistoryChangeRequest.Bound,
    among selected: [Int64]?
  ) throws -> Int {
    guard hasHistoryTables else { return 0 }
    let outcome = try writing(author: nil, contextName: nil) { writer in
      let history = HistoryReader(connection: writer.connection, store: self)
      let last = try self.lastTransaction(before: bound, history)
      let chosen = selected?.filter { $0 <= last }
      let end = chosen.map { $0.max() ?? 0 } ?? last
      guard end > 0 else { return 0 }
      let transaction = StoreTransaction(store: self, writer: writer)
      try historyWillBeDeleted?(transaction, end)
      try transaction.finish()
      return try Self.deleteTransactions(chosen, upTo: end, writer.connection)
    }
    return outcome.result
  }

  /// The number of the last transaction that a deletion before a bound may delete.
  private func lastTransaction(
    before bound: NSPersistentHistoryChangeRequest.Bound,
    _ history: HistoryReader
  ) throws -> Int64 {
    switch bound {
    case .date(let date):
      try history.lastDeletableTransaction(before: date, now: effects.now)
    case .token(let token?): (token.transactionNumbers[identifier ?? ""] ?? 1) - 1
    case .token(nil): try history.lastTransactionNumber()
    }
  }

  /// Deletes the transactions with some numbers, or else all up to a number, with their changes.
  private static func deleteTransactions(
    _ chosen: [Int64]?,
    upTo end: Int64,
    _ connection: SQLiteConnection
  ) throws -> Int {
    var condition = "<= ?"
    var value = SQLiteValue.integer(end)
    if let chosen {
      condition = "IN (SELECT value FROM json_each(?))"
      value = .text("[\(chosen.map(String.init).joined(separator: ","))]")
    }
    try connection.run("DELETE FROM ACHANGE WHERE ZTRANSACTIONID \(condition)", [value])
    try connection.run("DELETE FROM ATRANSACTION WHERE Z_PK \(condition)", [value])
    return connection.changes
  }

  /// Throws if a part of the history after a token was deleted, so that its reader has missed
  /// changes: a deletion with a fetch request leaves out transactions between others.
  ///
  /// It also throws for a token that is newer than the file, which was restored from an older copy:
  /// the numbers after it are assigned again.
  private func requireKept(after token: Int64, _ history: HistoryReader) throws {
    let last = try history.lastTransactionNumber()
    guard token != last else { return }
    guard try token > last || history.transactionCount(after: token) < last - token else { return }
    let reason =
      token > last
      ? "The history of the store at \(path) ends before transaction \(token): the file is of an "
        + "earlier time than the token."
      : "The history after transaction \(token) of the store at \(path) has been deleted."
    throw StoreError(
      .historyTokenExpired,
      reason,
      remedy: "Read the objects themselves, then continue from the current token.",
      context: ["NSFilePath": path]
    )
  }

  private func transactions(
    after first: Int64,
    limit: Int = 0,
    _ history: HistoryReader
  ) throws -> [NSPersistentHistoryTransaction] {
    let changes = Dictionary(
      grouping: try history.changes(after: first, limit: limit),
      by: \.transactionNumber
    )
    let all = try history.transactions(after: first, limit: limit, storeID: identifier ?? "")
    return all.map { transaction in
      transaction.changes = (changes[transaction.transactionNumber] ?? []).compactMap { change in
        guard let made = publicChange(change) else { return nil }
        made.transaction = transaction
        return made
      }
      return transaction
    }
  }

  private func publicChange(_ change: RowHistoryChange) -> NSPersistentHistoryChange? {
    guard let objectID = persistentStoreCoordinator?.objectID(self, change.reference),
      let entity = schema.entity(number: change.reference.entityNumber)
    else { return nil }
    let properties = entity.layout.entity.propertiesByName
    var tombstone: [AnyHashable: Any] = [:]
    for (name, value) in change.tombstone {
      var type = NSAttributeType.undefinedAttributeType
      if case .attribute(let index) = entity.layout.slot(named: name) {
        type = entity.layout.attributes[index].type
      }
      tombstone[name] = DictionaryStatement.keyValue(value, type)
    }
    return NSPersistentHistoryChange(
      changeID: change.changeNumber,
      changedObjectID: objectID,
      changeType: change.kind,
      tombstone: change.kind == .delete && !tombstone.isEmpty ? tombstone : nil,
      updatedProperties: change.kind == .update
        ? Set(
          change.changedProperties.compactMap { name in
            // A leaf of a composite attribute is named by its path.
            properties[name] ?? name.split(separator: ".").first.flatMap { properties[String($0)] }
          }
        ) : nil
    )
  }
}

extension HistoryReader {
  /// The last transaction before which all transactions are older than a date; 0 if there is none.
  ///
  /// If a clock was set back, a later transaction may have an earlier time. Transactions newer than
  /// the date are then neither skipped nor deleted.
  func lastTransaction(before date: Date) throws -> Int64 {
    let first = try connection.scalar(
      "SELECT MIN(Z_PK) FROM ATRANSACTION WHERE ZTIMESTAMP >= ?",
      [.real(date.timeIntervalSinceReferenceDate)]
    )
    if case .integer(let number)? = first { return number - 1 }
    return try lastKeptTransaction()
  }

  /// The last transaction that a reader has seen who has read up to the one of a date; 0 if there is
  /// none.
  ///
  /// It equals ``lastTransaction(before:)`` and the transactions of that very date after it. Those that
  /// come after them are unread, also where a clock was set back and their times are earlier.
  func lastTransaction(upTo date: Date) throws -> Int64 {
    let before = try lastTransaction(before: date)
    let next = try connection.scalar(
      "SELECT MIN(Z_PK) FROM ATRANSACTION WHERE Z_PK > ? AND ZTIMESTAMP <> ?",
      [.integer(before), .real(date.timeIntervalSinceReferenceDate)]
    )
    if case .integer(let number)? = next { return number - 1 }
    return try lastKeptTransaction()
  }

  private func lastKeptTransaction() throws -> Int64 {
    guard case .integer(let last)? = try connection.scalar("SELECT MAX(Z_PK) FROM ATRANSACTION")
    else { return 0 }
    return last
  }

  /// The last transaction that deleting the history before a date removes.
  ///
  /// It equals ``lastTransaction(before:)``, except that a clock that was ahead by years does not
  /// keep the history for years: a time more than a day in the future is ignored if there are
  /// transactions with plausible times before and after it. The transaction before such a time is
  /// kept, so that this can be detected again.
  func lastDeletableTransaction(before date: Date, now: Date) throws -> Int64 {
    let limit = now.timeIntervalSinceReferenceDate + Self.clockTolerance
    let ahead = try connection.scalar(
      "SELECT Z_PK FROM ATRANSACTION WHERE ZTIMESTAMP > ? LIMIT 1",
      [.real(limit)]
    )
    guard ahead != nil else { return try lastTransaction(before: date) }
    let all = try connection.query("SELECT Z_PK, ZTIMESTAMP FROM ATRANSACTION ORDER BY Z_PK") {
      (number: $0.int64(0), time: $0.double(1))
    }
    // The latest plausible time after each transaction.
    var latest = [Double](repeating: -.infinity, count: all.count + 1)
    for index in all.indices.reversed() {
      let time = all[index].time
      latest[index] = time <= limit ? max(latest[index + 1], time) : latest[index + 1]
    }
    var earliest = Double.infinity
    var plausible: Int64?
    for (index, (number, time)) in all.enumerated() {
      if time <= limit {
        if time >= date.timeIntervalSinceReferenceDate { return number - 1 }
        earliest = min(earliest, time)
        plausible = number
      } else if time >= date.timeIntervalSinceReferenceDate, earliest > latest[index + 1] {
        return (plausible ?? number) - 1
      }
    }
    return all.last?.number ?? 0
  }

  /// The tolerance in seconds: a clock that is ahead by less corrects itself.
  private static let clockTolerance: Double = 86_400

  /// The transactions after one, up to another, without their changes; 0 for no limit.
  func transactions(
    after number: Int64,
    upTo last: Int64 = .max,
    limit: Int = 0,
    storeID: String
  ) throws -> [NSPersistentHistoryTransaction] {
    try connection.query(
      """
      SELECT t.Z_PK, t.ZTIMESTAMP, IFNULL(a.ZNAME, t.ZAUTHOR), IFNULL(b.ZNAME, t.ZBUNDLEID), \
      IFNULL(c.ZNAME, t.ZCONTEXTNAME), IFNULL(p.ZNAME, t.ZPROCESSID) FROM ATRANSACTION AS t \
      LEFT JOIN ATRANSACTIONSTRING AS a ON a.Z_PK = t.ZAUTHORTS \
      LEFT JOIN ATRANSACTIONSTRING AS b ON b.Z_PK = t.ZBUNDLEIDTS \
      LEFT JOIN ATRANSACTIONSTRING AS c ON c.Z_PK = t.ZCONTEXTNAMETS \
      LEFT JOIN ATRANSACTIONSTRING AS p ON p.Z_PK = t.ZPROCESSIDTS \
      WHERE t.Z_PK > ? AND t.Z_PK <= ? ORDER BY t.Z_PK LIMIT ?
      """,
      [.integer(number), .integer(last), .integer(limit > 0 ? Int64(limit) : -1)]
    ) { row in
      NSPersistentHistoryTransaction(
        timestamp: Date(timeIntervalSinceReferenceDate: row.double(1)),
        transactionNumber: row.int64(0),
        storeID: storeID,
        bundleID: row.text(3),
        processID: row.text(5),
        contextName: row.optionalText(4),
        author: row.optionalText(2)
      )
    }
  }
}
