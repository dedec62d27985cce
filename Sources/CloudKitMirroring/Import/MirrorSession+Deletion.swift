import Effects
import Foundation
import OpenCoreData

extension MirrorSession {
  // MARK: Tombstones of the feed

  /// Notes a deletion that the feed lists, for the end of the feed.
  ///
  /// Applied earlier, it would delete by cascade objects that a later page moves to another owner. The recovery list
  /// keeps the links of a deleted object, so edges are removed after objects.
  package func noteDeletion(of name: String) throws {
    try metadata.forgetUnreadable(name)
    if let record = try metadata.record(named: name) {
      // The reply to an object that is being restored says which deletion it is.
      if try record.isBeingRestored || isOnServer(record) { try metadata.keepGoneRecord(name) }
    } else if try metadata.edge(named: name) != nil {
      try metadata.keepGoneEdge(name)
    } else {
      try metadata.unpark(record: name)
      // The object was deleted here before it was sent; the remembered name is no longer needed.
      _ = try metadata.takeUnsent(name)
    }
  }

  /// Whether a tombstone means this record.
  ///
  /// A record whose first batch is open, or has no known outcome, was created by that batch; a record that this
  /// store has never sent was created by another copy of the store. Both were deleted since. A record that is to be
  /// sent again, because its zone or the server's data was lost, was sent again by another device.
  func isOnServer(_ record: RecordMetadata) throws -> Bool {
    // The object was restored here while its deletion is being sent: the tombstone is that of this deletion, whose
    // reply makes the record a creation.
    if record.isRestoredDuringDeletion { return false }
    // A record without agreed values was restored after its deletion, whose tombstone this may be.
    if record.tag == nil, record.base?.values.isEmpty == true { return false }
    if record.tag != nil || record.sequence != nil || record.isNeverSent || record.isDoubtful {
      return true
    }
    guard record.stamps.created != nil, record.base != nil else { return false }
    return try isListedSinceLoss()
  }

  /// Whether every deletion that the feed lists was made after the zone or the server's data was lost.
  ///
  /// This holds without a re-read, and for a re-read because of an expired token or a newer model: it reads the
  /// server that had none of these records after the loss. A re-read for another reason, such as a restored server,
  /// may list older deletions.
  private func isListedSinceLoss() throws -> Bool {
    switch try metadata.zone(context.zone).rereading {
    case nil, .expired: true
    case .otherServer, .kept: false
    }
  }

