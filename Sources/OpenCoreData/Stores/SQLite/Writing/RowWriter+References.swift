import WatershedSQLite

/// The deleted rows to which rows refer that the save does not know of.
struct UnknownMembersError: Error {
  let owners: Set<RowReference>
}

/// The references to rows that a transaction deletes.
extension RowWriter {
  /// Clears the to-ones that still refer to a deleted row, each as an update of its row that the
  /// history records.
  ///
  /// A context nullifies what it knows to refer to an object that it deletes. Another context may have
  /// saved a reference since, in a row that the save does not write and whose version it does not
  /// compare. So this comes after all rows of the save were written, with one question for each
  /// inverse, however many rows are deleted.
  ///
  /// A row that is not to be nullified, because the delete rule is cascade or deny or the row must have
  /// a destination, is not changed: its destination is reported, so that the context applies its rules
  /// to that row too. A transaction
  /// that has applied the rules to all rows is not `strict`.
  func clearReferences(to deleted: [RowReference], strict: Bool) throws {
    var unknown: Set<RowReference> = []
    let groups = Dictionary(grouping: deleted, by: \.entityNumber).sorted { $0.key < $1.key }
    for (_, references) in groups {
      unknown.formUnion(
        try clearReferences(
          to: references.map(\.key),
          of: store.table(of: references[0]),
          strict: strict
        )
      )
    }
    guard unknown.isEmpty else { throw UnknownMembersError(owners: unknown) }
  }

  private func clearReferences(
    to keys: [Int64],
    of entity: EntityTable,
    strict: Bool
  ) throws -> Set<RowReference> {
    var unknown: Set<RowReference> = []
    guard !entity.referrers.isEmpty else { return unknown }
    let list = "[\(keys.map(String.init).joined(separator: ","))]"
    for (query, statement) in zip(entity.referrers, try writer.referrers(entity)) {
      var found: [RowReference] = []
      statement.bind(list, at: 1)
      while try statement.step() {
        let number = Int32(truncatingIfNeeded: statement.int64(0))
        found.append(RowReference(entityNumber: number, key: statement.int64(1)))
      }
      statement.reset()
      for reference in found {
        if strict, query.isRequired {
          if let owner = try destination(query.name, of: reference) { unknown.insert(owner) }
        } else {
          try clear(query.name, of: reference)
        }
      }
    }
    return unknown
  }

  private func destination(_ name: String, of reference: RowReference) throws -> RowReference? {
    let entity = try store.table(of: reference)
    guard let row = try row(reference), case .toOne(let index) = entity.layout.slot(named: name),
      let rowIndex = entity.layout.toOnes[index].rowIndex,
      case .reference(let destination) = row[rowIndex]
    else { return nil }
    return destination
  }

  private func clear(_ name: String, of reference: RowReference) throws {
    let entity = try store.table(of: reference)
    guard let row = try row(reference), case .toOne(let index) = entity.layout.slot(named: name),
      let rowIndex = entity.layout.toOnes[index].rowIndex
    else { return }
    var values = row.values
    values[rowIndex] = .null
    // A violated constraint is recorded, and fails the save.
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
