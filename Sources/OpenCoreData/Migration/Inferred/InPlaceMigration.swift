import Foundation
import WatershedSQLite

/// Converts the tables of one model to those of another with SQL, in one transaction of the
/// caller's.
///
/// Primary keys are kept, and with them every object identifier. A table that only gains columns is
/// altered; any other is created beside the old one and filled from it. Tables that are not part of
/// the model (history, mirroring) stay; the entities that they refer to are updated.
final class InPlaceMigration {
  let source: StoreSchema
  let destination: StoreSchema
  let difference: ModelDifference
  /// The tables of the file before the migration.
  let file: ExistingTables
  let connection: SQLiteConnection
  let external: ExternalData
  let now: Double

  /// Whether indexes and the removal of old tables are deferred to
  /// `finishDeferredLightweightMigration()`.
  var isDeferred = false
  /// The files of values that became inline.
  private(set) var files = ExternalData.Pending()
  /// The temporary names of the old tables while the new ones are created.
  private var asides: [String: String] = [:]
  /// Old tables that are kept under another name.
  private var renames: [String: String] = [:]
  private(set) var held: [HeldLink] = []
  private var tables: [TableMigration] = []

  init(
    from source: StoreSchema,
    to destination: StoreSchema,
    difference: ModelDifference,
    file: ExistingTables,
    connection: SQLiteConnection,
    external: ExternalData,
    now: Double
  ) {
    self.source = source
    self.destination = destination
    self.difference = difference
    self.file = file
    self.connection = connection
    self.external = external
    self.now = now
    held = Self.heldLinks(of: destination)
  }

  /// Runs every step; `report` is called with the completed part, from 0 to 1.
  func run(report: (Float) -> Void) throws {
    try registerFunctions()
    tables = destination.tables.map { TableMigration($0, self) }
    // They refer to the migration, which keeps the file open.
    defer { tables = [] }
    let joins = JoinMigration(self)
    var before: Set<Data> = []
    let steps: [() throws -> Void] = [
      requireNumbers,
      { before = try self.externalValues(of: self.source) },
      dropTriggers,
      { try self.setAside(joins) },
      { for table in self.tables { try table.fill() } },
      joins.fill,
      { try LinkMigration(self).fill() },
      dropOldTables,
      { try LinkMigration(self).clean() },
      requireValues,
      { try DerivedValues(schema: self.destination, now: self.now).fill(self.connection) },
      { try IndexMigration(self, kept: self.keptTables(joins)).run() },
      { try MetadataMigration(self).run() },
      { try self.abandonFiles(of: before) },
    ]
    for (index, step) in steps.enumerated() {
      try step()
      report(Float(index + 1) / Float(steps.count))
    }
  }

  // MARK: Look-ups

  /// The current name of a table of the source.
  func place(_ table: String) -> String { asides[table] ?? renames[table] ?? table }

  /// The columns of a source's table in the file, without those that every table has.
  func columns(of table: String) -> [String] {
    (file.columns[table] ?? []).filter { !["Z_PK", "Z_ENT", "Z_OPT"].contains($0) }
  }

  func move(_ table: String, to name: String) throws {
    try connection.execute("ALTER TABLE \(table) RENAME TO \(name)")
    renames[table] = name
  }

  private func setAside(_ table: String) throws {
    let place = DeferredWork.oldTablePrefix + table
    try connection.execute("DROP TABLE IF EXISTS \(place)")
    try connection.execute("ALTER TABLE \(table) RENAME TO \(place)")
    asides[table] = place
  }

  /// The entity's table in the source.
  func source(of entity: NSEntityDescription) -> EntityTable? {
    difference.source(of: entity).flatMap { source.entity(named: $0.name ?? "") }
  }

  func heldLinks(in table: String) -> [HeldLink] { held.filter { $0.table == table } }

  /// Whether the rows that a relationship refers to now are made of those that it referred to
  /// before.
  func leadsToSameRows(
    _ before: NSRelationshipDescription,
    _ after: NSRelationshipDescription
  ) -> Bool {
    guard let former = before.destinationEntity, let current = after.destinationEntity,
      let table = source.entity(named: former.name ?? "")?.table
    else { return false }
    return (current.ancestors.last ?? current).selfAndDescendants.contains {
      source(of: $0)?.table == table
    }
  }

  /// The column of the source's table that stored a to-many's owner.
  func formerHolder(of link: HeldLink, in table: String) -> String? {
    for before in difference.sources(of: link.relationship) where before.isToMany {
      if case .foreignKey(let place, let column, _, _) = formerLink(of: before), place == table {
        return column
      }
    }
    return nil
  }

  func formerOrder(of link: HeldLink, in table: String) -> String? {
    for before in difference.sources(of: link.relationship) where before.isToMany {
      if case .foreignKey(let place, _, let order?, _) = formerLink(of: before), place == table {
        return order
      }
    }
    return nil
  }

  func formerLink(of relationship: NSRelationshipDescription) -> ToManyLink? {
    relationship.declaringEntity
      .flatMap { source.entity(named: $0.name ?? "") }?
      .link(of: relationship)
  }

