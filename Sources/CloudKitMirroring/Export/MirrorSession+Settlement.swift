import Effects
import Foundation
import OpenCoreData
import WatershedSQLite

extension MirrorSession {
  /// Records the results of a batch in the metadata.
  ///
  /// `part` is that of the operations whose results are recorded; the batch stays open until the last part is.
  /// `fetched` are records as the server has them, for conflicts whose outcome lacks them. `confirmed` are
  /// those whose older copies the feed has been read since: the server was not restored. `isRepeat` says
  /// that the batch was sent before.
  package func settle(
    _ batch: CloudBatch,
    _ outcomes: [CloudOutcome],
    part: Range<Int>? = nil,
    fetched: [String: CloudRecord],
    confirmed: Set<String> = [],
    isRepeat: Bool = false
  ) throws -> BatchSettlement {
    var result = BatchSettlement()
    let generation = try metadata.zone(context.zone).generation
    let part = part ?? batch.operations.indices
    for (operation, outcome) in zip(batch.operations, outcomes).dropFirst(part.lowerBound)
      .prefix(part.count)
    {
      let reply = OperationReply(
        operation: operation,
        outcome: outcome,
        sequence: batch.sequence,
        generation: generation,
        serverCopy: outcome.serverCopy ?? fetched[operation.name],
        isRepeat: isRepeat
      )
      if operation.isEdge {
        try settleEdge(reply, &result)
        continue
      }
      if !confirmed.contains(operation.name), try postpone(reply, &result) { continue }
      try settleRecord(reply, &result)
    }
    // A batch whose records are settled in part is repeated after a crash: the results are the same, and those
    // of settled records are ignored.
    guard part.upperBound == batch.operations.count else { return result }
    try metadata.dropBatch(batch.sequence)
    if try metadata.text(.settledDevice) != batch.device {
      try metadata.setMeta(.settledDevice, .text(batch.device))
    }
    result.files = batch.files
    return result
  }

  /// Makes all changes of a batch pending again, because the server has none of it.
  ///
  /// `found` are records that the server has. The batch's files are not removed: see ``CloudBatch/files``.
  @discardableResult
  package func abandon(
    _ batch: CloudBatch,
    found: [String: CloudRecord] = [:],
    part: Range<Int>? = nil
  ) throws -> BatchSettlement {
    try settle(
      batch,
      batch.operations.map { operation in
        found[operation.name].map { .conflict($0) } ?? .batchFailed
      },
      part: part,
      fetched: [:],
      isRepeat: true
    )
  }

  /// Postpones a conflict if the server's copy is older than the last agreed one.
  ///
  /// Merging it now would treat the values that a restored server lost as edits of others. Returns
  /// whether it was postponed.
  private func postpone(
    _ reply: OperationReply,
    _ result: inout BatchSettlement
  ) throws -> Bool {
    guard case .conflict = reply.outcome, let server = reply.serverCopy,
      var record = try metadata.record(named: reply.operation.name),
      record.sequence == reply.sequence,
      record.stamps.isNewer(than: server.stamps), try !isOtherServer()
    else { return false }
    record.requeue()
    try metadata.update(record)
    result.outdated.append(record.name)
    return true
  }

  /// Treats a batch without a reply as saved: a planted bug.
  func settleAsSaved(_ batch: CloudBatch) throws {
    let outcomes = batch.operations.map { operation in
      operation.kind == .delete
        ? CloudOutcome.deleted : .saved(tag: operation.tag ?? "", stamps: RecordStamps())
    }
    _ = try settle(batch, outcomes, fetched: [:])
  }

  // MARK: Records

  private func settleRecord(_ reply: OperationReply, _ result: inout BatchSettlement) throws {
    let operation = reply.operation
    guard let record = try metadata.record(named: operation.name),
      record.sequence == reply.sequence
    else { return }
    try settleTombstone(of: record, reply.outcome, &result)
    switch reply.outcome {
    case .saved(let tag, let stamps):
      try settleSaved(record, reply, tag: tag, stamps: stamps, &result)
    case .deleted:
      try settleDeleted(record, operation, &result)
    case .notFound:
      try settleVanished(record, operation, &result)
    case .conflict, .exists:
      if let server = reply.serverCopy {
        try settleConflict(record, reply, server, &result)
      } else if operation.kind == .create {
        // Neither the reply nor the look-up has the record: it was deleted between the two.
        try requeue(record, after: .batchFailed, &result)
      } else {
        try settleVanished(record, operation, &result)
      }
    case .batchFailed, .later:
      try requeue(record, after: reply.outcome, &result)
    case .refused(let reason):
      try park(record, reason: reason, &result)
    }
  }

