/// Batches of which it is not known whether the server has executed them.
extension MirrorSession {
  /// Abandons a batch that the server may have executed; `part` as in
  /// ``settle(_:_:part:fetched:confirmed:isRepeat:)``.
  @discardableResult
  package func abandonInDoubt(
    _ batch: CloudBatch,
    found: [String: CloudRecord] = [:],
    part: Range<Int>? = nil
  ) throws -> BatchSettlement {
    let part = part ?? batch.operations.indices
    if part.lowerBound == 0 { try removeGoneEdges(of: batch) }
    let settlement = try abandon(batch, found: found, part: part)
    // Noted with each part: after a crash between two parts, no batch contains the first part's operations.
    try noteDoubt(about: batch, in: part)
    return settlement
  }

  /// Records outcomes of a repeated batch of which none says whether the server has executed it before.
  package func settleInDoubt(
    _ batch: CloudBatch,
    _ outcomes: [CloudOutcome]
  ) throws -> BatchSettlement {
    try removeGoneEdges(of: batch)
    let settlement = try settle(batch, outcomes, fetched: [:], isRepeat: true)
    try noteDoubt(about: batch)
    return settlement
  }

  /// Removes the links that a batch was to create and that the feed lists as deleted since.
  ///
  /// A tombstone of this device, which has removed and made the link before, says nothing about the batch.
  private func removeGoneEdges(of batch: CloudBatch) throws {
    for operation in batch.operations where operation.isEdge && operation.kind == .create {
      guard let edge = try metadata.edge(named: operation.name), edge.sequence == batch.sequence,
        edge.pending != .save, try metadata.isGoneEdge(edge.name),
        try !metadata.isRemovedEdge(edge.name)
      else { continue }
      try keepLink(edge)
      if edge.isLinked { try unlink(edge) }
      try metadata.remove(edge)
      try metadata.forgetGoneEdge(edge.name)
    }
  }

  /// Makes the unsettled operations of a batch that another copy of the store has settled pending again.
  ///
  /// The feed was read to its end: an edge of the batch that it lists as deleted was created by the other
  /// copy, and deleted since.
  package func replaceSettled(_ batch: CloudBatch) throws {
    try removeGoneEdges(of: batch)
    try abandon(batch)
  }

  /// Notes that the server may have executed a batch that was abandoned: a record that the batch was to create may
  /// be on the server as this store sent it, and one that was made again since may be deleted there.
  package func noteDoubt(about batch: CloudBatch, in part: Range<Int>? = nil) throws {
    for operation in batch.operations[part ?? batch.operations.indices] {
      switch (operation.kind, operation.isEdge) {
      case (.create, false): try noteDoubtfulCreation(operation)
      case (.create, true): try noteDoubtfulCreation(ofEdge: operation.name)
      case (.delete, false): try noteDoubtfulDeletion(operation)
      case (.delete, true): try noteDoubtfulDeletion(ofEdge: operation.name)
      case (.update, _): break
      }
    }
  }

  private func noteDoubtfulCreation(_ operation: CloudOperation) throws {
    guard var record = try metadata.record(named: operation.name), record.tag == nil,
      record.sequence == nil
    else { return }
    // A base from before the zone was lost was agreed with the server. An empty base belongs to an
    // object restored here, which has no agreed values.
    let isRestored = record.base?.values.isEmpty == true
    if !isRestored, record.stamps.created == nil || record.base == nil {
      record.base = operation.set.asBase
    }
    record.sentChange = .doubtful
    try metadata.update(record)
  }

  /// Marks an object as possibly missing on the server: it was restored while its deletion was
  /// being sent.
  ///
  /// The feed may list the tombstone of that deletion.
  private func noteDoubtfulDeletion(_ operation: CloudOperation) throws {
    guard var record = try metadata.record(named: operation.name), record.pending == .save,
      record.key != nil, record.sequence == nil, record.tag == operation.tag
    else { return }
    record.noteDeletion()
    try metadata.update(record)
  }

  private func noteDoubtfulDeletion(ofEdge name: String) throws {
    guard var edge = try metadata.edge(named: name), edge.pending == .save, edge.sequence == nil
    else { return }
    try metadata.keepRemovedEdge(name)
    edge.tag = nil
    edge.stamps = RecordStamps()
    // The server may have it still: where it is removed again, that is remembered.
    edge.noteDoubt()
    try metadata.update(edge)
  }

  private func noteDoubtfulCreation(ofEdge name: String) throws {
    guard var edge = try metadata.edge(named: name), edge.tag == nil, edge.sequence == nil else {
      return
    }
    // Treated as a link that another copy of the store may have sent.
    edge.noteDoubt()
    try metadata.update(edge)
  }

  // MARK: Copies that cannot be read

  /// Notes that the server may have executed operations of a batch that was sent before: it has other copies of
  /// their records, which cannot be read now; `reasons` has the names of these.
  package func noteDoubt(
    about operations: some Sequence<CloudOperation>,
    unread reasons: [String: String]
  ) throws {
    for operation in operations where !operation.isEdge {
      guard let reason = reasons[operation.name] else { continue }
      try metadata.keepUnreadable(operation.name, reason: reason)
      switch operation.kind {
      case .create: try noteDoubtfulCreation(operation)
      case .update: try noteDoubtfulUpdate(operation, reason)
      case .delete: break
      }
    }
  }

  private func noteDoubtfulUpdate(_ operation: CloudOperation, _ reason: String) throws {
    guard var record = try metadata.record(named: operation.name), record.pending == .save,
      record.sequence == nil, record.tag != nil, record.tag == operation.tag
    else { return }
    record.sentChange = .doubtful
    record.parked = reason
    try metadata.update(record)
  }

  // MARK: Deletions

  /// Remembers the deletion of a record that the server did not have.
  ///
  /// If another device has deleted the record, the feed lists the deletion, and the name is forgotten. If the server
  /// lost the record, or the zone was created again, other devices send the record again.
  func keepVanishedDeletion(_ name: String, _ result: inout BatchSettlement) throws {
    // The feed has listed the other device's deletion already.
    guard try !metadata.isGoneRecord(name) && !metadata.isGoneEdge(name) else { return }
    try metadata.keepLostDeletion(name)
    result.hasVanishedDeletions = true
  }

  /// Settles a deletion that the feed listed while an object restored here was being created: the
  /// deletion either precedes the restoration, or another device deleted the restored object.
  func settleTombstone(
    of record: RecordMetadata,
    _ outcome: CloudOutcome,
    _ result: inout BatchSettlement
  ) throws {
    guard try record.isBeingRestored && metadata.isGoneRecord(record.name) else { return }
    if case .saved = outcome {
      try metadata.keepUnreadable(
        record.name,
        reason: "Another device may have deleted it since this device restored it."
      )
      result.doubtful.append(record.name)
    } else {
      try metadata.forgetGoneRecord(record.name)
      try linkWhatWaited(for: record.name)
    }
  }
}
