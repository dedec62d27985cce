import Effects
import Foundation
import Synchronization

extension StoreMirror {
  /// The number of objects whose edges one write transaction compares.
  private static let edgeLimit = 500

  /// The number of rounds without progress before the export pauses: a conflict takes two.
  private static let idleRounds = 3

  /// Exports all pending changes.
  func runExport() async throws {
    try await phase(.export, type: 2, cause: "Something was saved.") {
      var total = BatchSettlement()
      log.detail(1, "Beginning automated export - ExportActivity")
      log.detail(2, "Exporting changes since the last history token")
      try await resolveOpenBatch(&total)
      try createVanishedAgain()
      var idle = 0
      while total.vanished.isEmpty, total.outdated.isEmpty, try hasReadZone(),
        let batch = try nextBatch(after: &total)
      {
        log.detail(2, "Found \(batch.operations.count) objects needing export.")
        let isProgress = try await send(batch, isRepeat: false, &total)
        idle = isProgress ? 0 : idle + 1
        guard idle < Self.idleRounds else {
          throw CloudFailure.busy(
            reason: "The server accepted nothing of \(idle) batches in a row.",
            retryAfter: nil
          )
        }
        try Task.checkCancellation()
      }
      log.detail(2, "Found 0 objects needing export.")
      state.withLock { state in
        state.lastExport = effects.now
        state.pace.resetLimits()
      }
      noteVanished(total.vanished)
      state.withLock { $0.findings.noteExport() }
      return PhaseEnd(
        result: (),
        effect: "\(total.saved.count) saved, \(total.deleted.count) deleted, "
          + "\(total.merged.count) merged, \(total.refused.count) refused.",
        problem: refusalError(total)
      )
    }
  }

  /// Whether the zone was read since it was made; otherwise the next round reads it before anything is sent.
  ///
  /// The token of that reading alone shows later that the server was restored from a backup.
  private func hasReadZone() throws -> Bool {
    let zone = try read { try $0.zone(options.zone) }
    guard zone.token == nil, zone.rereading == nil else { return true }
    state.withLock { $0.work.want(.both) }
    return false
  }

  /// Makes the next round read the feed before more is sent: it shows whether these records were
  /// deleted.
  private func noteVanished(_ names: [String]) {
    guard !names.isEmpty else { return }
    state.withLock { state in
      state.findings.noteVanished(names)
      state.work.want(.both)
    }
  }

  /// Makes the next round read the feed before conflicts with older copies are merged: it shows
  /// whether the server was restored.
  func noteOutdated(_ names: [String]) {
    guard !names.isEmpty else { return }
    state.withLock { state in
      state.findings.noteOutdated(names)
      state.work.want(.both)
    }
  }

  /// The next import looks these records up.
  private func noteDoubtful(_ names: [String]) {
    guard !names.isEmpty else { return }
    state.withLock { state in
      state.parked.want()
      state.work.want(.importing)
    }
  }

  /// The feed is read after a merge: both sides of a one-to-one relationship are settled at its end.
  func noteMerged(_ names: [String]) {
    guard !names.isEmpty else { return }
    state.withLock { state in
      state.findings.noteOneToOnes()
      state.work.want(.importing)
    }
  }

  private func createVanishedAgain() throws {
    let names = state.withLock { $0.findings.takeVanished() }
    guard !names.isEmpty else { return }
    try write(MirrorAuthor.exporting) { try $0.createAgain(names.sorted()) }
  }

  /// Repeats a batch without a reply: the server returns its kept reply, or executes the batch now.
  private func resolveOpenBatch(_ total: inout BatchSettlement) async throws {
    if let stuck = try await repeatOpenBatches(&total) { throw stuck.failure }
  }

  /// Repeats batches without a reply; returns the one that the server does not take now.
  private func repeatOpenBatches(_ total: inout BatchSettlement) async throws -> StuckBatch? {
    while let open = try read({ try $0.openBatch() }) {
      let batch = try CloudBatch(encoded: open.payload)
      journal.note(
        .export,
        .batchRepeated,
        cause: "The reply to batch \(batch.sequence) was not received.",
        effect: "The same batch is sent again under its number."
      ) { $0.recordNames = batch.operations.map(\.name) }
      do {
        _ = try await send(batch, isRepeat: true, &total)
      } catch let failure as CloudFailure {
        return StuckBatch(sequence: batch.sequence, failure: failure)
      }
    }
    return nil
  }

