import WatershedSQLite

/// The updates of one save.
extension RowWriter {
  /// Writes the changed rows of a save; returns the updates whose stored row has another version.
  ///
  /// SQLite checks a UNIQUE constraint after each row, while a save is valid if its final state is:
  /// two rows may swap unique values, or all positions of a list may shift by one. So a row whose
  /// new value is still stored in another row is written after the others; then all remaining rows
  /// have their unique values set to NULL before any of them is written. A row that still fails
  /// duplicates a value in the final state, and is recorded as a conflict.
  func update(_ updates: [RowChanges.Update]) throws -> [RowChanges.Update] {
    var outdated: [RowChanges.Update] = []
    var waiting: [Int] = []
    for (place, update) in updates.enumerated() {
      let fileCount = files.made.count
      switch try write(update) {
      case .written: continue
      case .versionDiffers: outdated.append(update)
      case .constraintViolated:
        abandonFiles(after: fileCount)
        waiting.append(place)
      }
    }
    guard !waiting.isEmpty else { return outdated }
    constraintConflicts.removeAll()
    for place in waiting { try vacate(updates[place]) }
    for place in waiting { _ = try write(updates[place]) }
    return outdated
  }

  private func write(_ update: RowChanges.Update) throws -> UpdateResult {
    try self.update(
      update.row,
      try store.table(of: update.reference),
      expectedVersion: update.expectedVersion,
      changed: update.changed,
      changedToManys: update.changedToManys,
      isFirst: true
    )
  }

  /// Sets the unique columns that an update changes to NULL, which never violates the constraint;
  /// derived attributes are written with every update.
  private func vacate(_ update: RowChanges.Update) throws {
    let entity = try store.table(of: update.reference)
    let unique = uniqueColumns(of: entity)
    let slots = Set(update.changed + entity.derivations.targets).sorted()
    let columns = slots.map { entity.columns[$0].name }.filter(unique.contains)
    guard !columns.isEmpty else { return }
    let list = columns.map { "\($0) = NULL" }.joined(separator: ", ")
    try connection.run(
      "UPDATE \(entity.table) SET \(list) WHERE Z_PK = ?",
      [.integer(update.reference.key)]
    )
  }

  /// The columns of all constraints of the entity's table.
  private func uniqueColumns(of entity: EntityTable) -> Set<String> {
    var columns: Set<String> = []
    for candidate in store.schema.entities where candidate.table == entity.table {
      for names in AttributeIndexes.constraints(of: candidate.layout.entity) {
        columns.formUnion(names.compactMap { candidate.columnName(of: $0) })
      }
    }
    return columns
  }
}
