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
  func applyDeletion(of record: BookedRecord) throws {
    let group = try rows.lastTransactionNumber()
    if let reference = reference(of: record), let row = try rows.row(reference) {
      if record.hasUnconfirmedEdits, let entity = mapping.entity(named: record.entityName) {
        try keepLosingEdit(
          record,
          fields: try serialize(row, entity).fields,
          reason: "Another device deleted an object that was edited here."
        )
        context.journal.note(
          .merge,
          .deleteWon,
          cause: "\(record.entityName) was deleted on another device and edited here.",
          effect: "The object is gone; the edit is kept in the recovery list."
        ) { $0.recordNames = [record.name] }
      }
      for gone in try rows.delete(reference) where gone != reference {
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
  /// Returns whether more is left to do.
  package func sweepMissing(
    generation: Int64,
    limit: Int,
    _ effect: inout ImportEffect
  ) throws
    -> Bool
  {
    let edges = try books.missingEdges(generation: generation, limit: limit)
    for edge in edges { try applyDeletion(of: edge) }
    let records = try books.missingRecords(generation: generation, limit: limit)
    for record in records {
      guard let record = try books.record(named: record.name) else { continue }
      if record.pending == .delete {
        try books.remove(record)
      } else {
        if !record.hasUnconfirmedEdits { try keepSwept(record) }
        try applyDeletion(of: record)
        effect.deleted.append(record.name)
      }
    }
    return edges.count == limit || records.count == limit
  }

  /// That a record is missing is weaker news than a tombstone: its object can be had back.
  private func keepSwept(_ record: BookedRecord) throws {
    guard let entity = mapping.entity(named: record.entityName),
      let reference = reference(of: record), let row = try rows.row(reference)
    else { return }
    try keepLosingEdit(
      record,
      fields: try serialize(row, entity).fields,
      reason: "The record was missing when the zone was read from the start."
    )
  }
}
