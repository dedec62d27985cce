import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Deletes the rows that a fetch finds, and applies their delete rules, in one transaction;
  /// returns the rows that the fetch found.
  func deleteBatch(
    _ fetch: RowFetch,
    author: String?,
    contextName: String?
  ) throws -> [RowReference] {
    try batch(author: author, contextName: contextName) { writer in
      try BatchDeletion(store: self, writer: writer, fetch: fetch).run()
    }
  }
}

/// Deletes many rows with SQL statements over their keys.
///
/// It first collects the keys of all rows that cascades delete, then checks for deny rules and for
/// inverses that must not be nullified, and only then changes rows.
struct BatchDeletion {
  private let store: SQLiteStore
  private let writer: RowWriter
  private let statement: FetchStatement

  init(store: SQLiteStore, writer: RowWriter, fetch: RowFetch) throws {
    self.store = store
    self.writer = writer
    statement = try FetchStatement(store: store, request: fetch)
  }

  func run() throws -> [RowReference] {
    do {
      let kept = store.keepsHistory ? store.tombstoneColumns.count : 0
      let keys = try BatchKeys(writer.connection, tombstones: kept)
      try keys.insert(root: statement.entity.rootNumber, statement.references())
      let asked = Int(try keys.count())
      guard asked > 0 else { return [] }
      try cascade(keys)
      let entities = try keys.entityNumbers().compactMap { store.schema.entity(number: $0) }
      for entity in entities { try requirePermission(for: entity) }
      for entity in entities { try nullify(entity) }
      if kept > 0 {
        for entity in entities { try keys.keepTombstones(of: entity, store.coding.external) }
      }
      for entity in entities { try delete(entity) }
      let run = try keys.runs(.delete) { _ in nil }
      writer.append(run)
      return Array(run.references.prefix(asked))
    } catch let error as PredicateNotTranslatable {
      throw StoreError(
        .coreData,
        error.reason,
        remedy: "Use stored properties in the predicate and in the sort descriptors.",
        cause: error
      )
    }
  }

  // MARK: Delete rules

  /// Adds the rows that cascades delete, one level of relationships after the other.
  private func cascade(_ keys: BatchKeys) throws {
    var done: Int64 = 0
    while true {
      let last = try keys.count()
      guard last > done else { return }
      for number in try keys.entityNumbers(after: done) {
        guard let entity = store.schema.entity(number: number) else { continue }
        let wave = BatchKeys.keys(of: number, after: done)
        for slot in entity.layout.toOnes + entity.layout.toManys
        where slot.deleteRule == .cascadeDeleteRule {
          guard let found = partners(of: slot, entity, in: wave) else { continue }
          try keys.insert(
            root: found.table.rootNumber,
            SQLFragment("SELECT \(found.key), \(found.entity)\(found.source)")
          )
        }
      }
      done = last
    }
  }

  private func requirePermission(for entity: EntityTable) throws {
    let keys = BatchKeys.keys(of: entity.number)
    for slot in entity.layout.toOnes + entity.layout.toManys {
      guard let found = partners(of: slot, entity, in: keys) else { continue }
      let violation: String
      switch slot.deleteRule {
      case .denyDeleteRule:
        violation = "deny rule on"
      case .nullifyDeleteRule:
        guard let inverse = slot.inverse, !inverse.isToMany, !inverse.isOptional else { continue }
        violation = "mandatory \(slot.isToMany ? "OTM" : "OTO") nullify inverse on"
      default: continue
      }
      let stays = BatchKeys.excludes(root: found.table.rootNumber, key: found.key)
      let blocked = try writer.connection.scalar(
        "SELECT 1\(found.source) AND \(stays) LIMIT 1"
      )
      guard blocked != nil else { continue }
      let reason =
        "Constraint trigger violation, Batch delete failed due to \(violation) "
        + "\(entity.name)/\(slot.name)"
      throw StoreError(
        .save,
        reason,
        remedy: "Delete the objects that refer to these first, or along with them.",
        context: [NSLocalizedFailureReasonErrorKey: reason, "NSExceptionOmitCallstacks": true]
      )
    }
  }

