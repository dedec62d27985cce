import Foundation
import WatershedSQLite

/// The rows that a batch request works on, in a temporary table of the writer's connection.
///
/// The request changes them with SQL over that table, so that no row is read out of the store and
/// written back. `SEQ` counts from 1 without gaps.
struct BatchKeys {
  static let table = "temp.ZBATCHKEYS"

  let connection: SQLiteConnection
  /// The columns of attribute values that the history keeps of deleted rows.
  private let tombstoneColumns: [String]

  /// Creates an empty table.
  init(_ connection: SQLiteConnection, tombstones: Int = 0) throws {
    self.connection = connection
    tombstoneColumns = (0..<tombstones).map { "S\($0)" }
    let columns = tombstoneColumns.map { ", \($0)" }.joined()
    try connection.execute("DROP TABLE IF EXISTS \(Self.table)")
    try connection.execute(
      "CREATE TABLE \(Self.table) (SEQ INTEGER PRIMARY KEY, ROOT INTEGER, ENT INTEGER, "
        + "PK INTEGER\(columns), UNIQUE (ROOT, PK))"
    )
  }

  /// Adds the keys and entity numbers that a SELECT returns, without duplicates.
  func insert(root: Int32, _ select: SQLFragment) throws {
    let statement = try connection.makeStatement(
      "INSERT OR IGNORE INTO \(Self.table) (ROOT, PK, ENT) SELECT \(root), * FROM (\(select.sql))"
    )
    for (index, value) in select.bindings.enumerated() {
      RowCoding.bind(value, to: statement, at: index + 1)
    }
    try statement.run()
  }

  /// The number of rows.
  func count() throws -> Int64 {
    guard case .integer(let count)? = try connection.scalar("SELECT COUNT(*) FROM \(Self.table)")
    else { return 0 }
    return count
  }

  /// The entity numbers of the rows after a `SEQ`.
  func entityNumbers(after place: Int64 = 0) throws -> [Int32] {
    try connection.query(
      "SELECT DISTINCT ENT FROM \(Self.table) WHERE SEQ > ? ORDER BY ENT",
      [.integer(place)]
    ) { Int32(truncatingIfNeeded: $0.int64(0)) }
  }

  /// The rows in the order of `SEQ`.
  func references() throws -> [RowReference] {
    try connection.query("SELECT ENT, PK FROM \(Self.table) ORDER BY SEQ") { row in
      RowReference(entityNumber: Int32(truncatingIfNeeded: row.int64(0)), key: row.int64(1))
    }
  }

  /// A SELECT of the keys of one entity's rows, for IN.
  static func keys(of number: Int32, after place: Int64 = 0) -> String {
    "(SELECT PK FROM \(table) WHERE ENT = \(number)\(place > 0 ? " AND SEQ > \(place)" : ""))"
  }

  /// The condition that a row is not in the table.
  static func excludes(root: Int32, key: String) -> String {
    "NOT EXISTS (SELECT 1 FROM \(table) AS k WHERE k.ROOT = \(root) AND k.PK = \(key))"
  }

  /// Stores the values that the history preserves, before their rows are deleted.
  ///
  /// For a value with external storage it stores the value, not the column's bytes: these may name
  /// a file, which is removed with the row.
  func keepTombstones(of entity: EntityTable, _ external: ExternalData) throws {
    let preserved = zip(tombstoneColumns, entity.history.preserved.map(\.rowIndex))
      .map { (tombstone: $0, column: entity.columns[$1]) }
    let plain = preserved.filter { $0.column.form != .externalData }.map { kept in
      "\(kept.tombstone) = (SELECT \(kept.column.name) FROM \(entity.table) AS t WHERE t.Z_PK = PK)"
    }
    if !plain.isEmpty {
      try connection.run(
        "UPDATE \(Self.table) SET \(plain.joined(separator: ", ")) WHERE ENT = \(entity.number)"
      )
    }
    for kept in preserved where kept.column.form == .externalData {
      try keepValues(of: kept.column.name, as: kept.tombstone, entity, external)
    }
  }

  /// Stores the values of a column with external storage, one at a time, since they may be large.
  private func keepValues(
    of column: String,
    as tombstone: String,
    _ entity: EntityTable,
    _ external: ExternalData
  ) throws {
    let places = try connection.query(
      "SELECT SEQ, PK FROM \(Self.table) WHERE ENT = \(entity.number)"
    ) { (place: $0.int64(0), key: $0.int64(1)) }
    for (place, key) in places {
      let stored = try connection.scalar(
        "SELECT \(column) FROM \(entity.table) WHERE Z_PK = ?",
        [.integer(key)]
      )
      guard case .blob(let data)? = stored, let value = try external.read(data) else { continue }
      try connection.run(
        "UPDATE \(Self.table) SET \(tombstone) = ? WHERE SEQ = ?",
        [.blob(value), .integer(place)]
      )
    }
  }

  /// The history's changes of the rows: a run for each entity.
  func runs(
    _ kind: HistoryWriter.Kind,
    bits: (Int32) throws -> Data?
  ) throws -> HistoryRun {
    HistoryRun(
      kind: kind,
      references: try references(),
      parts: try entityNumbers().map { number in
        HistoryRun.Part(
          select: "SELECT ? + SEQ, ENT, PK"
            + tombstoneColumns.map { ", \($0)" }.joined()
            + " FROM \(Self.table) WHERE ENT = \(number)",
          base: -1,
          bits: try bits(number)
        )
      },
      tombstones: tombstoneColumns.count
    )
  }

  /// Drops the table after everything is written.
  func drop() throws {
    try connection.execute("DROP TABLE IF EXISTS \(Self.table)")
  }
}
