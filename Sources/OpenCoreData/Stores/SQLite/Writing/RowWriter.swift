import Foundation
import WatershedSQLite

/// Writes rows inside one transaction and records the changes for the history, the row cache and
/// commit observers.
///
/// It lives as long as the transaction; the thread holds the writer's lock.
final class RowWriter {
  let store: SQLiteStore
  let writer: StoreConnection
  let now: Double
  private(set) var written = WrittenRows()
  /// Whether members of any to-many may have changed.
  var changesLinks = false
  private(set) var record = HistoryRecord()
  var constraintConflicts: [RowConstraintError.Conflict] = []
  private(set) var files = ExternalData.Pending()
  /// Rows that triggers or links changed beside those written.
  private(set) var stale: Set<RowReference> = []
  /// Rows that a batch changed and that were not read back.
  private(set) var outdated: [RowReference] = []
  private var isBatch = false

  init(store: SQLiteStore, writer: StoreConnection) {
    self.store = store
    self.writer = writer
    now = store.effects.now.timeIntervalSinceReferenceDate
    // Discard what an earlier, failed transaction left in the connection.
    _ = writer.takeAffected()
  }

  var connection: SQLiteConnection { writer.connection }

  /// Reserves capacity for `count` written rows.
  func reserveCapacity(_ count: Int) {
    written.reserveCapacity(count)
  }

  // MARK: Rows

  /// Writes a new row.
  ///
  /// Returns false where a unique value is already taken.
  @discardableResult
  func insert(
    _ reference: RowReference,
    _ entity: EntityTable,
    values: [RowValue]
  ) throws -> Bool {
    try insert(Row(reference: reference, version: 1, values: values), entity)
  }

  /// Writes a new row.
  ///
  /// Returns false where a unique value is already taken.
  @discardableResult
  func insert(_ given: Row, _ entity: EntityTable) throws -> Bool {
    let row = completed(given, entity)
    guard try write(row, entity) else { return false }
    written.append(row)
    record.inserted.append(row.reference)
    return true
  }

  /// Writes new rows, in blocks for entities with many.
  func insert(_ insertions: [RowChanges.Insertion]) throws {
    guard insertions.count >= InsertBlock.worthwhile else {
      for insertion in insertions {
        try insert(insertion.row, try store.table(of: insertion.reference))
      }
      return
    }
    // The indexes of the rows that wait for a full block, by entity.
    var waiting: [[Int]] = Array(repeating: [], count: store.schema.entities.count)
    var rows: [Row] = []
    rows.reserveCapacity(insertions.count)
    record.inserted.reserveCapacity(record.inserted.count + insertions.count)
    for (place, insertion) in insertions.enumerated() {
      let entity = try store.table(of: insertion.reference)
      guard entity.takesBlocks else {
        let row = completed(insertion.row, entity)
        guard try write(row, entity) else { continue }
        rows.append(row)
        record.inserted.append(row.reference)
        continue
      }
      rows.append(insertion.row)
      record.inserted.append(insertion.reference)
      waiting[entity.index].append(place)
      if waiting[entity.index].count == InsertBlock.rows {
        try write(waiting[entity.index], of: insertions, entity)
        waiting[entity.index].removeAll(keepingCapacity: true)
      }
    }
    for (entity, rest) in zip(store.schema.entities, waiting) {
      for place in rest { _ = try write(insertions[place].row, entity) }
    }
    written.append(rows)
  }

  private func write(_ row: Row, _ entity: EntityTable) throws -> Bool {
    let statement = try writer.insert(entity)
    try bind(new: row, entity, to: statement, from: 1)
    return try run(statement, row, entity)
  }

  /// Writes a block of rows of one entity.
  private func write(
    _ block: [Int],
    of insertions: [RowChanges.Insertion],
    _ entity: EntityTable
  ) throws {
    let statement = try writer.insertBlock(entity)
    var place = 1
    for index in block {
      try bind(new: insertions[index].row, entity, to: statement, from: place)
      place += entity.write.width
    }
    try withExtendedLifetime(insertions) { try statement.run() }
  }

