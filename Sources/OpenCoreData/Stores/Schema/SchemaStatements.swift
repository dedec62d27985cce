import Foundation

/// The statements that create a new store's tables, as Core Data writes them.
struct SchemaStatements {
  let schema: StoreSchema
  let hasHistory: Bool

  static let bookkeeping = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, "
      + "Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  func all() -> [String] {
    var result = schema.tables.map(Self.table)
    result += schema.joins.map(Self.table)
    result += schema.tables.flatMap(Self.keyIndexes)
    result += schema.joins.map(Self.index)
    for entity in schema.entities { result += AttributeIndexes(schema: schema).all(of: entity) }
    result += DerivationTriggers(schema: schema).all()
    if hasHistory { result += HistoryTables.statements(tombstones: schema.tombstoneCount) }
    return result + Self.bookkeeping
  }

  static func table(_ table: RootTable) -> String {
    let columns =
      ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"]
      + table.columns.map { "\($0.name) \($0.type)" }
    return "CREATE TABLE \(table.name) ( \(columns.joined(separator: ", ")) )"
  }

  static func table(_ join: JoinTable) -> String {
    var columns = ["\(join.sourceColumn) INTEGER", "\(join.destinationColumn) INTEGER"]
    if join.isReflexive { columns.reverse() }
    if let order = join.inverseOrderColumn { columns.append("\(order) INTEGER") }
    if let order = join.orderColumn { columns.append("\(order) INTEGER") }
    let key =
      join.isReflexive
      ? "\(join.destinationColumn), \(join.sourceColumn)"
      : "\(join.sourceColumn), \(join.destinationColumn)"
    columns.append("PRIMARY KEY (\(key))")
    return "CREATE TABLE \(join.name) ( \(columns.joined(separator: ", ")) )"
  }

  static func index(_ join: JoinTable) -> String {
    let (first, second) =
      join.isReflexive
      ? (join.destinationColumn, join.sourceColumn) : (join.sourceColumn, join.destinationColumn)
    return "CREATE INDEX \(join.name)_\(second)_INDEX ON \(join.name) (\(second), \(first))"
  }

  static func keyIndexes(_ table: RootTable) -> [String] {
    var result = table.columns.filter(\.isIndexedKey).map { column in
      "CREATE INDEX \(table.name)_\(column.name)_INDEX ON \(table.name) (\(column.name))"
    }
    if table.hasSubentities {
      result.append("CREATE INDEX \(table.name)_Z_ENT_INDEX ON \(table.name) (Z_ENT)")
    }
    return result
  }
}

extension StoreSchema {
  /// The number of tombstone columns of the largest entity.
  var tombstoneCount: Int { entities.map(\.history.preserved.count).max() ?? 0 }
}
