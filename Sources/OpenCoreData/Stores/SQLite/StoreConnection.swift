import Foundation
import WatershedSQLite

/// A connection to a store's file with the statements that read and write rows.
///
/// Statements are found by the entity's index, not by their text: for a single row, hashing a long
/// text would cost as much as the look-up.
final class StoreConnection {
  let connection: SQLiteConnection
  let builder = RowBuilder()
  private var byKey: [SQLiteStatement?]
  private var inserts: [SQLiteStatement?]
  private var blocks: [SQLiteStatement?]
  private var deletes: [SQLiteStatement?]
  private var updates: [[(slots: [Int], statement: SQLiteStatement)]]
  private var cleanups: [[SQLiteStatement]?]
  private var referrers: [[SQLiteStatement]?]
  private var links: [LinkKey: SQLiteStatement] = [:]
  private var destinations: [DestinationKey: DestinationStatement] = [:]
  /// The statements by the entity's index and the number of its to-many.
  private var members: [[MembersStatement?]]
  /// The triggers of derived attributes report the rows here that they changed.
  private let affected = AffectedRows()

  init(connection: SQLiteConnection, entityCount: Int) throws {
    self.connection = connection
    SQLDebug.watch(connection)
    byKey = Array(repeating: nil, count: entityCount)
    inserts = byKey
    blocks = byKey
    deletes = byKey
    updates = Array(repeating: [], count: entityCount)
    cleanups = Array(repeating: nil, count: entityCount)
    referrers = cleanups
    members = Array(repeating: [], count: entityCount)
    try registerTriggerFunctions()
    try PredicateSQLFunctions.register(on: connection)
  }

  func selectByKey(_ entity: EntityTable) throws -> SQLiteStatement {
    if let kept = byKey[entity.index] { return kept }
    let made = try connection.makeStatement(
      "SELECT \(entity.plan.selection) FROM \(entity.table) AS t0 WHERE t0.Z_PK = ?"
    )
    byKey[entity.index] = made
    return made
  }

  func insert(_ entity: EntityTable) throws -> SQLiteStatement {
    if let kept = inserts[entity.index] { return kept }
    let made = try connection.makeStatement(entity.write.insert)
    inserts[entity.index] = made
    return made
  }

  /// The statement that inserts a block of rows.
  func insertBlock(_ entity: EntityTable) throws -> SQLiteStatement {
    if let kept = blocks[entity.index] { return kept }
    let made = try connection.makeStatement(entity.write.insertBlock)
    blocks[entity.index] = made
    return made
  }

  func delete(_ entity: EntityTable) throws -> SQLiteStatement {
    if let kept = deletes[entity.index] { return kept }
    let made = try connection.makeStatement(entity.write.delete)
    deletes[entity.index] = made
    return made
  }

  /// The statements that delete the links of a deleted row; each takes its key.
  func cleanup(_ entity: EntityTable) throws -> [SQLiteStatement] {
    if let kept = cleanups[entity.index] { return kept }
    let made = try entity.cleanup.map { try connection.makeStatement($0) }
    cleanups[entity.index] = made
    return made
  }

  /// The statements that find the rows that refer to deleted rows, in the order of the entity's referrers.
  func referrers(_ entity: EntityTable) throws -> [SQLiteStatement] {
    if let kept = referrers[entity.index] { return kept }
    let made = try entity.referrers.map { try connection.makeStatement($0.select) }
    referrers[entity.index] = made
    return made
  }

  func update(_ entity: EntityTable, slots: [Int]) throws -> SQLiteStatement {
    // There are few, and the last one is used most: comparing them is faster than hashing the
    // slots.
    if let place = updates[entity.index].lastIndex(where: { $0.slots == slots }) {
      return updates[entity.index][place].statement
    }
    let made = try connection.makeStatement(entity.write.update(slots: slots))
    if updates[entity.index].count >= Self.updateLimit { updates[entity.index].removeFirst() }
    updates[entity.index].append((slots, made))
    return made
  }

  enum LinkChange {
    case insertion
    case insertionOfBlock
    case removal
  }

  private struct LinkKey: Hashable {
    let relationship: ObjectIdentifier
    let change: LinkChange
  }

