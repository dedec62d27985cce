import Effects
import Foundation
import WatershedSQLite

/// Writes one transaction's rows of the history tables.
struct HistoryWriter {
  let connection: SQLiteConnection
  let effects: Effects

  /// The kinds of `ACHANGE.ZCHANGETYPE`.
  enum Kind: Int64 {
    case insert = 0
    case update = 1
    case delete = 2
  }

  /// Writes a record and returns the transaction's number; nil if no change is left.
  func write(
    _ given: HistoryRecord,
    author: String?,
    contextName: String?,
    at time: Double
  ) throws -> Int64? {
    let record = given.settled()
    guard !record.isEmpty else { return nil }
    let process = ProcessInfo.processInfo.processName
    let number = try take(1, of: HistoryTables.transaction, in: "ATRANSACTION")
    try connection.run(
      """
      INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZBUNDLEIDTS, ZCONTEXTNAMETS, \
      ZPROCESSIDTS, ZTIMESTAMP) VALUES (?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .integer(number), .integer(Int64(HistoryTables.transaction)),
        try intern(author), try intern(Bundle.main.bundleIdentifier ?? process),
        try intern(contextName), try intern(process), .real(try timestamp(time, of: number)),
      ]
    )
    try writeChanges(record, transaction: number)
    return number
  }

  /// A time that no transaction before has: a reader that fetches the history after the time of the last
  /// transaction it knows would miss a second one of that time.
  private func timestamp(_ time: Double, of number: Int64) throws -> Double {
    let former = try connection.scalar(
      "SELECT ZTIMESTAMP FROM ATRANSACTION WHERE Z_PK = ?",
      [.integer(number - 1)]
    )
    guard case .real(let last)? = former, last >= time, last - time < Self.clockResolution else {
      return time
    }
    return last.nextUp
  }

  /// The seconds by which a clock may seem behind; one that is behind by more was set back.
  private static let clockResolution = 0.001

  private func writeChanges(_ record: HistoryRecord, transaction: Int64) throws {
    let count = record.inserted.count + record.updated.count + record.deleted.count
    let batched = record.runs.reduce(0) { $0 + $1.references.count }
    try writeRuns(record.runs, count: batched, transaction: transaction)
    guard count > 0 else { return }
    var key = try take(count, of: HistoryTables.change, in: "ACHANGE")
    let single = try connection.statement(Self.insertion)
    func write(_ reference: RowReference, _ kind: Kind, bits: Data?) throws {
      bind(key, reference, kind, bits, transaction, to: single, from: 1)
      try single.run()
      key += 1
    }
    var inserted = record.inserted[...]
    if inserted.count >= InsertBlock.worthwhile {
      let block = try connection.statement(Self.insertionOfBlock)
      while inserted.count >= InsertBlock.rows {
        for (index, reference) in inserted.prefix(InsertBlock.rows).enumerated() {
          bind(key, reference, .insert, nil, transaction, to: block, from: 1 + index * Self.width)
          key += 1
        }
        try block.run()
        inserted = inserted.dropFirst(InsertBlock.rows)
      }
    }
    for reference in inserted { try write(reference, .insert, bits: nil) }
    for update in record.updated { try write(update.reference, .update, bits: update.bits) }
    for (reference, tombstone) in record.deleted {
      try write(reference, .delete, bits: nil)
      guard !tombstone.isEmpty else { continue }
      let terms = tombstone.indices.map { "ZTOMBSTONE\($0) = ?" }.joined(separator: ", ")
      try connection.run(
        "UPDATE ACHANGE SET \(terms) WHERE Z_PK = ?",
        tombstone + [.integer(key - 1)]
      )
    }
  }

  private static let columns = """
    INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS) VALUES
    """
  private static let values = "(?, \(HistoryTables.change), ?, ?, ?, ?, ?)"
  private static let insertion = "INSERT \(columns) \(values)"
  private static let insertionOfBlock = "INSERT OR FAIL \(columns) \(InsertBlock.values(values))"
  /// The number of parameters of a row.
  private static let width = 6

  private func bind(
    _ key: Int64,
    _ reference: RowReference,
    _ kind: Kind,
    _ bits: Data?,
    _ transaction: Int64,
    to statement: SQLiteStatement,
    from place: Int
  ) {
    statement.bind(key, at: place)
    statement.bind(kind.rawValue, at: place + 1)
    statement.bind(Int64(reference.entityNumber), at: place + 2)
    statement.bind(reference.key, at: place + 3)
    statement.bind(transaction, at: place + 4)
    if let bits { statement.bind(bits, at: place + 5) } else { statement.bindNull(at: place + 5) }
  }

  /// One statement writes the rows of a whole batch.
  private func writeRuns(_ runs: [HistoryRun], count: Int, transaction: Int64) throws {
    guard count > 0 else { return }
    var key = try take(count, of: HistoryTables.change, in: "ACHANGE")
    for run in runs {
      let stones = (0..<run.tombstones).map { ", ZTOMBSTONE\($0)" }.joined()
      for part in run.parts {
        // The history's own columns precede the row's: a SELECT around the run's.
        let statement = try connection.makeStatement(
          """
          INSERT INTO ACHANGE (Z_PK, ZENTITY, ZENTITYPK\(stones), Z_ENT, ZCHANGETYPE, \
          ZTRANSACTIONID, ZCOLUMNS) SELECT *, \(HistoryTables.change), \(run.kind.rawValue), ?2, ?3 \
          FROM (\(part.select.replacing("?", with: "?1", maxReplacements: 1)))
          """
        )
        statement.bind(key + part.base, at: 1)
        statement.bind(transaction, at: 2)
        if let bits = part.bits { statement.bind(bits, at: 3) }
        try statement.run()
      }
      key += Int64(run.references.count)
    }
  }

  /// The key of a text in ATRANSACTIONSTRING.
  private func intern(_ text: String?) throws -> SQLiteValue {
    guard let text else { return .null }
    let known = try connection.scalar(
      "SELECT Z_PK FROM ATRANSACTIONSTRING WHERE ZNAME = ?",
      [.text(text)]
    )
    if let known { return known }
    let key = try take(1, of: HistoryTables.string, in: "ATRANSACTIONSTRING")
    try connection.run(
      "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (?, ?, ?)",
      [.integer(key), .integer(Int64(HistoryTables.string)), .text(text)]
    )
    return .integer(key)
  }

  /// Reserves keys and returns the first.
  ///
  /// The counter is kept even if the history was deleted, so that a token never names two
  /// transactions.
  private func take(_ count: Int, of entity: Int32, in table: String) throws -> Int64 {
    let counted = try connection.scalar(
      "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
      [.integer(Int64(entity))]
    )
    let held = try connection.scalar("SELECT MAX(Z_PK) FROM \(table)")
    var last: Int64 = 0
    if case .integer(let value)? = counted { last = value }
    if case .integer(let value)? = held { last = max(last, value) }
    try connection.run(
      "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?",
      [.integer(last + Int64(count)), .integer(Int64(entity))]
    )
    return last + 1
  }
}