  private func bind(
    new row: Row,
    _ entity: EntityTable,
    to statement: SQLiteStatement,
    from place: Int
  ) throws {
    statement.bind(row.reference.key, at: place)
    statement.bind(row.version, at: place + 1)
    try bind(row, entity.write.slots, entity, to: statement, from: place + 2)
  }

  enum UpdateResult {
    case written
    case versionDiffers
    case constraintViolated
  }

  /// Writes the changed slots if the row still has the expected version.
  func update(
    _ reference: RowReference,
    _ entity: EntityTable,
    expectedVersion: Int64,
    changed: [Int],
    changedToManys: [Int],
    values: [RowValue]
  ) throws -> UpdateResult {
    try update(
      Row(reference: reference, version: expectedVersion + 1, values: values),
      entity,
      expectedVersion: expectedVersion,
      changed: changed,
      changedToManys: changedToManys
    )
  }

  /// Writes the changed slots if the row still has the expected version.
  ///
  /// A save writes each row once and passes that on, so the row is not looked up among those
  /// written.
  func update(
    _ given: Row,
    _ entity: EntityTable,
    expectedVersion: Int64,
    changed: [Int],
    changedToManys: [Int],
    isFirst: Bool = false
  ) throws -> UpdateResult {
    let row = completed(given, entity)
    let reference = row.reference
    var slots = changed
    if !entity.isPlain {
      slots.removeAll { !entity.columns[$0].isStored || entity.columns[$0].isDerived }
      slots += entity.derivations.targets
      slots.sort()
      try abandonFiles(of: reference, entity, slots: slots)
    }
    if !changesLinks {
      // A to-one is the inverse of a to-many.
      let attributes = entity.layout.attributes.count
      changesLinks = !changedToManys.isEmpty || slots.contains { $0 >= attributes }
    }
    let statement = try writer.update(entity, slots: slots)
    let index = try bind(row, slots, entity, to: statement, from: 1)
    statement.bind(row.version, at: index)
    statement.bind(reference.key, at: index + 1)
    statement.bind(expectedVersion, at: index + 2)
    guard try run(statement, row, entity) else { return .constraintViolated }
    guard connection.changes == 1 else { return .versionDiffers }
    let bits =
      store.keepsHistory
      ? entity.history.bits(changed: changed, changedToManys: changedToManys) : Data()
    if isFirst {
      written.append(row)
      record.append(HistoryRecord.Update(reference: reference, bits: bits))
    } else {
      written.set(row)
      record.update(reference, bits: bits)
    }
    return .written
  }

  /// Deletes the row and its links if it still has the expected version.
  func delete(
    _ reference: RowReference,
    _ entity: EntityTable,
    expectedVersion: Int64
  ) throws -> Bool {
    let tombstone = try tombstone(of: reference, entity)
    try abandonFiles(of: reference, entity, slots: entity.externalSlots)
    let statement = try writer.delete(entity)
    statement.bind(reference.key, at: 1)
    statement.bind(expectedVersion, at: 2)
    try statement.run()
    guard connection.changes == 1 else { return false }
    for statement in try writer.cleanup(entity) {
      statement.bind(reference.key, at: 1)
      try statement.run()
    }
    written.remove(reference)
    changesLinks = true
    record.delete(reference, tombstone: tombstone)
    return true
  }

  // MARK: Reading in the transaction

  /// The row as the transaction wrote it; nil where it did not write it.
  func writtenRow(_ reference: RowReference) -> Row? { written[reference] }

  /// The row as the transaction sees it.
  func row(_ reference: RowReference) throws -> Row? {
    if let row = writtenRow(reference) { return row }
    return try store.readRow(reference, from: writer)
  }

  // MARK: Batches

  /// Records the changes of a batch request to many rows.
  func append(_ run: HistoryRun) {
    isBatch = true
    record.append(run)
  }

  /// Records that a batch set a to-one of these rows to NULL.
  func noteUpdates(of references: [RowReference], toOne name: String) throws {
    for reference in references {
      written.remove(reference)
      record.update(
        reference,
        bits: store.keepsHistory
          ? try store.table(of: reference).history.bits(names: [name]) : Data()
      )
    }
    outdated += references
  }

