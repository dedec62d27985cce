import WatershedSQLite

/// Fills the key and order columns that have no column in the source, and removes references to
/// rows that no longer exist.
struct LinkMigration {
  private let migration: InPlaceMigration
  private let schema: StoreSchema
  private let connection: SQLiteConnection

  init(_ migration: InPlaceMigration) {
    self.migration = migration
    schema = migration.destination
    connection = migration.connection
  }

  // MARK: Filling

  func fill() throws {
    for (entity, slot, column) in ownToOnes() {
      for edges in newEdges(of: slot.description) {
        try fill(column, of: entity.table, owner: "a", value: "b", edges)
      }
    }
    for link in migration.held {
      let edges = migration.formerEdges(of: link.relationship)
      if link.ownsColumn {
        for edges in edges {
          try fill(link.column, of: link.table, owner: "b", value: "a", edges)
        }
      }
      if let order = link.order { try fillOrder(order, of: link, edges) }
    }
  }

  /// The links of a new to-one whose inverse existed before it.
  private func newEdges(of relationship: NSRelationshipDescription) -> [EdgeQuery] {
    let isKept = migration.difference.sources(of: relationship).contains {
      !$0.isToMany && migration.leadsToSameRows($0, relationship)
    }
    return isKept ? [] : migration.formerEdges(of: relationship)
  }

  /// If several owners refer to one row, the first by key gets it.
  private func fill(
    _ column: String,
    of table: String,
    owner: String,
    value: String,
    _ edges: EdgeQuery
  ) throws {
    try connection.run(
      "UPDATE \(table) SET \(column) = e.v FROM (SELECT \(owner) AS k, MIN(\(value)) AS v "
        + "FROM (\(edges.sql)) GROUP BY \(owner)) AS e "
        + "WHERE \(table).Z_PK = e.k AND \(table).\(column) IS NULL"
    )
  }

  private func fillOrder(_ order: String, of link: HeldLink, _ edges: [EdgeQuery]) throws {
    for edges in edges where edges.isOrdered {
      try connection.run(
        "UPDATE \(link.table) SET \(order) = e.o FROM (\(edges.sql)) AS e "
          + "WHERE \(link.table).Z_PK = e.b AND \(link.table).\(link.column) = e.a "
          + "AND \(link.table).\(order) IS NULL"
      )
    }
    try connection.run(
      "UPDATE \(link.table) SET \(order) = w.n FROM (SELECT Z_PK AS k, ROW_NUMBER() OVER "
        + "(PARTITION BY \(link.column) ORDER BY Z_PK) * \(OrderKeys.gap) AS n "
        + "FROM \(link.table) WHERE \(link.column) IS NOT NULL) AS w "
        + "WHERE w.k = \(link.table).Z_PK AND \(link.table).\(order) IS NULL"
    )
  }

  // MARK: Cleaning

  func clean() throws {
    let changes = migration.difference.changesHierarchies
    for (entity, slot, column) in ownToOnes() {
      guard let target = schema.entity(slot.destinationEntity) else { continue }
      let numbers = target.numbers.map(String.init).joined(separator: ", ")
      if changes || isNarrower(slot.description) {
        try connection.run(
          "UPDATE \(entity.table) SET \(column) = NULL WHERE \(column) IS NOT NULL AND NOT EXISTS "
            + "(SELECT 1 FROM \(target.table) AS d WHERE d.Z_PK = \(entity.table).\(column) "
            + "AND d.Z_ENT IN (\(numbers)))"
        )
      }
      if case .keyAndEntity(let companion, true) = form(of: slot, in: entity) {
        try connection.run(
          "UPDATE \(entity.table) SET \(companion) = (SELECT d.Z_ENT FROM \(target.table) AS d "
            + "WHERE d.Z_PK = \(entity.table).\(column)) "
            + "WHERE \(column) IS NOT NULL OR \(companion) IS NOT NULL"
        )
      }
    }
    guard changes else { return }
    for link in migration.held {
      guard let owner = link.relationship.declaringEntity.flatMap(schema.entity) else { continue }
      if link.ownsColumn {
        try connection.run(
          "UPDATE \(link.table) SET \(link.column) = NULL WHERE \(link.column) IS NOT NULL "
            + "AND NOT EXISTS (SELECT 1 FROM \(owner.table) AS d "
            + "WHERE d.Z_PK = \(link.table).\(link.column))"
        )
      }
      if let order = link.order {
        try connection.run(
          "UPDATE \(link.table) SET \(order) = NULL "
            + "WHERE \(link.column) IS NULL AND \(order) IS NOT NULL"
        )
      }
    }
    for join in schema.joins { try clean(join) }
  }

  private func clean(_ join: JoinTable) throws {
    guard let source = join.relationship.declaringEntity.flatMap(schema.entity),
      let destination = join.relationship.destinationEntity.flatMap(schema.entity)
    else { return }
    for (column, entity) in [(join.sourceColumn, source), (join.destinationColumn, destination)] {
      let numbers = entity.numbers.map(String.init).joined(separator: ", ")
      try connection.run(
        "DELETE FROM \(join.name) WHERE NOT EXISTS (SELECT 1 FROM \(entity.table) AS d "
          + "WHERE d.Z_PK = \(join.name).\(column) AND d.Z_ENT IN (\(numbers)))"
      )
    }
  }

  /// Whether the relationship refers to fewer entities than before.
  private func isNarrower(_ relationship: NSRelationshipDescription) -> Bool {
    migration.difference.sources(of: relationship).contains { former in
      former.destinationEntity.flatMap(migration.difference.destination)
        !== relationship.destinationEntity
    }
  }

  /// Each to-one column once, with the entity that declares it.
  private func ownToOnes() -> [(EntityTable, RelationshipSlot, String)] {
    schema.entities.flatMap { entity in
      entity.layout.toOnes
        .filter { $0.description.declaringEntity === entity.layout.entity }
        .compactMap { slot in entity.columnName(of: slot.name).map { (entity, slot, $0) } }
    }
  }

  private func form(of slot: RelationshipSlot, in entity: EntityTable) -> SlotColumn.Form {
    entity.columns[entity.layout.attributes.count + slot.index].form
  }
}