  /// Resolves an open batch before an import; a batch that the server refuses now is postponed
  /// until after the import, which does not depend on it.
  ///
  /// Returns the batch that was postponed.
  func resolveOpenBatchBeforeImport() async throws -> StuckBatch? {
    var settled = BatchSettlement()
    guard let stuck = try await repeatOpenBatches(&settled) else {
      noteVanished(settled.vanished)
      // No export event reports this error.
      _ = refusalError(settled)
      return nil
    }
    switch stuck.failure {
    // The import would fail for the same reason. A broken connection may be caused by this batch
    // alone, so it does not stop the import.
    case .notAuthenticated, .accountChanged: throw stuck.failure
    default: return stuck
    }
  }

  /// The next batch; only deletions while the database is full, and then all pending changes once
  /// more.
  private func nextBatch(after total: inout BatchSettlement) throws -> CloudBatch? {
    if total.room == .deleting {
      if let batch = try nextBatch(deletionsOnly: true) { return batch }
      total.room = .deleted
    }
    return try nextBatch(deletionsOnly: false)
  }

  private func nextBatch(deletionsOnly: Bool) throws -> CloudBatch? {
    let limits = state.withLock { $0.pace.limits }
    while true {
      let (batch, isMoreLeft): (CloudBatch?, Bool) = try write(MirrorAuthor.exporting) {
        session in
        let folded = try session.foldHistory(limit: MirrorSession.foldLimit)
        if folded.changes > 0 {
          journal.note(
            .export,
            .historyRead,
            cause: "The history has saves since the last export.",
            effect: "\(folded.changes) objects changed."
          )
        }
        guard folded.isComplete else { return (nil, true) }
        // All objects are compared if history was deleted before it was folded.
        if try session.scan(limit: Self.edgeLimit) { return (nil, true) }
        let isMore = try session.compareEdges(limit: Self.edgeLimit)
        guard !isMore else { return (nil, true) }
        return (try session.assembleBatch(limits: limits, deletionsOnly: deletionsOnly), false)
      }
      if !isMoreLeft { return batch }
      try Task.checkCancellation()
    }
  }

  /// Sends a batch and records its results; returns whether the server accepted anything.
  private func send(
    _ batch: CloudBatch,
    isRepeat: Bool,
    _ total: inout BatchSettlement
  ) async throws -> Bool {
    try await checkAccountEpoch()
    let started = effects.clock.uptime
    noteSending(batch, isRepeat: isRepeat)
    var outcomes: [CloudOutcome]
    do {
      outcomes = try await perform(batch)
    } catch let failure as CloudFailure {
      return try await handle(failure, batch, isRepeat: isRepeat, &total)
    } catch let repetition as RepeatedRequestFailure {
      return try await handle(repetition.failure, batch, isRepeat: true, &total)
    }
    // A file that cannot be read fails its record, and so the batch, before a request asks for the kept reply.
    let isInDoubt = isRepeat && outcomes.allSatisfy { !$0.isConclusive }
    if isInDoubt, try await settleExecuted(batch, &total) { return true }
    let copies = try await lookUpCopies(batch, &outcomes)
    let settled = try record(
      outcomes,
      of: batch,
      copies,
      isRepeat: isRepeat,
      isInDoubt: isInDoubt
    )
    context.assets.remove(settled.files + copies.fetched.values.flatMap(\.fields.files))
    note(settled, batch, duration: effects.clock.uptime - started)
    total.add(settled)
    noteOutdated(settled.outdated)
    noteDoubtful(settled.doubtful)
    noteMerged(settled.merged)
    if settled.hasVanishedDeletions { state.withLock { $0.work.want(.importing) } }
    if settled.mustWait {
      throw CloudFailure.busy(
        reason: "The server asked to retry later.",
        retryAfter: settled.retryAfter
      )
    }
    if settled.isProgress { state.withLock { $0.pace.widenLimits() } }
    if !settled.saved.isEmpty || !settled.deleted.isEmpty { total.refusedInARow = 0 }
    return settled.isProgress
  }

  /// Sends a batch, and returns the server's outcome of each operation.
  private func perform(_ batch: CloudBatch) async throws -> [CloudOutcome] {
    var sent = onTheWire(batch)
    let settled = try read { try $0.text(.settledDevice) }
    // The device of an earlier opening has no batch left once a later device sends one.
    if let settled, settled != batch.device { sent.finishedDevice = settled }
    return try await cloud.modify(options.zone, sent)
  }

  /// The server's copies of records in conflict that a reply lacks.
  private struct LookedUpCopies {
    /// The copies by the names of their records.
    var fetched: [String: CloudRecord] = [:]
    /// The reasons why copies cannot be read, by the names of their records.
    var unread: [String: String] = [:]
  }

