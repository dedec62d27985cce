import Foundation

/// Brings all rows of one engine's tables into those of another, which are empty.
///
/// Both are made of the same `StorageTables`, so a copy of either is a copy for either.
struct TableCopy<Source: SQLSession, Target: SQLSession> {
  let source: Source
  let target: Target

  /// News of the last hour is for servers that run; a copy has none.
  private static var tables: [StorageTable] {
    StorageTables.directory + StorageTables.partitioned
  }

  func run() throws {
    for table in Self.tables { try copy(table) }
    for name in ["secret", "incarnation"] {
      guard let value = try ServiceFacts(session: source)[name] else { continue }
      try ServiceFacts(session: target).set(name, value)
    }
  }

  /// Whether the target has anything that a copy would be mixed with.
  func isTargetEmpty() throws -> Bool {
    try Self.tables.allSatisfy { table in
      try target.query("SELECT 1 FROM \(table.name) LIMIT 1", []) { _ in }.isEmpty
    }
  }

  /// Page after page in the order of the key: a table can be larger than the memory.
  private func copy(_ table: StorageTable) throws {
    let names = table.columns.map(\.name).joined(separator: ", ")
    let key = table.primaryKey.joined(separator: ", ")
    let places = table.primaryKey.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
    let size = table.hasLargeRows ? 100 : 1000
    let keyColumns = table.primaryKey.compactMap { name in
      table.columns.firstIndex { $0.name == name }
    }
    var last: [SQLValue]?
    while true {
      let condition = last == nil ? "" : "WHERE (\(key)) > (\(places))"
      let rows = try source.query(
        "SELECT \(names) FROM \(table.name) \(condition) ORDER BY \(key) LIMIT \(size)",
        last ?? []
      ) { row in table.columns.indices.map { Self.value(row, $0, table.columns[$0]) } }
      try target.insert(into: table, .refused, rows)
      guard rows.count == size, let row = rows.last else { return }
      last = keyColumns.map { row[$0] }
    }
  }

  private static func value(
    _ row: Source.Row,
    _ index: Int,
    _ column: StorageTable.Column
  ) -> SQLValue {
    switch column.kind {
    case .integer: .integer(row.int64(index))
    case .text: column.isOptional ? .optional(row.optionalText(index)) : .text(row.text(index))
    case .bytes: column.isOptional ? .optional(row.optionalBlob(index)) : .bytes(row.blob(index))
    }
  }
}
