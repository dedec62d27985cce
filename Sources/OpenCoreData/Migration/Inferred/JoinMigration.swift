import WatershedSQLite

/// Creates the tables of many-to-many relationships.
struct JoinMigration {
  /// The join tables that are kept unchanged.
  let kept: Set<String>
  private let migration: InPlaceMigration

  init(_ migration: InPlaceMigration) {
    self.migration = migration
    kept = Set(
      migration.destination.joins.filter { Self.isUnchanged($0, migration) }.map(\.name)
    )
  }

  /// Whether a table has the same columns, with the keys of the same rows.
  private static func isUnchanged(_ join: JoinTable, _ migration: InPlaceMigration) -> Bool {
    let formers = migration.difference.sources(of: join.relationship)
    guard formers.count == 1, let former = formers.first,
      migration.leadsToSameRows(former, join.relationship),
      let old = migration.source.joins.first(where: { $0.name == join.name })
    else { return false }
    if let inverse = join.relationship.inverseRelationship, !join.isReflexive {
      let formers = migration.difference.sources(of: inverse)
      guard formers.count == 1, former.inverseRelationship === formers.first else { return false }
    }
    let columns = Set(
      [join.sourceColumn, join.destinationColumn, join.orderColumn, join.inverseOrderColumn]
        .compactMap { $0 }
    )
    guard Set(migration.columns(of: join.name)) == columns else { return false }
    return old.relationship === former
      ? old.sourceColumn == join.sourceColumn && old.orderColumn == join.orderColumn
        && old.inverseOrderColumn == join.inverseOrderColumn
      : old.relationship.inverseRelationship === former
        && old.destinationColumn == join.sourceColumn
        && old.orderColumn == join.inverseOrderColumn
        && old.inverseOrderColumn == join.orderColumn
  }

  func prepare() throws {
    for join in migration.destination.joins where !kept.contains(join.name) {
      try migration.connection.execute(SchemaStatements.table(join))
    }
  }

  func fill() throws {
    for join in migration.destination.joins where !kept.contains(join.name) {
      let edges = migration.formerEdges(of: join.relationship)
      guard !edges.isEmpty else { continue }
      var columns = [join.sourceColumn, join.destinationColumn]
      var values = ["a", "b"]
      if let order = join.orderColumn {
        columns.append(order)
        values.append(Self.order("o", of: "b", among: "a"))
      }
      if let order = join.inverseOrderColumn {
        columns.append(order)
        values.append(Self.order("p", of: "a", among: "b"))
      }
      let union = edges.map { "SELECT a, b, o, p FROM (\($0.sql))" }
        .joined(separator: " UNION ALL ")
      try migration.connection.run(
        "INSERT OR IGNORE INTO \(join.name) (\(columns.joined(separator: ", "))) "
          + "SELECT \(values.joined(separator: ", ")) FROM (\(union))"
      )
    }
  }

  /// The order key that a link had, or one in the order of the keys.
  private static func order(_ place: String, of key: String, among group: String) -> String {
    "IFNULL(\(place), ROW_NUMBER() OVER (PARTITION BY \(group) ORDER BY \(key)) * \(OrderKeys.gap))"
  }
}