  /// Makes the fields that the server has saved the record's base.
  private func settleSaved(
    _ saved: RecordMetadata,
    _ reply: OperationReply,
    tag: String,
    stamps: RecordStamps,
    _ result: inout BatchSettlement
  ) throws {
    var record = saved
    let operation = reply.operation
    if let imported = record.tag, imported != operation.tag, imported != tag {
      // The reply is a kept one: the import has since read a later version of the record, by another device.
      try metadata.keepUnreadable(
        record.name,
        reason: "The reply to its batch is older than the copy that was imported since."
      )
      result.doubtful.append(record.name)
    }
    let changed = ChangedFields(set: operation.set.values, removed: operation.removed)
    let base = operation.kind == .create ? FieldBag() : record.base ?? FieldBag()
    record.base = changed.applied(to: base)
    record.tag = tag
    record.stamps = stamps
    record.generation = reply.generation
    record.endSending()
    if context.effects.has(.clearMarkTooEarly) {
      record.pending = .nothing
      record.properties = []
    }
    try metadata.update(record)
    if operation.kind == .create { try metadata.forgetTrusted(of: record.name) }
    result.saved.append(record.name)
  }

  /// Merges the server's copy of a record that another device has changed or created; the record is sent again.
  private func settleConflict(
    _ conflicting: RecordMetadata,
    _ reply: OperationReply,
    _ serverCopy: CloudRecord,
    _ result: inout BatchSettlement
  ) throws {
    var record = conflicting
    var server = serverCopy
    let operation = reply.operation
    var repeated: RepeatedUpdate?
    if reply.isRepeat, operation.kind == .update, let base = record.base,
      let entity = mapping.entity(named: record.entityName)
    {
      repeated = record.compare(operation, since: base, server: server.fields, entity)
    }
    if operation.kind == .create {
      // Our own creation whose reply was lost, or another device's record of the same name: the
      // sent fields are the base of both.
      record.noteCreation(
        operation,
        server: server.fields,
        mapping.entity(named: record.entityName)
      )
    }
    record.requeue()
    if context.effects.has(.overwriteOnConflict), operation.kind == .update,
      let entity = mapping.entity(named: record.entityName)
    {
      record.tag = server.tag
      record.base = FieldBag()
      record.properties = Set(entity.fieldProperties)
      result.merged.append(record.name)
      return try metadata.update(record)
    }
    try metadata.update(record)
    if context.effects.has(.mergeWithoutFiles) {
      server.fields = FieldBag(
        server.fields.values.filter { _, value in
          if case .asset = value { return false }
          return true
        }
      )
    }
    try apply(server, generation: record.generation, repeated: repeated)
    result.merged.append(record.name)
  }

  /// Parks a record that the server refused.
  private func park(
    _ record: RecordMetadata,
    reason: String,
    _ result: inout BatchSettlement
  ) throws {
    try requeue(record, after: .refused(reason: reason), &result)
    context.journal.note(
      .export,
      .recordParked,
      cause: reason,
      effect: "The record of a \(record.entityName) is parked and retried later; "
        + "all other records are exported."
    ) { $0.recordNames = [record.name] }
  }

  /// Handles a record that is missing on the server: it was deleted, or lost.
  ///
  /// A deletion is reported by the feed, which is read next; no object is deleted because of a
  /// reply alone.
  private func settleVanished(
    _ record: RecordMetadata,
    _ operation: CloudOperation,
    _ result: inout BatchSettlement
  ) throws {
    guard operation.kind != .delete else {
      return try settleDeleted(record, operation, isVanished: true, &result)
    }
    var record = record
    record.requeue()
    try metadata.update(record)
    if operation.kind == .update {
      result.vanished.append(record.name)
    } else {
      result.requeued += 1
    }
  }