  /// Looks up the copies that a reply lacks; the outcome of a record whose copy cannot be read becomes a refusal.
  private func lookUpCopies(
    _ batch: CloudBatch,
    _ outcomes: inout [CloudOutcome]
  ) async throws -> LookedUpCopies {
    let missing = zip(batch.operations, outcomes).compactMap { operation, outcome in
      switch outcome {
      case .conflict(nil), .exists(nil): operation.name
      default: nil
      }
    }
    var copies = LookedUpCopies()
    guard !missing.isEmpty else { return copies }
    let found = try await cloud.lookup(options.zone, missing, keys: context.mapping.desiredKeys)
    for record in found.records { copies.fetched[record.name] = record }
    for (index, operation) in batch.operations.enumerated() {
      // The server's copy cannot be read, so nothing can be merged with it.
      guard let reason = found.unreadable[operation.name] else { continue }
      outcomes[index] = .refused(reason: reason)
      copies.unread[operation.name] = reason
    }
    return copies
  }

  /// Records the results of a batch, those of a part in each transaction.
  private func record(
    _ outcomes: [CloudOutcome],
    of batch: CloudBatch,
    _ copies: LookedUpCopies,
    isRepeat: Bool,
    isInDoubt: Bool
  ) throws -> BatchSettlement {
    let confirmed = state.withLock { $0.findings.confirmed }
    var settled = BatchSettlement()
    for part in parts(of: batch, outcomes.map { $0.serverCopy }, copies.fetched) {
      settled += try writeFolded(MirrorAuthor.importing) { session in
        if isInDoubt { return try session.settleInDoubt(batch, outcomes) }
        let settled = try session.settle(
          batch,
          outcomes,
          part: part,
          fetched: copies.fetched,
          confirmed: confirmed,
          isRepeat: isRepeat
        )
        if isRepeat {
          try session.noteDoubt(about: batch.operations[part], unread: copies.unread)
        }
        return settled
      }
    }
    return settled
  }

  /// The operations whose results one write transaction records each: the files of the server's copies, which
  /// it merges, are in memory until it is committed.
  func parts(
    of batch: CloudBatch,
    _ copies: [CloudRecord?],
    _ fetched: [String: CloudRecord] = [:]
  ) -> [Range<Int>] {
    var parts: [Range<Int>] = []
    var start = 0
    var bytes: Int64 = 0
    for (index, operation) in batch.operations.enumerated() {
      let copy = copies[index] ?? fetched[operation.name]
      let size = copy?.fields.fileBytes ?? 0
      if bytes + size > Int64(options.limits.fileBytes), size > 0, bytes > 0 {
        parts.append(start..<index)
        (start, bytes) = (index, 0)
      }
      bytes += size
    }
    return parts + [start..<batch.operations.count]
  }

  /// The batch with the absolute paths of its files.
  private func onTheWire(_ batch: CloudBatch) -> CloudBatch {
    var batch = batch
    for index in batch.operations.indices {
      for (key, value) in batch.operations[index].set.values {
        guard case .asset(var asset) = value else { continue }
        asset.file = context.assets.path(asset.file)
        batch.operations[index].set[key] = .asset(asset)
      }
    }
    return batch
  }

  private func noteSending(_ batch: CloudBatch, isRepeat: Bool) {
    journal.note(
      .export,
      .batchSent,
      cause: isRepeat ? "The reply was not received." : "These changes were pending.",
      effect: "Batch \(batch.sequence) is being sent."
    ) { event in
      event.recordNames = batch.operations.map(\.name)
      event.saved = batch.operations.filter { $0.kind != .delete }.count
      event.deleted = batch.operations.count - event.saved
      event.bytes = batch.operations.reduce(0) { $0 + $1.byteCount }
    }
  }

  private func note(_ settled: BatchSettlement, _ batch: CloudBatch, duration: Double) {
    journal.note(
      .export,
      .batchSaved,
      cause: "The server answered batch \(batch.sequence).",
      effect: settled.requeued == 0
        ? "It is saved." : "\(settled.requeued) changes wait for the next batch."
    ) { event in
      event.recordNames = settled.saved + settled.deleted
      event.saved = settled.saved.count
      event.deleted = settled.deleted.count
      event.duration = duration
    }
    log.detail(
      3,
      "Batch \(batch.sequence): \(settled.saved.count) saved, \(settled.deleted.count) deleted, "
        + "\(settled.merged.count) merged"
    )
  }
}
