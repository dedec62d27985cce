import Effects
import Foundation
import Synchronization
import WatershedSQLite

extension StoreMirror {
  /// The number of one-to-ones and missing records that one write transaction handles.
  private static let settlementLimit = 500

  /// Reads the changes of others and applies them.
  ///
  /// Returns why a batch of this store was postponed, if the server does not accept it.
  func runImport() async throws -> CloudFailure? {
    try await phase(.import, type: 1, cause: "Something may have changed at the server.") {
      log.detail(1, "Scheduling automated import with activity")
      var stuck = try await resolveOpenBatchBeforeImport()
      var total = ImportTotal()
      let token = try await changedDatabase()
      log.detail(2, "Processing work items")
      try await importZone(&total)
      if let token {
        try write(MirrorAuthor.importing) {
          try $0.metadata.setMeta(.databaseToken, .blob(token))
        }
      }
      try await importUnreadable(&total)
      if try read({ try $0.pendingCount() }) > 0 {
        // Merges and corrections are pending.
        state.withLock { $0.wantsExport = true }
      }
      stuck = try stuck.flatMap(replaceSettledBatch)
      if let stuck { try noteFailedBatch(stuck) }
      state.withLock { state in
        state.confirmed = state.outdated
        state.outdated = []
        state.lastImport = effects.now
        state.nextPoll = effects.clock.uptime + options.pollInterval
      }
      startListening()
      log.detail(2, "Finished importing changes")
      return PhaseEnd(
        result: stuck,
        effect: "\(total.inserted) inserted, \(total.updated) updated, \(total.deleted) deleted.",
        problem: total.stoppedSweep.map(sweepError)
      )
    }
  }

  private func sweepError(_ stopped: ImportEffect.StoppedSweep) -> NSError {
    MirroringErrorCode.several.error(
      "\(stopped.missing) of \(stopped.known) objects or links are not on the server any more, although "
        + "no deletion of theirs was seen. They stay in this store and are sent again."
    )
  }

  /// Reads the database's feed.
  ///
  /// Returns its token, to be stored after the zone has been read; nil if it is already stored.
  private func changedDatabase() async throws -> Data? {
    var token = try read { try $0.blob(.databaseToken) }
    let first = token
    while true {
      do {
        let changes = try await cloud.databaseChanges(after: token)
        if changes.deletedZones.contains(options.zone),
          !changes.changedZones.contains(options.zone)
        {
          try await recoverLostZone(cause: "The zone was deleted.")
        }
        token = changes.token
        guard changes.isMoreComing else { break }
      } catch CloudFailure.tokenExpired(let loss) where token != nil {
        token = nil
        if loss == .otherServer, !effects.has(.restoredIsExpired) { try await rereadOtherServer() }
      }
    }
    return token == first ? nil : token
  }

  /// Reads the zone of another server from the start.
  private func rereadOtherServer() async throws {
    // The token of another account looks the same, and that account must not receive these objects.
    try await checkAccount()
    try await checkAccountEpoch()
    // The other server may not have this device's subscription.
    try await saveSubscription()
    try reread(.otherServer)
  }

  /// Makes the next import read the zone from the start and compare.
  private func reread(_ reason: MirrorMetadata.Rereading) throws {
    switch reason {
    case .expired:
      journal.note(
        .import,
        .rereading,
        cause: "The change token has expired.",
        effect: "The zone is read from the start; what the server no longer has was deleted."
      )
    case .kept:
      journal.note(
        .import,
        .rereading,
        cause: "The change token cannot be continued, and the server does not say why.",
        effect: "The zone is read from the start; what the server no longer has is sent again."
      )
    case .otherServer:
      journal.note(
        .import,
        .rereading,
        cause: "The server is another one, or was restored from a backup.",
        effect: "The zone is read from the start; what the server lost is sent again."
      )
    }
    try write(MirrorAuthor.importing) { session in
      try session.startRereading(reason)
      // The token is useless, and an interrupted read must not start again.
      try session.metadata.setMeta(.databaseToken, nil)
    }
  }