  /// Removes a record from the metadata after the server deleted it for this store.
  ///
  /// `isVanished` says that the server had no record to delete.
  private func settleDeleted(
    _ record: RecordMetadata,
    _ operation: CloudOperation,
    isVanished: Bool = false,
    _ result: inout BatchSettlement
  ) throws {
    result.deleted.append(record.name)
    try lookUpIfImported(record.name, record.tag, since: operation, &result)
    guard record.pending == .save, record.key != nil else {
      if isVanished { try keepVanishedDeletion(record.name, &result) }
      return try metadata.remove(record)
    }
    // The object was restored from the recovery list while its deletion was being sent.
    var record = record
    record.noteDeletion()
    try metadata.update(record)
  }

  /// Requests a look-up of a record that was imported after its deletion was sent: the reply is a kept one,
  /// and another device has restored the record after it.
  private func lookUpIfImported(
    _ name: String,
    _ tag: String?,
    since operation: CloudOperation,
    _ result: inout BatchSettlement
  ) throws {
    guard let tag, tag != operation.tag else { return }
    try metadata.keepUnreadable(
      name,
      reason: "The reply to its deletion is older than the copy that was imported since."
    )
    result.doubtful.append(name)
  }

  /// Marks records for creation that the server lacks and whose deletion the feed did not report.
  package func createAgain(_ names: some Sequence<String>) throws {
    let group = try rows.lastTransactionNumber()
    for name in names {
      guard var record = try metadata.record(named: name), record.pending == .save,
        // A deletion that the feed did report may wait for an unreadable record.
        record.sequence == nil, try !metadata.isGoneRecord(name),
        let entity = mapping.entity(named: record.entityName)
      else { continue }
      try resend(&record, entity, group: group)
      try metadata.update(record)
    }
  }

  // MARK: Edges

  private func settleEdge(_ reply: OperationReply, _ result: inout BatchSettlement) throws {
    let operation = reply.operation
    let outcome = reply.outcome
    guard var edge = try metadata.edge(named: operation.name), edge.sequence == reply.sequence
    else { return }
    if try edge.isBeingCreated && metadata.isGoneEdge(edge.name) {
      // A tombstone was read while the batch was open: an older record's, or this one's.
      if case .saved = outcome {
        try metadata.keepUnreadable(
          edge.name,
          reason: "Another device may have deleted it since this device created it."
        )
        result.doubtful.append(edge.name)
      } else {
        try metadata.forgetGoneEdge(edge.name)
      }
    }
    switch outcome {
    case .saved(let tag, let stamps):
      edge.tag = tag
      edge.stamps = stamps
      edge.generation = reply.generation
      edge.endSending()
      try metadata.update(edge)
      result.saved.append(edge.name)
    case .deleted, .notFound:
      guard operation.kind == .delete else {
        return try requeue(edge, after: .batchFailed, &result)
      }
      try metadata.keepRemovedEdge(edge.name)
      if edge.pending == .save {
        // The link was created again while its deletion was being sent. Without the times of the deleted record it
        // is not taken for one that a lost zone had.
        edge.tag = nil
        edge.stamps = RecordStamps()
        if case .notFound = outcome { edge.noteDoubt() }
        edge.endSending()
        try metadata.update(edge)
      } else {
        if edge.isLinked { try unlink(edge) }
        try metadata.remove(edge)
        try lookUpIfImported(edge.name, edge.tag, since: operation, &result)
        if case .notFound = outcome { try keepVanishedDeletion(edge.name, &result) }
      }
      result.deleted.append(edge.name)
    case .conflict, .exists:
      // Edges are never edited, so any tag of the server's is current.
      edge.requeue()
      if let server = reply.serverCopy {
        edge.tag = server.tag
        edge.stamps = server.stamps
        if edge.pending == .save { edge.pending = .nothing }
      }
      try metadata.update(edge)
      result.merged.append(edge.name)
    case .batchFailed, .later, .refused:
      try requeue(edge, after: outcome, &result)
    }
  }

  // MARK: Both

  /// Makes a failed change pending again, or parks it if the server refused it.
  private func requeue(
    _ change: some ChangeMetadata,
    after outcome: CloudOutcome,
    _ result: inout BatchSettlement
  ) throws {
    var change = change
    change.requeue()
    switch outcome {
    case .later(let seconds): result.postpone(seconds: seconds)
    case .refused(let reason):
      change.parked = reason
      result.refused[change.name] = reason
    default: result.requeued += 1
    }
    try change.save(in: metadata)
  }
}
