import Synchronization

/// Looks up records that were incomplete, or whose copy here is in doubt.
extension StoreMirror {
  /// Requests incomplete records again; those that are complete now are applied.
  func importUnreadable(_ total: inout ImportTotal) async throws {
    guard state.withLock({ $0.parked.isRunning }) else { return }
    var last: String? = ""
    var hasRead = false
    while let after = last {
      let names = try read { try $0.unreadableRecords(after: after, limit: options.pageLimit) }
      if !names.isEmpty {
        try await importUnreadable(names, &total)
        hasRead = true
      }
      try Task.checkCancellation()
      last = names.last
    }
    guard try hasRead || read({ try !$0.goneRecords(limit: 1).isEmpty }) else { return }
    try endLookUps(&total)
  }

  /// Settles what waits for the end of a feed: one-to-ones of the records that were looked up, and
  /// deletions that waited for them.
  ///
  /// While another process that mirrors the file reads a feed, they wait for its end.
  private func endLookUps(_ total: inout ImportTotal) throws {
    var position = FeedEnd()
    var effect = ImportEffect()
    var isPostponed = false
    defer { total.add(effect) }
    while true {
      let isDone = try writeFolded(MirrorAuthor.importing) { session in
        let limit = MirrorSession.waitingLinkLimit
        guard try session.linkArrived(&position.arrived, limit: limit) else { return false }
        if try session.hasOpenFeed()
          || session.metadata.isImporting(otherThan: context.device, at: effects.now)
        {
          isPostponed = true
          return true
        }
        let generation = try session.metadata.zone(options.zone).generation
        return try applyDeletions(session, generation: generation, &position, &effect)
      }
      if isDone {
        // The other process may have passed what waits here already.
        if isPostponed {
          state.withLock {
            $0.findings.noteOneToOnes()
            $0.work.want(.importing)
          }
        }
        return
      }
      try Task.checkCancellation()
    }
  }

  private func importUnreadable(_ names: [String], _ total: inout ImportTotal) async throws {
    let found = try await cloud.lookup(options.zone, names, keys: context.mapping.desiredKeys)
    defer { context.assets.remove(found.records.flatMap(\.fields.files)) }
    let missing = Set(names).subtracting(found.unreadable.keys)
      .subtracting(found.records.map(\.name))
    var rest = found.records[...]
    repeat {
      let chunk = nextChunk(of: &rest)
      let isLast = rest.isEmpty
      let effect = try writeFolded(MirrorAuthor.importing) { session in
        // While a record is listed as unreadable, it is applied even if its tag is known.
        let effect = try session.apply(
          records: chunk,
          generation: try session.metadata.zone(options.zone).generation
        )
        for record in chunk { try session.metadata.forgetUnreadable(record.name) }
        guard isLast else { return effect }
        for name in missing.sorted() {
          try session.metadata.forgetUnreadable(name)
          try session.applyDoubtfulDeletion(ofEdge: name)
        }
        return effect
      }
      total.add(effect)
    } while !rest.isEmpty
  }
}
