import Foundation
import WatershedSQLite

/// A write transaction of rows, for the mirroring.
///
/// It sees its own changes. It is valid only inside its body, on the body's thread.
package final class StoreTransaction {
  let store: SQLiteStore
  let writer: RowWriter
  private var reserved: [Int32: (next: Int64, end: Int64)] = [:]

  /// The number of keys reserved at a time; unused keys are returned at the end.
  private static let keyBlock = 64

  init(store: SQLiteStore, writer: RowWriter) {
    self.store = store
    self.writer = writer
  }

  /// The connection, for the caller's own tables in the same transaction.
  package var connection: SQLiteConnection { writer.connection }

  /// All rows deleted so far, including those that a cascade deleted.
  package var deletedRows: [RowReference] { writer.record.deleted.map(\.reference) }

  // MARK: Reading

  package func row(_ reference: RowReference) throws -> Row? {
    try writer.row(reference)
  }

  package func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    var result: [RowReference: Row] = [:]
    var unknown: [RowReference] = []
    for reference in references {
      if let row = writer.writtenRow(reference) {
        result[reference] = row
      } else {
        unknown.append(reference)
      }
    }
    for row in try store.readRows(unknown, from: writer.writer) { result[row.reference] = row }
    return result
  }

  /// The attributes that are nil in the row because the file of their value is missing.
  package func missingFiles(of row: Row) throws -> Set<String> {
    let entity = try store.table(of: row.reference)
    var names: Set<String> = []
    for slot in entity.externalSlots where row[slot].isNull {
      let stored = try connection.scalar(
        "SELECT \(entity.columns[slot].name) IS NOT NULL FROM \(entity.table) WHERE Z_PK = ?",
        [.integer(row.reference.key)]
      )
      if stored == .integer(1) { names.insert(entity.layout.attributes[slot].name) }
    }
    return names
  }

  package func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try store.readDestinations(of: relationship, from: sources, on: writer.writer)
  }

  package func fetch(_ request: RowFetch) throws -> RowFetchResult {
    try store.fetch(request, from: writer.writer)
  }

  // MARK: Writing

  /// Inserts a row with a new key.
  package func insert(_ layout: EntityLayout, values: [RowValue]) throws -> RowReference {
    let entity = try store.table(of: layout.entity)
    let reference = RowReference(entityNumber: entity.number, key: try nextKey(entity))
    try require(try writer.insert(reference, entity, values: values))
    for slot in layout.toOnes {
      guard let index = slot.rowIndex, case .reference(let partner) = values[index] else {
        continue
      }
      try claimPartner(partner, for: reference, slot)
    }
    return reference
  }

  /// Sets values by row index.
  ///
  /// Setting a one-to-one clears the inverse of the partner's former partner.
  package func update(_ reference: RowReference, set values: [Int: RowValue]) throws {
    guard let row = try writer.row(reference) else { return }
    let entity = try store.table(of: reference)
    let changed = values.keys.sorted().filter { row[$0] != values[$0] }
    guard !changed.isEmpty else { return }
    var updated = row.values
    for index in changed { updated[index] = values[index] ?? .null }
    try write(row, entity, values: updated, changed: changed)
    for slot in entity.layout.toOnes {
      guard let index = slot.rowIndex, changed.contains(index) else { continue }
      try releasePartner(row[index], of: reference, slot)
      if case .reference(let partner) = updated[index] {
        try claimPartner(partner, for: reference, slot)
      }
    }
  }

  /// Inserts an edge of a relationship that no to-one column stores; for others, sets the column.
  package func addLink(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference
  ) throws {
    try link(relationship, source, destination, isInsertion: true)
  }

  /// Deletes an edge.
  package func removeLink(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference
  ) throws {
    try link(relationship, source, destination, isInsertion: false)
  }

  // MARK: History

  /// Up to `limit` changes after a position by any author except these, merged per row; without tombstones.
  package func pendingChanges(
    after position: HistoryPosition,
    limit: Int,
    excludingAuthors authors: Set<String>
  ) throws -> PendingHistory {
    try HistoryReader(connection: connection, store: store)
      .pendingChanges(after: position, limit: limit, excludingAuthors: authors)
  }

  /// The number of the newest transaction in the history; 0 where there is none.
  package var lastTransactionNumber: Int64 {
    get throws { try HistoryReader(connection: connection, store: store).lastTransactionNumber() }
  }

  // MARK: Parts

  /// Returns unused keys.
  ///
  /// Called at the end of the body.
  func finish() throws {
    for (root, block) in reserved.sorted(by: { $0.key < $1.key }) where block.next < block.end {
      try connection.run(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ? AND Z_MAX = ?",
        [.integer(block.next - 1), .integer(Int64(root)), .integer(block.end - 1)]
      )
    }
    reserved = [:]
  }

  private func nextKey(_ entity: EntityTable) throws -> Int64 {
    if let block = reserved[entity.rootNumber], block.next < block.end {
      reserved[entity.rootNumber] = (block.next + 1, block.end)
      return block.next
    }
    let last = try KeyReserver.advance(entity, by: Self.keyBlock, in: connection)
    let first = last - Int64(Self.keyBlock) + 1
    reserved[entity.rootNumber] = (first + 1, last + 1)
    return first
  }

  private func write(
    _ row: Row,
    _ entity: EntityTable,
    values: [RowValue],
    changed: [Int],
    changedToManys: [Int] = []
  ) throws {
    let result = try writer.update(
      row.reference,
      entity,
      expectedVersion: row.version,
      changed: changed,
      changedToManys: changedToManys,
      values: values
    )
    try require(result == .written)
  }

  private func require(_ isWritten: Bool) throws {
    guard isWritten else { throw RowConstraintError(conflicts: writer.constraintConflicts) }
  }

  /// Sets one to-one column, if the row exists and has another value.
  func set(_ rowIndex: Int, of reference: RowReference, to value: RowValue) throws {
    guard let row = try writer.row(reference), row[rowIndex] != value else { return }
    var values = row.values
    values[rowIndex] = value
    try write(row, try store.table(of: reference), values: values, changed: [rowIndex])
  }

  /// The column of the inverse of a one-to-one, in the partner's row.
  func inverseIndex(_ slot: RelationshipSlot, in partner: RowReference) throws -> Int? {
    guard let inverse = slot.inverse, !inverse.isToMany else { return nil }
    let layout = try store.table(of: partner).layout
    guard case .toOne(let index) = layout.slot(named: inverse.name) else { return nil }
    return layout.toOnes[index].rowIndex
  }

  /// Sets the inverse of a one-to-one in the partner's row, and clears the partner's former
  /// partner.
  private func claimPartner(
    _ partner: RowReference,
    for reference: RowReference,
    _ slot: RelationshipSlot
  ) throws {
    guard let index = try inverseIndex(slot, in: partner), let row = try writer.row(partner)
    else { return }
    if case .reference(let former) = row[index], former != reference,
      let formerIndex = slot.rowIndex(in: try store.table(of: former).layout)
    {
      try set(formerIndex, of: former, to: .null)
    }
    try set(index, of: partner, to: .reference(reference))
  }

  /// Clears the column of a one-to-one's former partner.
  func releasePartner(
    _ value: RowValue,
    of reference: RowReference,
    _ slot: RelationshipSlot
  ) throws {
    guard case .reference(let former) = value,
      let index = try inverseIndex(slot, in: former), let row = try writer.row(former),
      row[index] == .reference(reference)
    else { return }
    try set(index, of: former, to: .null)
  }

  private func link(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference,
    isInsertion: Bool
  ) throws {
    let sourceEntity = try store.table(of: source)
    switch sourceEntity.layout.slot(named: relationship.name) {
    case .toOne(let index):
      guard let rowIndex = sourceEntity.layout.toOnes[index].rowIndex else { return }
      try update(source, set: [rowIndex: isInsertion ? .reference(destination) : .null])
    case .toMany(let index):
      let slot = sourceEntity.layout.toManys[index]
      if let rowIndex = try inverseIndex(slot, in: destination) {
        try set(rowIndex, of: destination, to: isInsertion ? .reference(source) : .null)
        return
      }
      try writer.link(
        RowChanges.Link(
          relationship: relationship,
          source: source,
          destination: destination,
          isInsertion: isInsertion
        )
      )
      try touch(source, toMany: relationship.name)
      if let inverse = relationship.inverseRelationship, inverse.isToMany {
        try touch(destination, toMany: inverse.name)
      }
    default:
      return
    }
  }

  /// Records in the history, and in the row's version, that a to-many changed.
  private func touch(_ reference: RowReference, toMany name: String) throws {
    guard let row = try writer.row(reference) else { return }
    let entity = try store.table(of: reference)
    guard case .toMany(let index) = entity.layout.slot(named: name) else { return }
    try write(row, entity, values: row.values, changed: [], changedToManys: [index])
  }
}

extension RelationshipSlot {
  /// The row index of this to-one in a layout that has it, which may be a sub-entity's.
  func rowIndex(in layout: EntityLayout) -> Int? {
    guard case .toOne(let index) = layout.slot(named: name) else { return nil }
    return layout.toOnes[index].rowIndex
  }
}
