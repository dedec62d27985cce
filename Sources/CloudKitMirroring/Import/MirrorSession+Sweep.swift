import Foundation
import OpenCoreData
import WatershedSQLite

/// The position of a sweep within the missing records and links, so that no step examines again what an earlier
/// one has passed.
package struct SweepPosition: Hashable, Sendable {
  /// Whether the guard allows the number of missing records.
  var isAllowed = false
  /// The identifiers of the last record and link.
  var record: Int64 = 0
  var edge: Int64 = 0

  package init() {}
}

/// Handles records that a read of the whole zone did not return.
///
/// A missing record is weaker evidence than a tombstone. If too many are missing, or if the
/// deletion would cascade to objects that are on the server, the server has lost data that this
/// store has.
extension MirrorSession {
  /// Ends a read of the whole zone: records that the server once had and no longer has were deleted
  /// there.
  ///
  /// If these are more than the guard allows, nothing is deleted: missing records are sent again,
  /// also after a restart, and the effect records it. Returns whether more is left to do.
  package func sweepMissing(
    generation: Int64,
    limit: Int,
    guard limits: SweepGuard,
    from position: inout SweepPosition,
    _ effect: inout ImportEffect
  ) throws -> Bool {
    var zone = try metadata.zone(context.zone)
    if zone.rereading == .kept {
      return try sendMissing(generation: generation, limit: limit, from: &position)
    }
    if !position.isAllowed, let stopped = try excess(generation: generation, limits) {
      effect.stoppedSweep = stopped
      zone.rereading = .kept
      try metadata.save(zone)
      try metadata.setMeta(.keptMissing, .integer(Int64(stopped.missing)))
      return true
    }
    position.isAllowed = true
    let group = try rows.lastTransactionNumber()
    let records = try missingRecords(generation: generation, limit: limit, from: &position)
    var growth = try RecoveryGrowth(metadata)
    for missing in records {
      // A cascade may have deleted it already.
      guard let record = try metadata.record(named: missing.name) else { continue }
      if record.isRestoredDuringDeletion {
        // The reply to the deletion makes it a creation.
        var record = record
        record.generation = generation
        try metadata.update(record)
      } else if record.pending == .delete {
        try metadata.remove(record)
      } else if try deletionCascadesToPresent(record, generation: generation) {
        try sendAgain(record, generation: generation, group: group)
        for edge in try metadata.edges(touching: record.name)
        where edge.tag != nil && edge.generation < generation {
          try sendAgain(edge, generation: generation, group: group)
        }
      } else {
        try applyDeletion(of: record, isConcluded: true)
        effect.deleted.append(record.name)
        if try growth.isFull() {
          position.record = missing.id
          return true
        }
      }
    }
    guard records.count < limit else { return true }
    // Edges are swept after the records: an object that is sent again keeps its links.
    let edges = try missingEdges(generation: generation, limit: limit, from: &position)
    for edge in edges { try applyDeletion(of: edge) }
    return edges.count == limit
  }

  private func missingRecords(
    generation: Int64,
    limit: Int,
    from position: inout SweepPosition
  ) throws -> [RecordMetadata] {
    let records = try metadata.missingRecords(
      generation: generation,
      after: position.record,
      limit: limit
    )
    position.record = records.last?.id ?? position.record
    return records
  }

  private func missingEdges(
    generation: Int64,
    limit: Int,
    from position: inout SweepPosition
  ) throws -> [EdgeMetadata] {
    let edges = try metadata.missingEdges(
      generation: generation,
      after: position.edge,
      limit: limit
    )
    position.edge = edges.last?.id ?? position.edge
    return edges
  }

  /// The missing records or links, if they are more than the guard allows.
  private func excess(
    generation: Int64,
    _ limits: SweepGuard
  ) throws -> ImportEffect.StoppedSweep? {
    for counts in [
      try metadata.missingCount(generation: generation),
      try metadata.missingEdgeCount(generation: generation),
    ] where !limits.allows(counts.missing, of: counts.known) {
      return .init(missing: counts.missing, known: counts.known)
    }
    return nil
  }

  /// Whether the delete rules of a missing object would delete an object that is on the server: a
  /// device that deleted the first would have deleted the second.
  private func deletionCascadesToPresent(_ record: RecordMetadata, generation: Int64) throws -> Bool
  {
    try deletionTakes(record) { $0.tag != nil && $0.generation >= generation }
  }

  /// Whether the deletion of a record's object would cascade to an object whose record meets a condition.
  func deletionTakes(
    _ record: RecordMetadata,
    where isMeant: (RecordMetadata) throws -> Bool
  ) throws -> Bool {
    guard let start = reference(of: record) else { return false }
    var visited: Set<RowReference> = [start]
    var rest = [start]
    while let reference = rest.popLast() {
      for victim in try cascade(from: reference) where visited.insert(victim).inserted {
        if let other = try recordMetadata(of: victim), try isMeant(other) { return true }
        rest.append(victim)
      }
    }
    return false
  }

  /// The objects that the deletion of an object directly deletes.
  private func cascade(from reference: RowReference) throws -> [RowReference] {
    guard let name = rows.entityName(of: reference),
      let layout = mapping.entity(named: name)?.layout
    else { return [] }
    var victims: [RowReference] = []
    let row = try rows.row(reference)
    for slot in layout.toOnes where slot.deleteRule == .cascadeDeleteRule {
      if let index = slot.rowIndex, case .reference(let victim)? = row?.values[index] {
        victims.append(victim)
      }
    }
    for slot in layout.toManys where slot.deleteRule == .cascadeDeleteRule {
      victims += try rows.destinations(of: slot.description, from: reference)
    }
    return victims
  }

  /// Ends a read of a server that lost data: records that it no longer has are created again.
  ///
  /// Returns whether more is left to do.
  package func sendMissing(
    generation: Int64,
    limit: Int,
    from position: inout SweepPosition
  ) throws -> Bool {
    let group = try rows.lastTransactionNumber()
    let edges = try missingEdges(generation: generation, limit: limit, from: &position)
    for edge in edges { try sendAgain(edge, generation: generation, group: group) }
    let records = try missingRecords(generation: generation, limit: limit, from: &position)
    for record in records { try sendAgain(record, generation: generation, group: group) }
    return edges.count == limit || records.count == limit
  }

  private func sendAgain(_ record: RecordMetadata, generation: Int64, group: Int64) throws {
    // Another device may send the deleted record again.
    if record.pending == .delete, record.sequence == nil { return try removeUnsent(record) }
    var record = record
    record.generation = generation
    if record.sequence == nil, record.key != nil,
      let entity = mapping.entity(named: record.entityName)
    {
      try resend(&record, entity, group: group)
    }
    try metadata.update(record)
  }

  private func sendAgain(_ edge: EdgeMetadata, generation: Int64, group: Int64) throws {
    guard edge.pending != .delete else { return try removeUnsent(edge) }
    var edge = edge
    edge.generation = generation
    if edge.sequence == nil {
      edge.resend(group: group)
      // The edge waits for its object, and is sent once that has arrived.
      if !edge.isLinked { edge.pending = .nothing }
    }
    try metadata.update(edge)
  }
}
