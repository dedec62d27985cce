// How an engine sends. `SyncEngineState` decides which changes stay pending.
extension CKSyncEngine {
  /// The failures of one send: a refused change is not sent twice in it.
  private struct Progress {
    var failures: [AnyHashable: any Error] = [:]
    /// The records of changes at which the service failed in an earlier send, and that wait for their
    /// retry.
    private let waitingRecords: Set<CKRecord.ID>
    let waiting: [PendingRecordMark]
    /// The pending changes that were sent.
    var sent: [PendingRecordMark] = []
    /// Whether the service has accepted or refused a change in this send.
    var hasAnswer = false

    init(waiting: [PendingRecordMark]) {
      self.waiting = waiting
      waitingRecords = Set(waiting.map(\.change.recordID))
    }

    func hasFailed(_ id: AnyHashable) -> Bool {
      failures[id] != nil || (id.base as? CKRecord.ID).map(waitingRecords.contains) == true
    }

    /// The changes at which the service itself failed.
    var broken: [PendingRecordMark] {
      sent.filter { (failures[$0.change.recordID] as? CKError)?.isParkable == true }
    }
  }

  /// The changes that the delegate was offered when it had no more records to send.
  struct Offered: Sendable {
    /// The pending changes; those of them that are still pending have no record.
    var changes: PendingChanges<CKRecord.ID, PendingRecordZoneChange>
    /// How often the app had set the flag for untracked changes.
    var untracked: Int
  }

  /// Sends the pending changes and reports the outcome to the delegate.
  ///
  /// Returns what the delegate was offered; nil if the delegate was deallocated.
  @discardableResult
  func send(_ context: SendChangesContext) async throws(CKError) -> Offered? {
    let database = self.database.pinned(to: try await ensureAccount())
      .configured(configuration: nil, group: context.options.operationGroup)
    await deliver(.willSendChanges(Event.WillSendChanges(context: context)))
    let outcome: Result<Offered?, CKError>
    do throws(CKError) {
      outcome = .success(try await sendAll(context, to: database))
    } catch {
      outcome = .failure(error)
    }
    await deliverState()
    await deliver(.didSendChanges(Event.DidSendChanges(context: context)))
    return try outcome.get()
  }

  private func sendAll(
    _ context: SendChangesContext,
    to database: CKDatabase
  ) async throws(CKError) -> Offered? {
    var progress = Progress(waiting: waitingChanges(context.reason))
    defer { planSendRetry(of: progress.broken, still: progress.waiting) }
    var offered: Offered?
    while true {
      if Task.isCancelled { throw CKError(transport: CancellationError()) }
      let changes = state.pendingDatabaseChanges.filter {
        context.options.scope.contains($0) && !progress.hasFailed($0.zoneID)
      }
      guard changes.isEmpty else {
        let some = Array(changes.prefix(RecordModification.operationLimit))
        try await send(some, to: database, &progress)
        continue
      }
      // A change that is added while the delegate creates the batch may not be in it.
      let before = state.value.recordChanges
      let untracked = state.untrackedCount
      guard let delegate else { break }
      guard let batch = await delegate.nextRecordZoneChangeBatch(context, syncEngine: self),
        batch.count > 0
      else {
        if context.options.scope == .all { state.settleUntrackedChanges(untracked) }
        offered = Offered(changes: before, untracked: untracked)
        break
      }
      let rest = Self.part(of: batch, after: progress)
      guard rest.count > 0 else { break }
      try await send(rest, pendingBefore: before, to: database, &progress)
    }
    if !progress.failures.isEmpty { throw .partialFailure(progress.failures) }
    return offered
  }

  /// The part of a batch that was not refused during this send.
  ///
  /// A refused change that is pending again waits for the next send; in an atomic batch all changes
  /// of its zone wait with it.
  private static func part(
    of batch: RecordZoneChangeBatch,
    after progress: Progress
  ) -> RecordZoneChangeBatch {
    let recordIDs = batch.recordsToSave.map(\.recordID) + batch.recordIDsToDelete
    let refused = recordIDs.filter { progress.hasFailed($0) }
    guard !refused.isEmpty else { return batch }
    let zones = batch.atomicByZone ? Set(refused.map(\.zoneID)) : []
    let names = Set(refused)
    func waits(_ recordID: CKRecord.ID) -> Bool {
      names.contains(recordID) || zones.contains(recordID.zoneID)
    }
    var part = batch
    part.recordsToSave.removeAll { waits($0.recordID) }
    part.recordIDsToDelete.removeAll { waits($0) }
    return part
  }

  // MARK: Zones

