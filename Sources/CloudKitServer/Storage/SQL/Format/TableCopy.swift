import Foundation

/// Copies all rows of one engine's tables into the empty tables of another.
///
/// Both are defined by the same `StorageTables`, so a copy can be restored to either engine.
struct TableCopy<Source: SQLSession, Target: SQLSession> {
  let source: Source
  let target: Target

  func run() throws {
    for table in StorageTables.directory { try copy(table, in: nil) }
    let partitions = try source.query("SELECT partition FROM partitions ORDER BY partition", []) {
      $0.int64(0)
    }
    // One partition after the other: on a cluster each one is on one machine, which reads it by its
    // own index.
    for partition in partitions {
      for table in StorageTables.partitioned { try copy(table, in: partition) }
    }
    // Events are for running servers; a copy has none.
    for name in ["secret", "incarnation", "fingerprints"] {
      guard let value = try ServiceFacts(session: source)[name] else { continue }
      try ServiceFacts(session: target).set(name, value)
    }
    try ServiceFacts(session: target).copyBranches(from: ServiceFacts(session: source))
  }

  /// Whether the target is empty, so that the copy is not mixed with other rows; without partitions
  /// the partition tables are empty too.
  func isTargetEmpty() throws -> Bool {
    try StorageTables.directory.allSatisfy { table in
      try target.query("SELECT 1 FROM \(table.name) LIMIT 1", []) { _ in }.isEmpty
    }
  }

  /// Page by page in the order of the key: a table can be larger than the memory.
  private func copy(_ table: StorageTable, in partition: Int64?) throws {
    let names = table.columns.map(\.name).joined(separator: ", ")
    // Within a partition the rest of the key defines the order.
    let keys = table.primaryKey.filter { partition == nil || $0 != "partition" }
    let key = keys.joined(separator: ", ")
    let start: [SQLValue] = partition.map { [.integer($0)] } ?? []
    let places = keys.indices.map { "$\($0 + 1 + start.count)" }.joined(separator: ", ")
    let keyColumns = keys.compactMap { name in table.columns.firstIndex { $0.name == name } }
    var last: [SQLValue]?
    while true {
      var conditions = partition == nil ? [] : ["partition = $1"]
      if last != nil { conditions.append("(\(key)) > (\(places))") }
      let condition =
        conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
      let order = key.isEmpty ? "" : "ORDER BY \(key)"
      let values = start + (last ?? [])
      // The limit is a value: with a text for each size the source would prepare a statement for each.
      let page = "FROM \(table.name) \(condition) \(order) LIMIT $\(values.count + 1)"
      let size = try rowCount(of: page, table, values)
      let rows = try source.query("SELECT \(names) \(page)", values + [.integer(Int64(size))]) {
        row in table.columns.indices.map { Self.value(row, $0, table.columns[$0]) }
      }
      guard let row = rows.last else { return }
      try target.insert(into: table, .refused, rows)
      last = keyColumns.map { row[$0] }
      // Without a key there is one row at most.
      guard !keyColumns.isEmpty, rows.count == size else { return }
    }
  }

  /// The rows of the next page: as many as have few bytes together, at least one.
  private func rowCount(
    of page: String,
    _ table: StorageTable,
    _ values: [SQLValue]
  ) throws -> Int {
    let columns = table.columns.filter { $0.kind == .bytes }.map(\.name)
    guard !columns.isEmpty else { return Self.rowsPerPage }
    let length = columns.map { "COALESCE(LENGTH(\($0)), 0)" }.joined(separator: " + ")
    let most = SQLValue.integer(Int64(Self.rowsPerPage))
    let sizes = try source.query("SELECT \(length) \(page)", values + [most]) { $0.int64(0) }
    var bytes: Int64 = 0
    let fitting = sizes.prefix { size in
      bytes += size
      return bytes <= Self.bytesPerPage
    }
    return fitting.count == sizes.count ? Self.rowsPerPage : max(1, fitting.count)
  }

  private static var rowsPerPage: Int { 1000 }
  /// Bytes of values that are in memory at a time; one row may have more.
  private static var bytesPerPage: Int64 { 8 * 1_048_576 }

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
