import Effects

/// Applies the pages of a zone's feed.
extension StoreMirror {
  /// The number of one-to-ones and missing records that one write transaction handles.
  private static let settlementLimit = 500

  /// Applies a page in short write transactions; the last one keeps the token.
  ///
  /// `newestUnsentEdge` is the number of the newest removed edge that was remembered before the page was requested.
  ///
  /// Throws ``OutdatedPage`` where another mirror of the file has read further, or again from the start, since the
  /// page was requested: it would take objects, tags and the token back.
  func apply(
    _ page: CloudZoneChanges,
    _ zone: MirrorMetadata.Zone,
    newestUnsentEdge: Int64,
    _ total: inout ImportTotal
  ) throws {
    let started = effects.clock.uptime
    var effect = ImportEffect()
    var position = FeedEnd()
    position.newestUnsentEdge = newestUnsentEdge
    // If history was deleted before it was folded, edits are found by comparing all objects.
    while try write(MirrorAuthor.importing, { try $0.foldAndScan(limit: Self.settlementLimit) }) {
      try Task.checkCancellation()
    }
    var rest = page.records[...]
    if effects.has(.skipLastOfPage), rest.count > 2 { rest = rest.dropLast() }
    var isDone = false
    var isFirst = true
    defer {
      total.add(effect)
      context.assets.remove(page.records.flatMap(\.fields.files))
    }
    repeat {
      let chunk = nextChunk(of: &rest)
      let begun = effects.clock.uptime
      let isLast = rest.isEmpty
      try writeFolded(MirrorAuthor.importing) { session in
        try session.claimPage(after: zone, isFirst: isFirst)
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
      // Another process's commit before this one is never skipped.
      try writeFolded(MirrorAuthor.importing) { session in
        try session.claimPage(after: zone, isFirst: false)
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

  /// The position within the work at the end of a feed: the last one-to-one, record and edge; nil once all are done.
  ///
  /// The sweep of records that a re-read did not return follows.
  struct FeedEnd {
    /// The place within the links that wait for an object of the page.
    var arrived: WaitingPlace?
    var oneToOnes: (String, String)? = ("", "")
    var records: String? = ""
    var edges: String? = ""
    var sweep = SweepPosition()
    /// The number of the newest removed edge that was remembered before the page was requested.
    var newestUnsentEdge: Int64 = 0
  }

  /// Completes a page: sets the rest of the links that waited for its objects, and stores the token.
  ///
  /// At the end of the feed it first settles one-to-ones, applies deletions and sweeps the records that a re-read did
  /// not return.
  ///
  /// Returns false while more is left.
  private func end(
    _ page: CloudZoneChanges,
    _ zone: MirrorMetadata.Zone,
    _ session: MirrorSession,
    _ position: inout FeedEnd,
    _ effect: inout ImportEffect
  ) throws -> Bool {
    guard try session.linkArrived(&position.arrived, limit: MirrorSession.waitingLinkLimit) else {
      return false
    }
    var zone = zone
    /// Whether the feed has had all that the server has.
    var isComplete = !page.isMoreComing
    if !page.isMoreComing {
      guard try applyDeletions(session, generation: zone.generation, &position, &effect) else {
        return false
      }
      if let rereading = try session.metadata.zone(zone.name).rereading {
        if try endRereading(rereading, zone, session, &position.sweep, &effect) { return false }
        zone.rereading = nil
        isComplete = rereading == .expired
        if rereading != .kept { try session.metadata.setMeta(.keptMissing, nil) }
        try session.metadata.setMeta(.readsWithNewModel, nil)
        try session.metadata.setMeta(.tokenBeforeRereading, nil)
      }
    }
    if !page.isMoreComing { try session.metadata.forgetRemovedEdges() }
    if isComplete { try session.metadata.forgetUnsentEdges(through: position.newestUnsentEdge) }
    try session.metadata.setMeta(.openFeed, page.isMoreComing ? .blob(page.token) : nil)
    try session.endPage()
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
    // Edges are deleted after the objects: the recovery entry of a deleted object contains its links.
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