  /// Binds a value to a column's parameter; a large value is written to its file.
  func bind(
    _ value: RowValue,
    _ column: SlotColumn,
    to statement: SQLiteStatement,
    at place: Int
  ) throws {
    _ = try store.coding.bind(value, column, to: statement, at: place, files: &files)
  }

  /// Discards the files created after the first `count`: their row was not written.
  func abandonFiles(after count: Int) {
    files.abandonMade(after: count)
  }

  /// Notes that the value of an external column is being replaced or deleted.
  func abandon(_ stored: Data) {
    store.coding.external.abandon(stored, files: &files)
  }

  // MARK: The end

  /// Reads back the values that triggers computed, writes the history, and returns its transaction
  /// number.
  func finish(author: String?, contextName: String?) throws -> Int64? {
    if isBatch {
      outdated += writer.takeAffected()
    } else {
      for reference in writer.takeAffected() where written[reference] == nil {
        stale.insert(reference)
      }
    }
    for row in store.schema.hasTriggeredValues ? written.rows : [] {
      guard let entity = store.schema.entity(number: row.reference.entityNumber),
        entity.hasTriggeredValues
      else { continue }
      written.set(try store.readRow(row.reference, from: writer) ?? row)
    }
    for reference in stale {
      guard let row = try store.readRow(reference, from: writer) else {
        stale.remove(reference)
        continue
      }
      written.set(row)
    }
    guard store.keepsHistory, !record.isEmpty else { return nil }
    return try HistoryWriter(connection: connection, effects: store.effects).write(
      record,
      author: author,
      contextName: contextName,
      at: now
    )
  }

  // MARK: Parts

  /// The row with derived values, and without transient ones, which are not stored.
  private func completed(_ row: Row, _ entity: EntityTable) -> Row {
    if entity.isPlain { return row }
    var values = row.values
    for index in entity.columns.indices where !entity.columns[index].isStored {
      values[index] = .null
    }
    if !entity.derivations.isEmpty { entity.derivations.apply(to: &values, now: now) }
    return Row(reference: row.reference, version: row.version, values: values)
  }

  /// Binds some of a row's values; returns the next index.
  ///
  /// SQLite reads strings in place: the row outlives the statement's run, and the next use binds
  /// every parameter again.
  @discardableResult
  private func bind(
    _ row: Row,
    _ slots: [Int],
    _ entity: EntityTable,
    to statement: SQLiteStatement,
    from first: Int
  ) throws -> Int {
    var index = first
    for slot in slots {
      if entity.isPlain, row.bind(slot, to: statement, at: index) {
        index += 1
      } else {
        index = try store.coding.bind(
          row[slot],
          entity.columns[slot],
          to: statement,
          at: index,
          files: &files
        )
      }
    }
    return index
  }

  /// Runs an insert or an update.
  ///
  /// A violated constraint is recorded, and the transaction continues, so that one error reports
  /// all violations of a save.
  private func run(
    _ statement: SQLiteStatement,
    _ row: Row,
    _ entity: EntityTable
  ) throws -> Bool {
    do {
      try withExtendedLifetime(row) { try statement.run() }
      return true
    } catch let error as SQLiteError where error.isConstraint {
      guard
        let conflict = try ConstraintFinder(store: store, writer: writer).conflict(
          error,
          reference: row.reference,
          entity: entity,
          values: row.values
        )
      else { throw error }
      constraintConflicts.append(conflict)
      return false
    }
  }

  private func abandonFiles(
    of reference: RowReference,
    _ entity: EntityTable,
    slots: [Int]
  ) throws {
    for slot in slots where entity.columns[slot].form == .externalData {
      let stored = try connection.scalar(
        "SELECT \(entity.columns[slot].name) FROM \(entity.table) WHERE Z_PK = ?",
        [.integer(reference.key)]
      )
      if case .blob(let data)? = stored { store.coding.external.abandon(data, files: &files) }
    }
  }

  private func tombstone(
    of reference: RowReference,
    _ entity: EntityTable
  ) throws -> [SQLiteValue] {
    guard store.keepsHistory, !entity.history.preserved.isEmpty else { return [] }
    guard let row = try row(reference) else { return [] }
    return entity.history.preserved.map { RowCoding.sqlite(row[$0.rowIndex]) }
  }
}
