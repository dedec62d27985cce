import WatershedSQLite

/// Creates the indexes and triggers that a new store of the model would have.
///
/// Indexes of tables that are kept stay if the model has them.
struct IndexMigration {
  private let migration: InPlaceMigration
  private let kept: Set<String>

  init(_ migration: InPlaceMigration, kept: Set<String>) {
    self.migration = migration
    self.kept = kept
  }

  func run() throws {
    let schema = migration.destination
    let connection = migration.connection
    let statements = Self.statements(of: schema)
    let wanted = Set(statements.map(Self.normalized))
    var present: Set<String> = []
    let found = try connection.query(
      "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ) { ($0.text(0), $0.text(1), $0.text(2)) }
    for (name, table, sql) in found where kept.contains(table) {
      if wanted.contains(Self.normalized(sql)) {
        present.insert(Self.normalized(sql))
      } else {
        try connection.execute("DROP INDEX \"\(name)\"")
      }
    }
    for statement in statements
    where !present.contains(Self.normalized(statement))
      && !(migration.isDeferred && DeferredWork.canWait(statement))
    {
      try connection.execute(statement)
    }
    try fillTrees()
    for trigger in DerivationTriggers(schema: schema).all() { try connection.execute(trigger) }
  }

  /// All statements except tables and the triggers of derived attributes.
  static func statements(of schema: StoreSchema) -> [String] {
    var statements = schema.tables.flatMap(SchemaStatements.keyIndexes)
    statements += schema.joins.map(SchemaStatements.index)
    for entity in schema.entities { statements += AttributeIndexes(schema: schema).all(of: entity) }
    return statements
  }

  /// Writes each row unchanged, so that the trees' own triggers fill them.
  private func fillTrees() throws {
    for entity in migration.destination.entities {
      for index in entity.layout.entity.indexes {
        guard index.elements.contains(where: { $0.collationType == .rTree }),
          let column = index.elements.first?.propertyName.flatMap(entity.columnName)
        else { continue }
        let numbers = entity.numbers.map(String.init).joined(separator: ", ")
        try migration.connection.run(
          "UPDATE \(entity.table) SET \(column) = \(column) WHERE Z_ENT IN (\(numbers))"
        )
      }
    }
  }

  /// An index's SQL in a form that is equal for equal indexes, regardless of how it was written.
  static func normalized(_ sql: String) -> String {
    sql.replacing("IF NOT EXISTS ", with: "").filter { !$0.isWhitespace && $0 != "\"" }
  }
}