  private func send(
    _ changes: [PendingDatabaseChange],
    to database: CKDatabase,
    _ progress: inout Progress
  ) async throws(CKError) {
    let marks = state.value.databaseChanges.marks(of: changes)
    var saves: [CKRecordZone] = []
    var deletes: [CKRecordZone.ID] = []
    for change in changes {
      switch change {
      case .saveZone(let zone): saves.append(zone)
      case .deleteZone(let zoneID): deletes.append(zoneID)
      }
    }
    // Deleting a zone also removes the pending changes of its records.
    let doomed = state.value.recordChanges.changes.filter { deletes.contains($0.recordID.zoneID) }
    let doomedMarks = state.value.recordChanges.marks(of: doomed)

    var saved: [CKRecordZone.ID: Result<CKRecordZone, CKError>] = [:]
    var deleted: [CKRecordZone.ID: Result<Void, CKError>] = [:]
    var abort: CKError?
    do {
      let results = try await database.modifyRecordZones(saving: saves, deleting: deletes)
      saved = results.saveResults.mapValues { $0.mapError { CKError(transport: $0) } }
      deleted = results.deleteResults.mapValues { $0.mapError { CKError(transport: $0) } }
    } catch {
      let error = CKError(transport: error)
      abort = error
      for zone in saves { saved[zone.zoneID] = .failure(error) }
      for zoneID in deletes { deleted[zoneID] = .failure(error) }
    }
    let outcomes = Self.errors(saved).merging(Self.errors(deleted)) { first, _ in first }
    let gone = deleted.filter { $0.value.error == nil }.keys
    state.update { state in
      for mark in marks {
        let error = outcomes[mark.change.zoneID] ?? nil
        if let error, SyncEngineState.retries(error) { continue }
        state.databaseChanges.settle(mark)
      }
      for mark in doomedMarks where gone.contains(mark.change.recordID.zoneID) {
        state.recordChanges.settle(mark)
      }
      for zoneID in gone { state.didDelete(zoneID) }
    }
    await deliver(
      .sentDatabaseChanges(
        Event.SentDatabaseChanges(
          savedZones: saves.compactMap { try? saved[$0.zoneID]?.get() },
          failedZoneSaves: saves.compactMap { zone in
            saved[zone.zoneID]?.error.map {
              Event.SentDatabaseChanges.FailedZoneSave(zone: zone, error: $0)
            }
          },
          deletedZoneIDs: deletes.filter { gone.contains($0) },
          failedZoneDeletes: Self.errors(deleted).compactMapValues { $0 }
        )
      )
    )
    await deliverState()
    try finish(outcomes, abort, &progress)
  }

  // MARK: Records

  private func send(
    _ batch: RecordZoneChangeBatch,
    pendingBefore: PendingChanges<CKRecord.ID, PendingRecordZoneChange>,
    to database: CKDatabase,
    _ progress: inout Progress
  ) async throws(CKError) {
    let changes =
      batch.recordsToSave.map { PendingRecordZoneChange.saveRecord($0.recordID) }
      + batch.recordIDsToDelete.map { PendingRecordZoneChange.deleteRecord($0) }
    let marks = pendingBefore.marks(of: changes)
    progress.sent += marks
    let outcome = await SyncEngineBatch(batch, to: database)
    let errors = Self.errors(outcome.saves).merging(Self.errors(outcome.deletes)) { first, _ in
      first
    }
    state.update { state in
      for mark in marks {
        // A change that was not sent stays as it is.
        guard let error = errors[mark.change.recordID] else { continue }
        state.didSend(mark, error)
      }
    }
    await deliver(
      .sentRecordZoneChanges(
        Event.SentRecordZoneChanges(
          savedRecords: batch.recordsToSave.compactMap { try? outcome.saves[$0.recordID]?.get() },
          failedRecordSaves: batch.recordsToSave.compactMap { record in
            outcome.saves[record.recordID]?.error.map {
              Event.SentRecordZoneChanges.FailedRecordSave(record: record, error: $0)
            }
          },
          deletedRecordIDs: batch.recordIDsToDelete.filter {
            outcome.deletes[$0].map { $0.error == nil } ?? false
          },
          failedRecordDeletes: Self.errors(outcome.deletes).compactMapValues { $0 }
        )
      )
    )
    await deliverState()
    try finish(errors, outcome.abort, &progress)
    // The delegate would offer the changes that were not sent again at once.
    if outcome.isStopped { throw .partialFailure(progress.failures) }
  }

  private static func errors<Key, Value>(
    _ results: [Key: Result<Value, CKError>]
  ) -> [Key: CKError?] {
    results.mapValues(\.error)
  }

  /// Stores the failures; throws an error that would also fail the next request.
  private func finish<Key: Hashable>(
    _ errors: [Key: CKError?],
    _ abort: CKError?,
    _ progress: inout Progress
  ) throws(CKError) {
    // If the service answered nothing, it is the cause and not the changes: the schedule tries all of them again.
    if let abort, SyncEngineState.retries(abort), !(abort.isParkable && progress.hasAnswer) {
      throw abort
    }
    if errors.values.contains(where: { $0.map(SyncEngineState.retries) != true }) {
      progress.hasAnswer = true
    }
    for case (let key, let error?) in errors { progress.failures[AnyHashable(key)] = error }
    if let abort, SyncEngineState.retries(abort) { throw abort }
    let passing = errors.values.compactMap { $0 }
      .first { SyncEngineState.retries($0) && !$0.isParkable }
    if passing != nil { throw .partialFailure(progress.failures) }
  }
}