  private func importZone(_ total: inout ImportTotal) async throws {
    var losses = 0
    while true {
      let zone = try read { try $0.zone(options.zone) }
      let page: CloudZoneChanges
      do {
        page = try await cloud.zoneChanges(
          options.zone,
          after: zone.token,
          limit: options.pageLimit,
          keys: context.mapping.desiredKeys,
          includesDeleted: try needsDeletions(zone)
        )
        if !page.isMoreComing, zone.rereading == .expired { try await checkIdentity(of: zone) }
      } catch let failure as CloudFailure {
        try await startAgain(after: failure, zone, &losses)
        continue
      }
      try await checkAccountEpoch()
      let settlesOneToOnes = state.withLock { state in
        defer { if !page.isMoreComing { state.settlesOneToOnes = false } }
        return state.settlesOneToOnes
      }
      let isNews =
        page.token != zone.token || !page.records.isEmpty || !page.unreadable.isEmpty
        || zone.rereading != nil || settlesOneToOnes
      if isNews {
        do {
          try apply(page, zone, &total)
        } catch is OutdatedPage {
          try dropOutdated()
          continue
        }
      }
      guard page.isMoreComing else { return }
      try Task.checkCancellation()
    }
  }

  /// Leaves out a page that another process that mirrors the file has overtaken; the zone is read again.
  private func dropOutdated() throws {
    // What waited for the end of the feed waits still.
    state.withLock { $0.settlesOneToOnes = true }
    journal.note(
      .import,
      .rereading,
      cause: "Another process applied a page of the zone after this one was fetched.",
      effect: "This page is left out, and the zone is read again from where the other process is."
    )
    try Task.checkCancellation()
  }

  /// Whether the first page after a token is to list deletions, which a first reading of a zone leaves out.
  ///
  /// A tombstone is stronger evidence than a missing record. In a first reading it may be of an object
  /// whose record this store has no tag of: another copy of the store has sent it, and it was deleted since.
  private func needsDeletions(_ zone: MirrorMetadata.Zone) throws -> Bool {
    if zone.rereading != nil { return !effects.has(.rereadWithoutDeletions) }
    return try zone.token == nil && read { try $0.hasUnconfirmedRecord() }
  }

  /// Throws where the zone is not the one that was read before: what is missing from another one was not
  /// deleted.
  ///
  /// Asked after the last page and before anything is concluded from it. A new version of the model begins
  /// a reading without a token, which a zone that was made again answers like any other.
  private func checkIdentity(of zone: MirrorMetadata.Zone) async throws {
    guard !effects.has(.trustOtherZone), !effects.has(.restoredIsExpired),
      let token = try read({ try $0.blob(.tokenBeforeRereading) })
    else { return }
    do {
      _ = try await cloud.zoneChanges(
        options.zone,
        after: token,
        limit: 1,
        keys: [],
        includesDeleted: false
      )
    } catch CloudFailure.tokenExpired(.expired) {
      // The server knows the zone, and the token is too old.
    }
  }

  /// Has the zone read from its start, or made again, after the server could not continue its token.
  private func startAgain(
    after failure: CloudFailure,
    _ zone: MirrorMetadata.Zone,
    _ losses: inout Int
  ) async throws {
    switch failure {
    case .tokenExpired(let loss) where zone.token != nil || zone.rereading == .expired:
      switch loss {
      case .expired where effects.has(.expiredIsOtherZone):
        try await recoverLostZone(cause: "The zone was deleted and made again.")
      case .expired: try reread(.expired)
      case .otherServer where effects.has(.restoredIsExpired): try reread(.expired)
      case .unexplained: try reread(.kept)
      case .otherServer: try await rereadOtherServer()
      case .otherZone:
        losses += 1
        guard losses < 3 else { throw failure }
        try await recoverLostZone(cause: "The zone was deleted and made again.")
      }
    case .zoneMissing:
      losses += 1
      // A zone that is deleted each time it is created is retried later.
      guard losses < 3 else { throw failure }
      try await recoverLostZone(cause: "The zone is not on the server.")
    default: throw failure
    }
  }