  private static func heldLinks(of schema: StoreSchema) -> [HeldLink] {
    var seen: Set<ObjectIdentifier> = []
    var result: [HeldLink] = []
    for entity in schema.entities {
      for (slot, link) in zip(entity.layout.toManys, entity.links) {
        guard case .foreignKey(let table, let column, let order, let owns) = link,
          seen.insert(ObjectIdentifier(slot.description)).inserted
        else { continue }
        result.append(
          HeldLink(
            relationship: slot.description,
            table: table,
            column: column,
            order: order,
            ownsColumn: owns
          )
        )
      }
    }
    return result
  }

  // MARK: Steps

  /// Triggers would run in every step of the migration; they are created again at the end.
  private func dropTriggers() throws {
    let tables = Set(source.tables.map(\.name) + source.joins.map(\.name))
    let objects = try connection.query(
      "SELECT type, name, tbl_name FROM sqlite_master WHERE type = 'trigger' "
        + "OR (type = 'table' AND name LIKE 'Z\\_RT\\_%' ESCAPE '\\' AND sql LIKE '%RTREE%')"
    ) { ($0.text(0), $0.text(1), $0.text(2)) }
    for (type, name, table) in objects where type == "trigger" && tables.contains(table) {
      try connection.execute("DROP TRIGGER \"\(name)\"")
    }
    for (type, name, _) in objects where type == "table" {
      try connection.execute("DROP TABLE \"\(name)\"")
    }
  }

  private func setAside(_ joins: JoinMigration) throws {
    for table in source.tables
    where !tables.contains(where: { $0.keepsOrigin && $0.origin == table.name }) {
      try setAside(table.name)
    }
    for join in source.joins where !joins.kept.contains(join.name) { try setAside(join.name) }
    for table in tables { try table.prepare() }
    try joins.prepare()
  }

  private func dropOldTables() throws {
    if isDeferred {
      // The names of their indexes are needed immediately.
      for place in asides.values.sorted() { try DeferredWork.dropIndexes(of: place, connection) }
    } else {
      try DeferredWork.dropOldTables(connection)
    }
    asides = [:]
  }

  /// The column values of a schema that name files of external values.
  private func externalValues(of schema: StoreSchema) throws -> Set<Data> {
    var values: Set<Data> = []
    for entity in schema.entities {
      for slot in entity.externalSlots {
        let column = entity.columns[slot].name
        let found = try connection.query(
          "SELECT \(column) FROM \(entity.table) WHERE Z_ENT = ? AND substr(\(column), 1, 1) = X'02'",
          [.integer(Int64(entity.number))]
        ) { $0.value(0) }
        for case .blob(let value) in found { values.insert(value) }
      }
    }
    return values
  }

  /// Deletes the files whose entity or attribute was removed.
  private func abandonFiles(of before: Set<Data>) throws {
    guard !before.isEmpty else { return }
    for value in before.subtracting(try externalValues(of: destination)) {
      external.abandon(value, files: &files)
    }
  }

  /// Throws before anything is changed if a number does not fit its new type.
  private func requireNumbers() throws {
    for feed in tables.flatMap(\.feeds) {
      for (attribute, column, type) in feed.numbers {
        let found = try connection.scalar(
          "SELECT CAST(\(column) AS TEXT) FROM \(feed.source.table) WHERE Z_ENT = ? "
            + "AND \(column) IS NOT NULL AND NOT \(NumberConversion.function)(\(column), ?) LIMIT 1",
          [.integer(Int64(feed.source.number)), .integer(Int64(type.rawValue))]
        )
        guard case .text(let value)? = found else { continue }
        throw NumberConversion.refusal(value, attribute, feed.destination.name)
      }
    }
  }

  /// Throws if a required attribute has no value, because the new model could not save such an
  /// object.
  private func requireValues() throws {
    for feed in tables.flatMap(\.feeds) {
      for (attribute, column) in feed.demands {
        let found = try connection.scalar(
          "SELECT 1 FROM \(feed.destination.table) WHERE Z_ENT = ? AND \(column) IS NULL LIMIT 1",
          [.integer(Int64(feed.destination.number))]
        )
        guard found != nil else { continue }
        throw MigrationError.make(
          NSMigrationError,
          [
            "reason":
              "Validation error missing attribute values on mandatory destination attribute",
            "entity": feed.destination.name,
            "attribute": attribute,
          ]
        )
      }
    }
  }

  private func keptTables(_ joins: JoinMigration) -> Set<String> {
    Set(tables.filter(\.keepsOrigin).map(\.table.name)).union(joins.kept)
  }

  private func registerFunctions() throws {
    try PredicateSQLFunctions.register(on: connection)
    try connection.register(function: NumberConversion.function, argumentCount: 2) { arguments in
      guard case .integer(let code) = arguments[1],
        let type = NSAttributeType(rawValue: UInt(code))
      else { return .integer(0) }
      return .integer(NumberConversion.fits(arguments[0], type) ? 1 : 0)
    }
    // The connection retains the function: a strong reference would keep both alive, and the file
    // open.
    try connection.register(
      function: ColumnSource.externalFunction,
      argumentCount: 2,
      deterministic: false
    ) { [unowned self] arguments in
      guard case .blob(let data) = arguments[0] else { return arguments[0] }
      if arguments[1] == .integer(1) { return .blob(try external.stored(data, files: &files)) }
      // A value whose file is missing is kept as it is.
      guard let value = try external.read(data) else { return .null }
      external.abandon(data, files: &files)
      return .blob(value)
    }
  }
}
