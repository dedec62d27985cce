import Foundation
import WatershedSQLite

/// What one transaction changed, as its history will say.
struct HistoryRecord {
  var inserted: [RowReference] = []
  private(set) var updated: [RowReference: Data] = [:]
  private(set) var deleted: [(reference: RowReference, tombstone: [SQLiteValue])] = []
  /// In the order of the first update.
  private(set) var updatedOrder: [RowReference] = []

  var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }

  /// Adds an update; several to one row are one.
  mutating func update(_ reference: RowReference, bits: Data) {
    guard var known = updated[reference] else {
      updated[reference] = bits
      updatedOrder.append(reference)
      return
    }
    for (index, byte) in bits.enumerated() where index < known.count {
      known[known.startIndex + index] |= byte
    }
    updated[reference] = known
  }

  mutating func delete(_ reference: RowReference, tombstone: [SQLiteValue]) {
    deleted.append((reference, tombstone))
  }

  /// A row that was inserted and deleted in one transaction was never there.
  func settled() -> HistoryRecord {
    guard !deleted.isEmpty || !updated.isEmpty else { return self }
    var result = HistoryRecord()
    let gone = Set(deleted.map(\.reference))
    let fresh = Set(inserted)
    result.inserted = inserted.filter { !gone.contains($0) }
    for reference in updatedOrder where !gone.contains(reference) && !fresh.contains(reference) {
      result.update(reference, bits: updated[reference] ?? Data())
    }
    result.deleted = deleted.filter { !fresh.contains($0.reference) }
    return result
  }
}
