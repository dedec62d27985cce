import Foundation
import WatershedSQLite

extension StoreTransaction {
  /// Deletes the row after applying its delete rules: nullify and cascade.
  ///
  /// A deny rule is ignored: the server has deleted the record already. The body is called with
  /// each row before any of them is deleted, while its relationships are still readable.
  package func delete(
    _ reference: RowReference,
    willDelete body: (Row) throws -> Void = { _ in }
  ) throws {
    let doomed = try cascade(from: reference, body)
    let references = Set(doomed)
    // The last ones were found through the others.
    for reference in doomed.reversed() { try delete(reference, with: references) }
    try writer.clearReferences(to: doomed, strict: false)
  }

  /// The row, and all rows that cascade rules delete with it.
  ///
  /// Deletes without recursion: a chain of cascades may be as long as the table.
  private func cascade(
    from first: RowReference,
    _ willDelete: (Row) throws -> Void
  ) throws -> [RowReference] {
    var found = [first]
    var known: Set<RowReference> = [first]
    var doomed: [RowReference] = []
    var place = 0
    while place < found.count {
      let reference = found[place]
      place += 1
      guard let row = try writer.row(reference) else { continue }
      try willDelete(row)
      doomed.append(reference)
      let layout = try store.table(of: reference).layout
      for slot in layout.toOnes where slot.deleteRule == .cascadeDeleteRule {
        guard let index = slot.rowIndex, case .reference(let partner) = row[index] else {
          continue
        }
        if known.insert(partner).inserted { found.append(partner) }
      }
      for slot in layout.toManys where slot.deleteRule == .cascadeDeleteRule {
        let partners = try destinations(of: slot.description, from: [reference])[reference]
        for partner in partners ?? [] where known.insert(partner).inserted {
          found.append(partner)
        }
      }
    }
    return doomed
  }

  /// Deletes one row; the references to it from rows that stay are cleared.
  private func delete(_ reference: RowReference, with doomed: Set<RowReference>) throws {
    guard let row = try writer.row(reference) else { return }
    let entity = try store.table(of: reference)
    for slot in entity.layout.toOnes where slot.clearsInverse {
      guard let index = slot.rowIndex, case .reference(let partner) = row[index],
        !doomed.contains(partner)
      else { continue }
      try releasePartner(row[index], of: reference, slot)
    }
    for slot in entity.layout.toManys where slot.clearsInverse {
      let partners = try destinations(of: slot.description, from: [reference])[reference] ?? []
      for partner in partners where !doomed.contains(partner) {
        if let index = try inverseIndex(slot, in: partner) {
          try set(index, of: partner, to: .null)
        }
      }
    }
    // A trigger of another row's deletion may have changed this one, and with it the version.
    guard let current = try writer.row(reference) else { return }
    _ = try writer.delete(reference, entity, expectedVersion: current.version)
  }
}

extension RelationshipSlot {
  /// Whether a deletion by an import clears the inverse: it ignores a deny rule.
  fileprivate var clearsInverse: Bool {
    deleteRule == .nullifyDeleteRule || deleteRule == .denyDeleteRule
  }
}