  /// Nullifies the inverses in rows that are not deleted.
  private func nullify(_ entity: EntityTable) throws {
    let keys = BatchKeys.keys(of: entity.number)
    for slot in entity.layout.toOnes + entity.layout.toManys
    where slot.deleteRule == .nullifyDeleteRule {
      guard let inverse = slot.inverse, !inverse.isToMany,
        let destination = store.schema.entity(slot.destinationEntity),
        case .toOne(let index) = destination.layout.slot(named: inverse.name),
        let rowIndex = destination.layout.toOnes[index].rowIndex
      else { continue }
      let column = destination.columns[rowIndex]
      guard column.isStored else { continue }
      let stays = BatchKeys.excludes(root: destination.rootNumber, key: "t0.Z_PK")
      let condition = " WHERE t0.\(column.name) IN \(keys) AND \(stays)"
      let touched = try writer.connection.query(
        "SELECT t0.Z_ENT, t0.Z_PK FROM \(destination.table) AS t0\(condition)"
      ) { row in
        RowReference(entityNumber: Int32(truncatingIfNeeded: row.int64(0)), key: row.int64(1))
      }
      guard !touched.isEmpty else { continue }
      var terms = ["\(column.name) = NULL", "Z_OPT = IFNULL(Z_OPT, 0) + 1"]
      if case .keyAndEntity(let companion, true) = column.form {
        terms.append("\(companion) = NULL")
      }
      if let order = slot.toManyIndex.flatMap({ entity.links[$0].orderColumn }) {
        terms.append("\(order) = NULL")
      }
      try writer.connection.run(
        "UPDATE \(destination.table) AS t0 SET \(terms.joined(separator: ", "))\(condition)"
      )
      try writer.noteUpdates(of: touched, toOne: inverse.name)
    }
  }

  /// The rows at the other end of a relationship, as a FROM and a WHERE, with their key and entity.
  private func partners(
    of slot: RelationshipSlot,
    _ entity: EntityTable,
    in keys: String
  ) -> (table: EntityTable, key: String, entity: String, source: String)? {
    guard let destination = store.schema.entity(slot.destinationEntity) else { return nil }
    let source: String
    if let index = slot.rowIndex {
      guard entity.columns[index].isStored else { return nil }
      source =
        " FROM \(entity.table) AS s JOIN \(destination.table) AS t0 "
        + "ON t0.Z_PK = s.\(entity.columns[index].name) WHERE s.Z_PK IN \(keys)"
    } else {
      guard let index = slot.toManyIndex else { return nil }
      switch entity.links[index] {
      case .foreignKey(let table, let column, _, _):
        source = " FROM \(table) AS t0 WHERE t0.\(column) IN \(keys)"
      case .join(let table, let from, let to, _):
        source =
          " FROM \(table) AS j JOIN \(destination.table) AS t0 ON t0.Z_PK = j.\(to) "
          + "WHERE j.\(from) IN \(keys)"
      case .absent: return nil
      }
    }
    return (destination, "t0.Z_PK", "t0.Z_ENT", source)
  }

  // MARK: Rows

  private func delete(_ entity: EntityTable) throws {
    let keys = BatchKeys.keys(of: entity.number)
    for slot in entity.externalSlots {
      let column = entity.columns[slot].name
      let stored = try writer.connection.query(
        "SELECT \(column) FROM \(entity.table) WHERE Z_PK IN \(keys) AND \(column) IS NOT NULL"
      ) { $0.blob(0) }
      for data in stored { writer.abandon(data) }
    }
    for cleanup in entity.cleanup {
      // The statement was written for one key: "… = ?".
      try writer.connection.run(cleanup.replacing(" = ?", with: " IN \(keys)"))
    }
    try writer.connection.run("DELETE FROM \(entity.table) WHERE Z_PK IN \(keys)")
  }
}