  /// The statement that inserts or deletes edges of a join table; it takes the source's key and the
  /// destination's.
  func link(
    _ relationship: NSRelationshipDescription,
    _ table: String,
    _ source: String,
    _ destination: String,
    _ change: LinkChange
  ) throws -> SQLiteStatement {
    let key = LinkKey(relationship: ObjectIdentifier(relationship), change: change)
    if let kept = links[key] { return kept }
    let insertion = "INSERT OR IGNORE INTO \(table) (\(source), \(destination)) VALUES"
    let sql =
      switch change {
      case .insertion: "\(insertion) (?, ?)"
      case .insertionOfBlock: "\(insertion) \(InsertBlock.values("(?, ?)"))"
      case .removal: "DELETE FROM \(table) WHERE \(source) = ? AND \(destination) = ?"
      }
    let made = try connection.makeStatement(sql)
    links[key] = made
    return made
  }

  private struct DestinationKey: Hashable {
    let relationship: ObjectIdentifier
    let entity: Int
    let width: Int
    let bringsRows: Bool
  }

  struct DestinationStatement {
    let statement: SQLiteStatement
    let constantEntity: Int32?
    /// The plan that reads the destinations' rows from the result; nil where it has only their
    /// keys.
    let rowPlan: ReadPlan?
    /// The column of the source's key.
    let sourceColumn: Int
  }

  /// The statement that reads the members of a to-many for a portion of sources; nil where they are
  /// in another store.
  func destinations(
    of relationship: NSRelationshipDescription,
    from entity: EntityTable,
    _ span: KeySpan,
    bringingRows: Bool,
    in schema: StoreSchema
  ) throws -> DestinationStatement? {
    let key = DestinationKey(
      relationship: ObjectIdentifier(relationship),
      entity: entity.index,
      width: span.width,
      bringsRows: bringingRows
    )
    if let kept = destinations[key] { return kept }
    guard let query = DestinationQuery(relationship, from: entity, in: schema) else { return nil }
    let rows = bringingRows ? query.rowsSQL(span.condition) : nil
    let statement = try connection.makeStatement(rows ?? query.sql(span.condition))
    let made = DestinationStatement(
      statement: statement,
      constantEntity: query.constantEntity,
      rowPlan: rows == nil
        ? nil : relationship.destinationEntity.flatMap(schema.entity)?.plan,
      sourceColumn: rows == nil ? 0 : statement.columnCount - 1
    )
    destinations[key] = made
    return made
  }

  struct MembersStatement {
    let statement: SQLiteStatement
    let constantEntity: Int32?
    /// The plan that reads the members' rows from the result; nil where it has only their keys.
    let rowPlan: ReadPlan?
  }

  /// The statement that reads the members of a to-many of one source; nil where they are in another
  /// store.
  func members(
    at index: Int,
    from entity: EntityTable,
    in schema: StoreSchema
  ) throws -> MembersStatement? {
    if members[entity.index].isEmpty {
      members[entity.index] = Array(repeating: nil, count: entity.layout.toManys.count)
    } else if let kept = members[entity.index][index] {
      return kept
    }
    let relationship = entity.layout.toManys[index].description
    guard let query = DestinationQuery(relationship, from: entity, in: schema) else { return nil }
    let made = MembersStatement(
      statement: try connection.makeStatement(query.rows ?? query.sql("= ?")),
      constantEntity: query.constantEntity,
      rowPlan: query.rows == nil
        ? nil : relationship.destinationEntity.flatMap(schema.entity)?.plan
    )
    members[entity.index][index] = made
    return made
  }

  /// Each set of changed properties has a statement of its own; an app uses few.
  private static let updateLimit = 16

  /// Returns and forgets the rows that triggers changed since the last call.
  func takeAffected() -> Set<RowReference> {
    guard !affected.references.isEmpty else { return [] }
    defer { affected.references.removeAll(keepingCapacity: true) }
    return affected.references
  }

  /// The rows that the triggers of one connection reported.
  ///
  /// The functions hold this object, not the connection: a weak reference to the connection would
  /// slow down every use of it.
  private final class AffectedRows {
    var references: Set<RowReference> = []
  }

  /// Registers the functions that Core Data's own triggers call; without them an insert fails with
  /// "no such function".
  private func registerTriggerFunctions() throws {
    try DerivedValues.register(on: connection)
    for name in Self.triggerFunctions {
      try connection.register(function: name, argumentCount: 5, deterministic: false) {
        [affected] arguments in
        if case .integer(let entity) = arguments[1], case .integer(let key) = arguments[2] {
          affected.references.insert(
            RowReference(entityNumber: Int32(truncatingIfNeeded: entity), key: key)
          )
        }
        return .null
      }
    }
  }

  private static let triggerFunctions = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue",
    "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
    "NSCoreDataTriggerUpdateAffectedObjectValue",
  ]
}