  /// Applies the deletions of some records that the feed listed, after a name.
  ///
  /// A deletion that would cascade to an object whose record cannot be read now is postponed: the
  /// record may say that the object has another owner. Returns the last name, or nil at the end.
  package func applyGoneRecords(
    after name: String,
    limit: Int,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws -> String? {
    let names = try metadata.goneRecords(after: name, limit: limit)
    let hasUnreadable = try !names.isEmpty && metadata.unreadableCount() > 0
    var growth = try RecoveryGrowth(metadata)
    for name in names {
      // A cascade may have deleted it meanwhile.
      let known = try metadata.record(named: name)
      if known?.isBeingRestored == true { continue }
      if var record = known, try isOnServer(record) {
        // Postpone the deletion if the object, or one that its cascade would delete, is being looked up.
        if try hasUnreadable
          && (metadata.isUnreadable(name)
            || deletionTakes(record, where: { try metadata.isUnreadable($0.name) }))
        {
          // A read from the start must not treat it as missing.
          record.generation = generation
          try metadata.update(record)
          continue
        }
        try applyDeletion(of: record, isConcluded: isOtherServer())
        effect.deleted.append(name)
      }
      try metadata.forgetGoneRecord(name)
      if try growth.isFull() { return name }
    }
    return names.count == limit ? names.last : nil
  }

  /// Applies the deletions of some edges that the feed listed, after a name; returns the last name, or
  /// nil at the end.
  package func applyGoneEdges(after name: String, limit: Int) throws -> String? {
    let names = try metadata.goneEdges(after: name, limit: limit)
    for name in names {
      if let edge = try metadata.edge(named: name) {
        // The reply to the open batch says whether this tombstone is older than the edge it creates.
        if edge.isBeingCreated { continue }
        try applyDeletion(of: edge)
      }
      try metadata.forgetGoneEdge(name)
    }
    return names.count == limit ? names.last : nil
  }

  func applyDeletion(of edge: EdgeMetadata) throws {
    // The link was removed here and created again: the tombstone was written by this device's own
    // removal, whose reply was lost.
    if edge.sentKind == .delete, edge.pending == .save { return }
    if try edge.isUnsentFromBefore && metadata.zone(context.zone).rereading == nil
      && !metadata.isRemovedEdge(edge.name)
    {
      // Another copy of the store has sent the link, and another device removed it since.
      try keepLink(edge)
    } else {
      // A tombstone of an earlier record of the same name says nothing about one being made now.
      let isMade = edge.tag == nil && (edge.pending == .save || edge.sentKind == .save)
      guard try !isMade || isSentAgain(edge) else { return }
      // A restored server may have lost the link that was made again.
      if try isOtherServer() { try keepLink(edge) }
    }
    if edge.isLinked { try unlink(edge) }
    try metadata.remove(edge)
  }

  /// Whether a tombstone in the feed is of a link that another device sent again, after its zone or the
  /// server's data was lost, and removed since.
  private func isSentAgain(_ edge: EdgeMetadata) throws -> Bool {
    try edge.stamps.created != nil && edge.sequence == nil && isListedSinceLoss()
      && !metadata.isRemovedEdge(edge.name)
  }

  /// Keeps a link that is about to be removed: this device may have made it besides the one that was removed.
  func keepLink(_ edge: EdgeMetadata) throws {
    guard edge.isLinked, let record = try metadata.record(named: edge.edge.firstRecord) else {
      return
    }
    try recovery.keepLink(edge.edge, of: record, .linkRemovedElsewhere)
  }

  /// Applies the deletion of an edge that was in doubt, after a look-up has not found its record.
  func applyDoubtfulDeletion(ofEdge name: String) throws {
    guard try metadata.isGoneEdge(name) else { return }
    if let edge = try metadata.edge(named: name) {
      // A batch that creates it again is open.
      guard edge.sequence == nil else { return }
      try applyDeletion(of: edge)
    }
    try metadata.forgetGoneEdge(name)
  }

  // MARK: Objects

  /// Deletes the object of a record that another device deleted.
  ///
  /// Edits that no server has, of this object and of those that its delete rules delete, are kept
  /// for recovery. All values are kept if the deletion is only inferred, and for objects whose deletion the feed
  /// does not list: the device that deleted their owner did not know that they belonged to it.
  func applyDeletion(of record: RecordMetadata, isConcluded: Bool = false) throws {
    let group = try rows.lastTransactionNumber()
    var nullified: [ParkedLink] = []
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
        let isTakenAlong = row.reference != reference
        nullified += try agreedLinks(to: row.reference)
        if isTakenAlong, context.effects.has(.skipTakenAlong) { return }
        try keepBeforeDeletion(
          row,
          isConcluded
            ? .missingInReading
            : isTakenAlong ? .ownerDeletedElsewhere : .editedHereDeletedElsewhere,
          isWhole: isConcluded || (isTakenAlong && !isListed(row.reference))
        )
      }
      for gone in gone where gone != reference {
        // Objects that a delete rule deleted are deleted on the server too; if the other device
        // sent that deletion as well, it arrives first and none is left to send.
        if let other = try recordMetadata(of: gone) { try forgetWithoutName(other, group: group) }
      }
    }
    for edge in try metadata.edges(touching: record.name) {
      try forget(edge, group: group)
      // This device has not removed the link itself: it returns with its object.
      _ = try metadata.takeUnsent(edge.name)
    }
    try metadata.unpark(record: record.name)
    try metadata.remove(record)
    // The server still has these links unless the deleting device sent their removal. They are
    // parked: each is set again if its target's record returns, as on a device that reads the
    // member after the deletion.
    for link in nullified where try metadata.record(named: link.record)?.key != nil {
      try metadata.park(link)
    }
  }

  /// Whether the feed lists the deletion of an object.
  private func isListed(_ reference: RowReference) throws -> Bool {
    try recordMetadata(of: reference).map { try metadata.isGoneRecord($0.name) } ?? false
  }

  /// The links of members that the deletion of an object sets to nil, and that both sides agree on.
  ///
  /// An import deletes an object also against its rules to deny that; all rules but the cascade leave its members.
  private func agreedLinks(to reference: RowReference) throws -> [ParkedLink] {
    guard let record = try recordMetadata(of: reference),
      let layout = mapping.entity(named: record.entityName)?.layout
    else { return [] }
    var links: [ParkedLink] = []
    for slot in layout.toManys where slot.deleteRule != .cascadeDeleteRule && !slot.inverseIsToMany
    {
      guard let inverse = slot.inverse else { continue }
      for member in try rows.destinations(of: slot.description, from: reference) {
        guard let known = try recordMetadata(of: member), let base = known.base,
          let entity = mapping.entity(named: known.entityName),
          let toOne = entity.toOne(inverse.name), !known.unconfirmed.contains(toOne.name),
          entity.reading(base).fields[toOne.field] == .string(record.name)
        else { continue }
        links.append(
          ParkedLink(
            record: known.name,
            property: toOne.name,
            target: record.name,
            isOneToOne: false
          )
        )
      }
    }
    return links
  }

  /// Applies the deletions that a feed listed before its zone was lost, except those that would
  /// cascade to an object that the feed did not delete.
  func applyDeletionsOfLostZone() throws {
    for name in try metadata.goneRecords(limit: .max) {
      if let record = try metadata.record(named: name), try isOnServer(record),
        try !deletionTakes(
          record,
          where: { try $0.tag != nil && !metadata.isGoneRecord($0.name) }
        )
      {
        try applyDeletion(of: record)
      }
      try metadata.forgetGoneRecord(name)
    }
    for name in try metadata.goneEdges(limit: .max) {
      if let edge = try metadata.edge(named: name), !edge.isBeingCreated {
        try applyDeletion(of: edge)
      }
      try metadata.forgetGoneEdge(name)
    }
  }

  private func isEdited(_ record: RecordMetadata, at reference: RowReference) throws -> Bool {
    try record.hasUnconfirmedEdits || hasUnsentLinks(record, reference)
  }

  /// Keeps an object that is about to be deleted, if it has edits or links that no server has, or `isWhole`
  /// is set.
  private func keepBeforeDeletion(_ row: Row, _ reason: RecoveryReason, isWhole: Bool) throws {
    guard let entityName = rows.entityName(of: row.reference),
      let entity = mapping.entity(named: entityName)
    else { return }
    let record = try recordMetadata(of: row.reference)
    guard try isWhole || record.map({ try isEdited($0, at: row.reference) }) ?? true else { return }
    if context.effects.has(.skipRecovery) { return }
    let name = record?.name ?? context.effects.uuid().uuidString
    try recovery.keepDeleted(row, of: name, entity, reason)
  }
}