  /// Applies a page in short write transactions; the last one keeps the token.
  ///
  /// Throws ``OutdatedPage`` where another mirror of the file has read further, or again from the start, since the
  /// page was requested: it would take objects, tags and the token back.
  private func apply(
    _ page: CloudZoneChanges,
    _ zone: MirrorMetadata.Zone,
    _ total: inout ImportTotal
  ) throws {
    let started = effects.clock.uptime
    var effect = ImportEffect()
    // If history was deleted before it was folded, edits are found by comparing all objects.
    while try write(MirrorAuthor.importing, { try $0.foldAndScan(limit: Self.settlementLimit) }) {
      try Task.checkCancellation()
    }
    var rest = page.records[...]
    if effects.has(.skipLastOfPage), rest.count > 2 { rest = rest.dropLast() }
    var isDone = false
    var isFirst = true
    var position = FeedEnd()
    defer {
      total.add(effect)
      context.assets.remove(page.records.flatMap(\.fields.files))
    }
    repeat {
      let chunk = nextChunk(of: &rest)
      let begun = effects.clock.uptime
      let isLast = rest.isEmpty
      try write(MirrorAuthor.importing) { session in
        try session.claimPage(after: zone, isFirst: isFirst)
        try session.foldHistory()
        effect.add(
          try session.apply(
            records: chunk,
            deletedNames: isLast ? page.deletedNames : [],
            generation: zone.generation
          )
        )
        if isLast { try session.park(page.unreadable, generation: zone.generation) }
        if isLast { isDone = try end(page, zone, session, &position, &effect) }
      }
      isFirst = false
      adapt(to: effects.clock.uptime - begun)
    } while !rest.isEmpty
    while !isDone {
      try write(MirrorAuthor.importing) { session in
        try session.claimPage(after: zone, isFirst: false)
        // Another process's commit before this one is never skipped.
        try session.foldHistory()
        isDone = try end(page, zone, session, &position, &effect)
      }
    }
    journal.note(
      .import,
      .pageApplied,
      cause: "The server reported \(page.records.count) records and "
        + "\(page.deletedNames.count) deletions.",
      effect: "\(effect.inserted.count) inserted, \(effect.updated.count) updated, "
        + "\(effect.deleted.count) deleted."
    ) { event in
      event.recordNames = effect.inserted + effect.updated + effect.deleted
      event.inserted = effect.inserted.count
      event.updated = effect.updated.count
      event.deleted = effect.deleted.count
      event.duration = effects.clock.uptime - started
    }
  }

  /// How far the end of a feed is applied: the last one-to-one, record and edge; nil once all are.
  ///
  /// Then what a read from the start did not return is handled.
  struct FeedEnd {
    var oneToOnes: (String, String)? = ("", "")
    var records: String? = ""
    var edges: String? = ""
    var sweep = SweepPosition()
  }

  /// Completes a page: at the end of the feed it settles one-to-ones, applies deletions and sweeps
  /// what a re-read did not find; then it stores the token.
  ///
  /// Returns false while more is left.
  private func end(
    _ page: CloudZoneChanges,
    _ zone: MirrorMetadata.Zone,
    _ session: MirrorSession,
    _ position: inout FeedEnd,
    _ effect: inout ImportEffect
  ) throws -> Bool {
    var zone = zone
    if !page.isMoreComing {
      guard try applyDeletions(session, generation: zone.generation, &position, &effect) else {
        return false
      }
      if let rereading = try session.metadata.zone(zone.name).rereading {
        if try endRereading(rereading, zone, session, &position.sweep, &effect) { return false }
        zone.rereading = nil
        if rereading != .kept { try session.metadata.setMeta(.keptMissing, nil) }
        try session.metadata.setMeta(.readsWithNewModel, nil)
        try session.metadata.setMeta(.tokenBeforeRereading, nil)
      }
    }
    if !page.isMoreComing { try session.metadata.forgetRemovedEdges() }
    zone.token = page.token
    zone.isSaved = true
    try session.metadata.save(zone)
    return true
  }

  /// Applies deletions after all records of the feed, which determine the owners of objects.
  ///
  /// Returns false while more is left.
  func applyDeletions(
    _ session: MirrorSession,
    generation: Int64,
    _ position: inout FeedEnd,
    _ effect: inout ImportEffect
  ) throws -> Bool {
    if let after = position.oneToOnes {
      position.oneToOnes = try session.settleOneToOnes(after: after, limit: Self.settlementLimit)
      guard position.oneToOnes == nil else { return false }
    }
    if let after = position.records {
      position.records = try session.applyGoneRecords(
        after: after,
        limit: Self.settlementLimit,
        generation: generation,
        &effect
      )
      guard position.records == nil else { return false }
    }
    // After the objects: what is kept of one for recovery has its links.
    if let after = position.edges {
      position.edges = try session.applyGoneEdges(after: after, limit: Self.settlementLimit)
    }
    return position.edges == nil
  }

  /// Returns whether more is left.
  private func endRereading(
    _ reason: MirrorMetadata.Rereading,
    _ zone: MirrorMetadata.Zone,
    _ session: MirrorSession,
    _ position: inout SweepPosition,
    _ effect: inout ImportEffect
  ) throws -> Bool {
    switch reason {
    case .expired:
      try session.sweepMissing(
        generation: zone.generation,
        limit: Self.settlementLimit,
        guard: options.sweepGuard,
        from: &position,
        &effect
      )
    case .otherServer, .kept:
      try session.sendMissing(
        generation: zone.generation,
        limit: Self.settlementLimit,
        from: &position
      )
    }
  }
}
