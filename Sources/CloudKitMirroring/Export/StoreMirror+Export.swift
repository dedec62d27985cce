import Foundation

extension StoreMirror {
  /// Objects whose edges one write transaction compares.
  private static let edgeLimit = 500

  /// Sends everything that waits.
  func runExport() async throws {
    try await phase(.export, type: 2, cause: "Something was saved.") {
      var total = BatchSettlement()
      log.detail(1, "Beginning automated export - ExportActivity")
      log.detail(2, "Exporting changes since the last history token")
      try await resolveOpenBatch(&total)
      while let batch = try nextBatch() {
        log.detail(2, "Found \(batch.operations.count) objects needing export.")
        try await send(batch, isRepeat: false, &total)
        try Task.checkCancellation()
      }
      log.detail(2, "Found 0 objects needing export.")
      state.withLock { state in
        state.lastExport = effects.now
        state.limits = options.limits
      }
      return (
        (),
        "\(total.saved.count) saved, \(total.deleted.count) deleted, "
          + "\(total.merged.count) merged, \(total.parked.count) refused."
      )
    }
  }

  /// Repeats a batch whose reply never came: the server answers from its memory, or does it now.
  func resolveOpenBatch(_ total: inout BatchSettlement) async throws {
    while let open = try read({ try $0.openBatch() }) {
      let batch = try CloudBatch(encoded: open.payload)
      journal.note(
        .export,
        .batchRepeated,
        cause: "The reply to batch \(batch.sequence) never came.",
        effect: "The same batch is sent again under its number."
      ) { $0.recordNames = batch.operations.map(\.name) }
      try await send(batch, isRepeat: true, &total)
    }
  }

  private func nextBatch() throws -> CloudBatch? {
    let limits = state.withLock { $0.limits }
    while true {
      let (batch, isMoreToCompare) = try write(MirrorAuthor.exporting) { session in
        let folded = try session.foldHistory()
        if folded > 0 {
          journal.note(
            .export,
            .historyRead,
            cause: "History tells of saves since the last export.",
            effect: "\(folded) objects changed."
          )
        }
        let isMore = try session.compareEdges(limit: Self.edgeLimit)
        return (isMore ? nil : try session.assembleBatch(limits: limits), isMore)
      }
      if !isMoreToCompare { return batch }
    }
  }

  private func send(
    _ batch: CloudBatch,
    isRepeat: Bool,
    _ total: inout BatchSettlement
  ) async throws {
    let started = effects.clock.uptime
    journal.note(
      .export,
      .batchSent,
      cause: isRepeat ? "The reply never came." : "These changes wait.",
      effect: "Batch \(batch.sequence) is on its way."
    ) { event in
      event.recordNames = batch.operations.map(\.name)
      event.saved = batch.operations.filter { $0.kind != .delete }.count
      event.deleted = batch.operations.count - event.saved
      event.bytes = batch.operations.reduce(0) { $0 + $1.byteCount }
    }
    let outcomes: [CloudOutcome]
    do {
      outcomes = try await cloud.modify(options.zone, onTheWire(batch))
    } catch let failure as CloudFailure {
      return try await handle(failure, batch)
    }
    let missing = zip(batch.operations, outcomes).compactMap { operation, outcome in
      switch outcome {
      case .conflict(nil), .exists(nil): operation.name
      default: nil
      }
    }
    var fetched: [String: CloudRecord] = [:]
    if !missing.isEmpty {
      let records = try await cloud.lookup(options.zone, missing, keys: context.mapping.desiredKeys)
      for record in records { fetched[record.name] = record }
    }
    let settled = try write(MirrorAuthor.importing) { session in
      try session.foldHistory()
      return try session.settle(batch, outcomes, fetched: fetched)
    }
    context.assets.remove(settled.files)
    note(settled, batch, duration: effects.clock.uptime - started)
    total.saved += settled.saved
    total.deleted += settled.deleted
    total.merged += settled.merged
    total.parked += settled.parked
    if settled.mustWait {
      throw CloudFailure.busy(
        reason: "The server asks for patience.",
        retryAfter: settled.retryAfter
      )
    }
  }

  /// The batch with the whole paths of its files.
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

  /// A request that failed as a whole.
  private func handle(_ failure: CloudFailure, _ batch: CloudBatch) async throws {
    switch failure {
    case .unreachable, .busy, .notAuthenticated, .tokenExpired:
      // The server may have it: the batch stays open and is repeated.
      throw failure
    case .zoneMissing:
      try write(MirrorAuthor.exporting) { try $0.abandon(batch) }
      try await recoverLostZone(cause: "A batch found no zone.")
    case .tooLarge, .refused:
      guard batch.operations.count > 1 else {
        let settled = try write(MirrorAuthor.exporting) { session in
          let reason = MirrorErrorText.text(failure)
          return try session.settle(batch, [.refused(reason: reason)], fetched: [:])
        }
        context.assets.remove(settled.files)
        return
      }
      // Half as much: what cannot be sent is found and parked, and the rest goes on.
      try write(MirrorAuthor.exporting) { try $0.abandon(batch) }
      state.withLock { $0.limits.operations = max(1, batch.operations.count / 2) }
    }
  }
}
