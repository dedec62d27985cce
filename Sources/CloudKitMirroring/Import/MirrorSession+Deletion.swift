import Foundation
import OpenCoreData

extension MirrorSession {
  func applyDeletion(of edge: BookedEdge) throws {
    // A tombstone of an earlier record of the same name says nothing about one being made now.
    guard edge.pending != .save || edge.tag != nil else { return }
    if edge.isLinked { try unlink(edge) }
    try books.remove(edge)
  }

  /// Deletes the object of a record that another device deleted.
  ///
  /// What no server has of it, and of the objects that its delete rules take along, is kept for
  /// recovery; all of it where the deletion is only concluded.
  func applyDeletion(of record: BookedRecord, isConcluded: Bool = false) throws {
    let group = try rows.lastTransactionNumber()
    if let reference = reference(of: record) {
      if record.hasUnconfirmedEdits {
        context.journal.note(
          .merge,
          .deleteWon,
          cause: "\(record.entityName) was deleted on another device and edited here.",
          effect: "The object is gone; the edit is kept in the recovery list."
        ) { $0.recordNames = [record.name] }
      }
      let gone = try rows.delete(reference) { row in
        try keepBeforeDeletion(
          row,
          isConcluded
            ? "The record was missing when the zone was read from the start."
            : row.reference == reference
              ? "Another device deleted an object that was edited here."
              : "Another device deleted the object that this one belonged to.",
          isWhole: isConcluded
        )
      }
      for gone in gone where gone != reference {
        // What went with it by a delete rule goes at the server too; where the other device sent
        // that deletion as well, it arrives first and nothing is left to send.
        if let other = try booked(gone) { try forget(other, group: group) }
      }
    }
    for edge in try books.edges(touching: record.name) { try forget(edge, group: group) }
    try books.unpark(record: record.name)
    try books.remove(record)
  }

  /// Ends a reading from the start: what the server once had and no longer has was deleted there.
  ///
  /// Where that is more than the guard allows, nothing is deleted: the objects stay as they are, and
  /// the effect says so. Returns whether more is left to do.
  package func sweepMissing(
    generation: Int64,
    limit: Int,
    guard limits: SweepGuard,
    _ effect: inout ImportEffect
  ) throws
    -> Bool
  {
    let (missing, known) = try books.missingCount(generation: generation)
    guard limits.allows(missing, of: known) else {
      effect.stoppedSweep = .init(missing: missing, known: known)
      return false
    }
    let edges = try books.missingEdges(generation: generation, limit: limit)
    for edge in edges { try applyDeletion(of: edge) }
    let records = try books.missingRecords(generation: generation, limit: limit)
    for record in records {
      guard let record = try books.record(named: record.name) else { continue }
      if record.pending == .delete {
        try books.remove(record)
      } else {
        try applyDeletion(of: record, isConcluded: true)
        effect.deleted.append(record.name)
      }
    }
    return edges.count == limit || records.count == limit
  }

  /// Keeps an object that is about to go, where it has edits that no server has, or in any case.
  private func keepBeforeDeletion(_ row: Row, _ reason: String, isWhole: Bool) throws {
    guard let entityName = rows.entityName(of: row.reference),
      let entity = mapping.entity(named: entityName)
    else { return }
    let record = try booked(row.reference)
    guard isWhole || record?.hasUnconfirmedEdits ?? true else { return }
    // Long values are kept themselves, not their fingerprints, and links by the names they lead to.
    let serializer = RecordSerializer(budget: AssetBudget(limit: .max))
    var fields = try serializer.serialize(row.values, entity) { try recordName(of: $0) }.fields
    for relationship in entity.manyToManys {
      let names = try rows.destinations(of: relationship.description, from: row.reference)
        .compactMap { try recordName(of: $0) }
      guard !names.isEmpty else { continue }
      fields[relationship.name] = .string(names.sorted().joined(separator: "\n"))
    }
    let name = record?.name ?? "\(entityName)/\(row.reference.key)"
    try books.keep(
      RecoveredEdit(
        record: name,
        entityName: entityName,
        reason: reason,
        noted: context.effects.now.timeIntervalSinceReferenceDate,
        fields: fields
      )
    )
  }

  /// Ends a reading of a server that lost data: what it no longer has is created again.
  ///
  /// Returns whether more is left to do.
  package func sendMissing(generation: Int64, limit: Int) throws -> Bool {
    let group = try rows.lastTransactionNumber()
    let edges = try books.missingEdges(generation: generation, limit: limit)
    for var edge in edges {
      guard edge.isLinked || edge.sequence != nil, edge.pending != .delete else {
        try books.remove(edge)
        continue
      }
      edge.generation = generation
      if edge.sequence == nil { edge.resend(group: group) }
      try books.update(edge)
    }
    let records = try books.missingRecords(generation: generation, limit: limit)
    for var record in records {
      if record.pending == .delete, record.sequence == nil {
        try books.remove(record)
        continue
      }
      record.generation = generation
      if record.sequence == nil, record.key != nil,
        let entity = mapping.entity(named: record.entityName)
      {
        record.resend(entity, group: group)
      }
      try books.update(record)
    }
    return edges.count == limit || records.count == limit
  }
}
