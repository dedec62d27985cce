import Foundation
import WatershedSQLite

/// The changes of one transaction, for its history.
struct HistoryRecord {
  var inserted: [RowReference] = []
  /// The updates in the order of the first update of each object.
  private(set) var updated: [Update] = []
  /// The index of each row's update; created when a row may be updated again.
  private var places: [RowReference: Int]?
  private(set) var deleted: [(reference: RowReference, tombstone: [SQLiteValue])] = []
  /// The changes of batch requests to many rows.
  private(set) var runs: [HistoryRun] = []

  struct Update {
    let reference: RowReference
    /// The changed properties, as in `ZCOLUMNS`.
    var bits: Data
  }

  var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty && runs.isEmpty
  }

  mutating func append(_ run: HistoryRun) {
    if !run.references.isEmpty { runs.append(run) }
  }

  /// All references of one kind, including those of batches.
  func references(_ kind: HistoryWriter.Kind) -> [RowReference] {
    let single =
      switch kind {
      case .insert: inserted
      case .update: updated.map(\.reference)
      case .delete: deleted.map(\.reference)
      }
    let runs = runs.filter { $0.kind == kind }
    return runs.isEmpty ? single : single + runs.flatMap(\.references)
  }

  /// The rows whose cached values are outdated or that were deleted.
  var outdated: [RowReference] {
    let gone = deleted.map(\.reference)
    return runs.isEmpty ? gone : gone + runs.flatMap { $0.kind == .insert ? [] : $0.references }
  }

  /// Adds an update of a row that was not updated before.
  mutating func append(_ update: Update) {
    places?[update.reference] = updated.count
    updated.append(update)
  }

  /// Adds an update; several updates of one row are combined.
  mutating func update(_ reference: RowReference, bits: Data) {
    if places == nil {
      places = Dictionary(
        updated.enumerated().map { ($1.reference, $0) },
        uniquingKeysWith: { first, _ in first }
      )
    }
    guard let place = places?[reference] else {
      return append(Update(reference: reference, bits: bits))
    }
    for (index, byte) in bits.enumerated() where index < updated[place].bits.count {
      updated[place].bits[updated[place].bits.startIndex + index] |= byte
    }
  }

  mutating func delete(_ reference: RowReference, tombstone: [SQLiteValue]) {
    deleted.append((reference, tombstone))
  }

  /// Whether a row may have been inserted and also updated or deleted.
  ///
  /// A save inserts many rows and updates others. New keys are the highest of their entity, so
  /// comparing with the lowest new key distinguishes them without a set of all new rows.
  private var mayContradict: Bool {
    if !deleted.isEmpty { return true }
    guard !updated.isEmpty else { return false }
    if runs.contains(where: { $0.kind == .insert }) { return true }
    // A transaction contains few entities.
    var lowest: [(number: Int32, key: Int64)] = []
    for reference in inserted {
      if let place = lowest.firstIndex(where: { $0.number == reference.entityNumber }) {
        lowest[place].key = min(lowest[place].key, reference.key)
      } else {
        lowest.append((reference.entityNumber, reference.key))
      }
    }
    return updated.contains { update in
      lowest.contains {
        $0.number == update.reference.entityNumber && $0.key <= update.reference.key
      }
    }
  }

  /// A row that was inserted and deleted in one transaction is omitted.
  func settled() -> HistoryRecord {
    guard mayContradict else { return self }
    var result = HistoryRecord()
    let gone = Set(deleted.map(\.reference))
    let fresh = Set(inserted).union(runs.flatMap { $0.kind == .insert ? $0.references : [] })
    result.runs = runs
    result.inserted = inserted.filter { !gone.contains($0) }
    result.updated = updated.filter {
      !gone.contains($0.reference) && !fresh.contains($0.reference)
    }
    result.deleted = deleted.filter { !fresh.contains($0.reference) }
    return result
  }
}

/// Many changes of one kind, whose history rows SQL creates.
struct HistoryRun {
  /// A SELECT of history keys, entity numbers and row keys, and then tombstones; its one parameter
  /// is added to the base to get the first key.
  struct Part {
    let select: String
    let base: Int64
    let bits: Data?
  }

  let kind: HistoryWriter.Kind
  let references: [RowReference]
  let parts: [Part]
  var tombstones = 0
}
