import Effects
import Foundation
import Synchronization
import WatershedSQLite

extension StoreMirror {
  /// Reads the changes of others and applies them.
  ///
  /// Returns what was postponed.
  func runImport() async throws -> ImportEnd {
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
      let failedLookUp = try await lookUpUnreadable(&total)
      if try read({ try $0.pendingCount() }) > 0 {
        // Merges and corrections are pending.
        state.withLock { $0.work.want(.exporting) }
      }
      stuck = try stuck.flatMap(replaceSettledBatch)
      if let stuck { try noteFailedBatch(stuck) }
      state.withLock { state in
        state.findings.noteReading()
        state.lastImport = effects.now
        state.listener.nextPoll = effects.clock.uptime + options.pollInterval
      }
      startListening()
      log.detail(2, "Finished importing changes")
      return PhaseEnd(
        result: ImportEnd(stuck: stuck?.failure, failedLookUp: failedLookUp),
        effect: "\(total.inserted) inserted, \(total.updated) updated, \(total.deleted) deleted.",
        problem: total.stoppedSweep.map(sweepError)
      )
    }
  }

  /// Looks up unreadable records; returns why that failed.
  ///
  /// The failure may be of these records alone: it must not hold up exports.
  private func lookUpUnreadable(_ total: inout ImportTotal) async throws -> CloudFailure? {
    do {
      try await importUnreadable(&total)
      return nil
    } catch let failure as CloudFailure {
      switch failure {
      case .notAuthenticated, .accountChanged, .zoneMissing: throw failure
      default: break
      }
      journal.note(
        .import,
        .recordParked,
        cause: MirrorErrorText.text(failure),
        effect: "Incomplete records are requested again later; all else is imported and exported."
      )
      return failure
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

  private func importZone(_ total: inout ImportTotal) async throws {
    var losses = 0
    while true {
      try await waitForOtherImport()
      // An edge whose name is kept from here on may be sent after the page was requested.
      let (zone, newestUnsentEdge) = try read {
        (try $0.zone(options.zone), try $0.newestUnsentEdge())
      }
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
      let isLast = !page.isMoreComing
      let settlesOneToOnes = state.withLock { $0.findings.takeOneToOnes(isLast: isLast) }
      // A process that ended may have left links of its last page to be set.
      let hasChanges =
        try page.token != zone.token || !page.records.isEmpty || !page.unreadable.isEmpty
        || zone.rereading != nil || settlesOneToOnes
        || read { try !$0.arrivedRecords(limit: 1).isEmpty }
      if hasChanges {
        do {
          try apply(page, zone, newestUnsentEdge: newestUnsentEdge, &total)
        } catch is OutdatedPage {
          try dropOutdated()
          continue
        } catch is ClaimedPage {
          if settlesOneToOnes { state.withLock { $0.findings.noteOneToOnes() } }
          continue
        } catch {
          // If it fails too, another process waits until the claim has expired.
          try? write(MirrorAuthor.importing) { try $0.giveUpPage() }
          throw error
        }
      } else if isLast, newestUnsentEdge > 0 {
        try write(MirrorAuthor.importing) {
          try $0.metadata.forgetUnsentEdges(through: newestUnsentEdge)
        }
      }
      guard page.isMoreComing else { return }
      try Task.checkCancellation()
    }
  }

  /// The time in seconds after which it is asked again whether another process applies a page.
  private static let claimPause = 0.5

  /// Waits while another process that mirrors the file applies a page.
  private func waitForOtherImport() async throws {
    while try read({ try $0.isImporting(otherThan: context.device, at: effects.now) }) {
      // One-to-one conflicts are still to be settled at the end of the feed.
      state.withLock { $0.findings.noteOneToOnes() }
      try await effects.clock.sleep(seconds: Self.claimPause)
    }
  }

  /// Leaves out a page that another process that mirrors the file has overtaken; the zone is read again.
  private func dropOutdated() throws {
    // One-to-one conflicts are still to be settled at the end of the feed.
    state.withLock { $0.findings.noteOneToOnes() }
    journal.note(
      .import,
      .rereading,
      cause: "Another process applied a page of the zone after this one was fetched.",
      effect: "The page is discarded; reading continues from the other process's token."
    )
    try Task.checkCancellation()
  }
}

/// What an import postponed.
struct ImportEnd {
  /// Why a batch of this store was postponed, if the server does not accept it.
  var stuck: CloudFailure?
  /// Why unreadable records could not be looked up.
  var failedLookUp: CloudFailure?
}
