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

  /// Keeps an object that is about to go, where it has edits that no server has, or in any case.
  private func keepBeforeDeletion(_ row: Row, _ reason: String, isWhole: Bool) throws {
    guard let entityName = rows.entityName(of: row.reference),
      let entity = mapping.entity(named: entityName)
    else { return }
    let record = try booked(row.reference)
    guard isWhole || record?.hasUnconfirmedEdits ?? true else { return }
    if context.effects.has(.skipRecovery) { return }
    // Long values are kept themselves, not their fingerprints, and links by the names they lead to.
    let serializer = RecordSerializer(budget: AssetBudget(limit: .max))
    var fields = try serializer.serialize(row.values, entity) { try recordName(of: $0) }.fields
    for relationship in entity.manyToManys {
      let names = try rows.destinations(of: relationship.description, from: row.reference)
        .compactMap { try recordName(of: $0) }
      guard !names.isEmpty else { continue }
      fields[relationship.name] = .string(names.sorted().joined(separator: "\n"))
    }
    let name = record?.name ?? context.effects.uuid().uuidString
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
}
