import WatershedSQLite

/// Creates one table of the destination.
struct TableMigration {
  let table: RootTable
  let feeds: [EntityFeed]
  /// The source's table that all rows come from; nil for a new table.
  let origin: String?
  /// Whether the table is the origin with additional columns.
  let keepsOrigin: Bool
  private let migration: InPlaceMigration
  private let removed: [EntityTable]

  init(_ table: RootTable, _ migration: InPlaceMigration) {
    self.table = table
    self.migration = migration
    let entities = migration.destination.entities.filter { $0.rootNumber == table.rootNumber }
    let feeds = entities.compactMap { entity in
      migration.source(of: entity.layout.entity).map { EntityFeed($0, entity, migration) }
    }
    self.feeds = feeds
    let origin = feeds.first?.source.table
    self.origin = origin
    let former = migration.source.entities.filter { $0.table == origin }
    removed = former.filter { entity in !feeds.contains { $0.source.number == entity.number } }
    keepsOrigin = Self.keeps(table, origin: origin, feeds: feeds, removed: removed, migration)
  }

  private static func keeps(
    _ table: RootTable,
    origin: String?,
    feeds: [EntityFeed],
    removed: [EntityTable],
    _ migration: InPlaceMigration
  ) -> Bool {
    guard let origin else { return false }
    // The name may still be in use by another table of the source.
    let isFree =
      origin == table.name || migration.source.tables.allSatisfy { $0.name != table.name }
    let present = migration.columns(of: origin)
    // An entity that moves to another table reads its rows from here.
    let areGone = removed.allSatisfy { entity in
      migration.difference.destination(of: entity.layout.entity) == nil
    }
    let names = Set(table.columns.map(\.name))
    let isSubset = present.allSatisfy(names.contains)
    let areInPlace = feeds.allSatisfy { feed in
      feed.columns.allSatisfy { column, source in
        source.name.map { $0 == column } ?? !present.contains(column)
      }
    }
    // The column has the affinity of its former type, which would convert new values.
    let keepsTypes = feeds.allSatisfy { feed in
      !feed.columns.values.contains { if case .number = $0 { true } else { false } }
    }
    return isFree && areGone && isSubset && areInPlace && keepsTypes
  }

  /// Creates the table, or renames the old one and adds its columns.
  func prepare() throws {
    guard keepsOrigin, let origin else {
      try migration.connection.execute(SchemaStatements.table(table))
      return
    }
    if origin != table.name { try migration.move(origin, to: table.name) }
    let present = migration.columns(of: origin)
    for column in table.columns where !present.contains(column.name) {
      try migration.connection.execute(
        "ALTER TABLE \(table.name) ADD COLUMN \(column.name) \(column.type)"
      )
    }
  }

  func fill() throws {
    if keepsOrigin { try alterRows() } else { try copyRows() }
  }

  private func copyRows() throws {
    for feed in feeds {
      let columns = feed.columns.keys.sorted()
      let values = columns.map { feed.columns[$0]?.sql ?? "NULL" }
      let names = (["Z_PK", "Z_ENT", "Z_OPT"] + columns).joined(separator: ", ")
      let sources = (["Z_PK", "\(feed.destination.number)", "Z_OPT"] + values)
        .joined(separator: ", ")
      try migration.connection.run(
        "INSERT INTO \(table.name) (\(names)) SELECT \(sources) "
          + "FROM \(migration.place(feed.source.table)) WHERE Z_ENT = \(feed.source.number)"
      )
    }
  }

  private func alterRows() throws {
    if !removed.isEmpty {
      let numbers = removed.map { "\($0.number)" }.joined(separator: ", ")
      try migration.connection.run("DELETE FROM \(table.name) WHERE Z_ENT IN (\(numbers))")
    }
    for feed in feeds {
      for (column, source) in feed.columns.sorted(by: { $0.key < $1.key }) {
        let condition: String
        switch source {
        case .column, .value(.null): continue
        case .defaulted: condition = " AND \(column) IS NULL"
        case .external, .number: condition = " AND \(column) IS NOT NULL"
        case .value: condition = ""
        }
        try update("\(column) = \(source.sql)", of: feed, condition)
      }
      // The column of a property that moved away must not be reused with its old values.
      let stale = feed.source.columns.filter(\.isStored).map(\.name)
        .filter { feed.columns[$0] == nil && !isWrittenLater($0, feed) }
      for column in stale { try update("\(column) = NULL", of: feed, "") }
    }
    let renumbered = feeds.filter { $0.source.number != $0.destination.number }
    guard !renumbered.isEmpty else { return }
    let cases = renumbered.map { "WHEN \($0.source.number) THEN \($0.destination.number)" }
      .joined(separator: " ")
    let numbers = renumbered.map { "\($0.source.number)" }.joined(separator: ", ")
    try migration.connection.run(
      "UPDATE \(table.name) SET Z_ENT = CASE Z_ENT \(cases) END WHERE Z_ENT IN (\(numbers))"
    )
  }

  /// Derived values are computed at the end.
  private func isWrittenLater(_ column: String, _ feed: EntityFeed) -> Bool {
    feed.destination.columns.contains { $0.name == column && $0.isDerived }
  }

  private func update(_ term: String, of feed: EntityFeed, _ condition: String) throws {
    try migration.connection.run(
      "UPDATE \(table.name) SET \(term) WHERE Z_ENT = \(feed.source.number)\(condition)"
    )
  }
}
