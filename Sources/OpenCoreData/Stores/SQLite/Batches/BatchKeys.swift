import Foundation
import WatershedSQLite

/// The rows that a batch request works on, in a temporary table of the writer's connection.
///
/// What the request does to them is SQL over that table, so that nothing is carried out of the
/// store and back for each row. `SEQ` counts from 1 without gaps.
struct BatchKeys {
  static let table = "temp.ZBATCHKEYS"

  let connection: SQLiteConnection
  /// How many attribute values a row's history may keep.
  private let tombstoneColumns: [String]

  /// Makes an empty table.
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

  /// Adds what a SELECT of keys and entity numbers finds, except what is there already.
  func insert(root: Int32, _ select: SQLFragment) throws {
    let statement = try connection.makeStatement(
      "INSERT OR IGNORE INTO \(Self.table) (ROOT, PK, ENT) SELECT \(root), * FROM (\(select.sql))"
    )
    for (index, value) in select.bindings.enumerated() {
      RowCoding.bind(value, to: statement, at: index + 1)
    }
    try statement.run()
  }

  /// How many rows there are.
  func count() throws -> Int64 {
    guard case .integer(let count)? = try connection.scalar("SELECT COUNT(*) FROM \(Self.table)")
    else { return 0 }
    return count
  }

  /// The entities of the rows behind a place in the table.
  func entityNumbers(after place: Int64 = 0) throws -> [Int32] {
    try connection.query(
      "SELECT DISTINCT ENT FROM \(Self.table) WHERE SEQ > ? ORDER BY ENT",
      [.integer(place)]
    ) { Int32(truncatingIfNeeded: $0.int64(0)) }
  }

  /// The rows in order.
  func references() throws -> [RowReference] {
    try connection.query("SELECT ENT, PK FROM \(Self.table) ORDER BY SEQ") { row in
      RowReference(entityNumber: Int32(truncatingIfNeeded: row.int64(0)), key: row.int64(1))
    }
  }

  /// The keys of the rows of one entity, for IN.
  static func keys(of number: Int32, after place: Int64 = 0) -> String {
    "(SELECT PK FROM \(table) WHERE ENT = \(number)\(place > 0 ? " AND SEQ > \(place)" : ""))"
  }

  /// A condition: the row is not among those of the table.
  static func excludes(root: Int32, key: String) -> String {
    "NOT EXISTS (SELECT 1 FROM \(table) AS k WHERE k.ROOT = \(root) AND k.PK = \(key))"
  }

  /// Keeps the values that the history preserves, before their rows go.
  func keepTombstones(of entity: EntityTable) throws {
    let preserved = entity.history.preserved.prefix(tombstoneColumns.count)
    guard !preserved.isEmpty else { return }
    let terms = preserved.enumerated().map { index, kept in
      "\(tombstoneColumns[index]) = (SELECT \(entity.columns[kept.rowIndex].name) "
        + "FROM \(entity.table) AS t WHERE t.Z_PK = PK)"
    }
    try connection.run(
      "UPDATE \(Self.table) SET \(terms.joined(separator: ", ")) WHERE ENT = \(entity.number)"
    )
  }

  /// What the history says of the rows: a run for each entity.
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

  /// Empties the table when everything is written.
  func drop() throws {
    try connection.execute("DROP TABLE IF EXISTS \(Self.table)")
  }
}
