import WatershedSQLite

/// The references to rows that a transaction deletes.
extension RowWriter {
  /// Clears the to-ones that still lead to a deleted row, each as an update of its row, in the history
  /// as well.
  ///
  /// A context nullifies what it knows to refer to an object that it deletes. Another context may have
  /// saved a reference since, in a row that the save does not write and whose version it does not
  /// compare. So this comes after all rows of the save were written.
  func clearReferences(to deleted: RowReference, _ entity: EntityTable) throws {
    guard !entity.referrers.isEmpty else { return }
    for (query, statement) in zip(entity.referrers, try writer.referrers(entity)) {
      var found: [RowReference] = []
      statement.bind(deleted.key, at: 1)
      while try statement.step() {
        let number = Int32(truncatingIfNeeded: statement.int64(0))
        found.append(RowReference(entityNumber: number, key: statement.int64(1)))
      }
      statement.reset()
      for reference in found { try clear(query.name, of: reference) }
    }
  }

  private func clear(_ name: String, of reference: RowReference) throws {
    let entity = try store.table(of: reference)
    guard let row = try row(reference), case .toOne(let index) = entity.layout.slot(named: name),
      let rowIndex = entity.layout.toOnes[index].rowIndex
    else { return }
    var values = row.values
    values[rowIndex] = .null
    // A constraint that this violates is noted, and fails the save.
    _ = try update(
      reference,
      entity,
      expectedVersion: row.version,
      changed: [rowIndex],
      changedToManys: [],
      values: values
    )
  }
}
