import Foundation

extension StoreMirror {
  /// What a write transaction of an import may take, in seconds: a person's save waits no longer.
  private static let transactionBudget = 0.05
  private static let chunkRange = 10...400
  /// One-to-ones and missing records that one write transaction takes.
  private static let settlementLimit = 500

  /// Reads what others changed and applies it.
  func runImport() async throws {
    try await phase(.import, type: 1, cause: "Something may have changed at the server.") {
      log.detail(1, "Scheduling automated import with activity")
      var repeated = BatchSettlement()
      try await resolveOpenBatch(&repeated)
      var total = ImportEffect()
      let database = try await changedDatabase()
      log.detail(2, "Processing work items")
      try await importZone(&total, isSameIncarnation: database.isContinued)
      if let token = database.token {
        try write(MirrorAuthor.importing) {
          try $0.books.setMeta(.databaseToken, .blob(token))
        }
      }
      if try read({ try $0.pendingCount() }) > 0 {
        // Merges and corrections wait to be sent.
        state.withLock { $0.wantsExport = true }
      }
      state.withLock { $0.lastImport = effects.now }
      startListening()
      log.detail(2, "Finished importing changes")
      return (
        (),
        "\(total.inserted.count) inserted, \(total.updated.count) updated, "
          + "\(total.deleted.count) deleted."
      )
    }
  }

  /// Reads the database's feed.
  ///
  /// Its token is to be kept once the zone has been read; nil where it is kept already. The feed is
  /// continued where the server took the token of the last time.
  private func changedDatabase() async throws -> (token: Data?, isContinued: Bool) {
    var token = try read { try $0.blob(.databaseToken) }
    let first = token
    var isContinued = token != nil
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
      } catch CloudFailure.tokenExpired where token != nil {
        token = nil
        isContinued = false
      }
    }
    return (token == first ? nil : token, isContinued)
  }

  private func importZone(
    _ total: inout ImportEffect,
    isSameIncarnation: Bool
  ) async throws {
    var losses = 0
    while true {
      let zone = try read { try $0.zone(options.zone) }
      let page: CloudZoneChanges
      do {
        page = try await cloud.zoneChanges(
          options.zone,
          after: zone.token,
          limit: options.pageLimit,
          keys: context.mapping.desiredKeys
        )
      } catch CloudFailure.tokenExpired where isSameIncarnation && losses == 0 {
        // The server is the same and the zone is not: it was deleted and made again.
        losses += 1
        try await recoverLostZone(cause: "The zone was deleted and made again.")
        continue
      } catch CloudFailure.tokenExpired {
        journal.note(
          .import,
          .rereading,
          cause: "The change token has expired.",
          effect: "The zone is read from the start and compared."
        )
        try write(MirrorAuthor.importing) { try $0.startRereading() }
        continue
      } catch CloudFailure.zoneMissing {
        losses += 1
        // A zone that goes as often as it is made is left for a later try.
        guard losses < 3 else { throw CloudFailure.zoneMissing }
        try await recoverLostZone(cause: "The zone is not on the server.")
        continue
      }
      let isNews = page.token != zone.token || !page.records.isEmpty || zone.isRereading
      if isNews { try apply(page, zone, &total) }
      guard page.isMoreComing else { return }
      try Task.checkCancellation()
    }
  }

  /// Applies a page in short write transactions; the last one keeps the token.
  private func apply(
    _ page: CloudZoneChanges,
    _ zone: MirrorBooks.Zone,
    _ total: inout ImportEffect
  ) throws {
    let started = effects.clock.uptime
    var effect = ImportEffect()
    var rest = page.records[...]
    var isDone = false
    repeat {
      let chunk = rest.prefix(state.withLock { $0.chunk })
      rest = rest.dropFirst(chunk.count)
      let begun = effects.clock.uptime
      let isLast = rest.isEmpty
      try write(MirrorAuthor.importing) { session in
        try session.foldHistory()
        effect.add(
          try session.apply(
            records: chunk,
            deletedNames: isLast ? page.deletedNames : [],
            generation: zone.generation
          )
        )
        if isLast { isDone = try end(page, zone, session, &effect) }
      }
      adapt(to: effects.clock.uptime - begun)
    } while !rest.isEmpty
    while !isDone {
      try write(MirrorAuthor.importing) { session in
        isDone = try end(page, zone, session, &effect)
      }
    }
    total.add(effect)
    let files = page.records.flatMap { record in
      record.fields.values.values.compactMap { value -> String? in
        if case .asset(let asset) = value { return asset.file }
        return nil
      }
    }
    context.assets.remove(files)
    journal.note(
      .import,
      .pageApplied,
      cause: "The server told of \(page.records.count) records and "
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

  /// What comes after a page's records: at the end of the feed, one-to-ones and what a reading from
  /// the start has not met; then the token.
  ///
  /// Returns false while more is left.
  private func end(
    _ page: CloudZoneChanges,
    _ zone: MirrorBooks.Zone,
    _ session: MirrorSession,
    _ effect: inout ImportEffect
  ) throws -> Bool {
    var zone = zone
    if !page.isMoreComing {
      var position: (String, String)? = ("", "")
      while let after = position {
        position = try session.settleOneToOnes(after: after, limit: Self.settlementLimit)
      }
      if zone.isRereading {
        let isMore = try session.sweepMissing(
          generation: zone.generation,
          limit: Self.settlementLimit,
          &effect
        )
        if isMore { return false }
        zone.isRereading = false
      }
    }
    zone.token = page.token
    try session.books.save(zone)
    return true
  }

  /// Keeps write transactions short on slow machines and few on fast ones.
  private func adapt(to seconds: Double) {
    state.withLock { state in
      if seconds > Self.transactionBudget {
        state.chunk = max(Self.chunkRange.lowerBound, state.chunk / 2)
      } else if seconds < Self.transactionBudget / 4 {
        state.chunk = min(Self.chunkRange.upperBound, state.chunk * 2)
      }
    }
  }
}
