import Effects
import Foundation
import OpenCloudKit
import Synchronization

/// Handles requests and records that the server refuses during an export.
extension StoreMirror {
  /// The number of consecutive one-record requests that may be refused before the rest is
  /// postponed: if all are refused, as with a full database, further requests give no more
  /// information.
  private static let refusalLimit = 5

  /// The number of times that the server may fail at a batch while it accepts other requests,
  /// before the batch is split.
  private static let failureLimit = 3

  /// The error of the export's event for refused records: as from CloudKit, an error that contains
  /// those of the single records.
  func refusalError(_ total: BatchSettlement) -> (any Error)? {
    guard !total.refused.isEmpty else { return nil }
    let zone = CKRecordZone.ID(zoneName: options.zone, ownerName: CKCurrentUserDefaultName)
    var errors: [AnyHashable: any Error] = [:]
    for (name, reason) in total.refused {
      errors[CKRecord.ID(recordName: name, zoneID: zone)] = CKError(.serverRejectedRequest, reason)
    }
    let error = CKError.partialFailure(errors)
    log.error(MirrorErrorText.text(error))
    return error
  }

  /// Notes that the server failed at the open batch, or that its connection broke, and that the server took
  /// the requests of the import after it: the batch is at fault then, and not the server as a whole.
  func noteFailedBatch(_ stuck: StuckBatch) throws {
    guard Self.mayBeOfBatch(stuck.failure), let open = try read({ try $0.openBatch() }),
      open.sequence == stuck.sequence
    else { return }
    state.withLock { $0.pace.noteFailure(ofBatch: open.sequence) }
  }

  /// Replaces a batch that another copy of the store has settled, after an import: deletions of its records were
  /// applied, and the server's copies of the others are their base.
  ///
  /// Returns the batch if it is still postponed. A batch that another process has opened meanwhile is not of
  /// this failure.
  func replaceSettledBatch(_ stuck: StuckBatch) throws -> StuckBatch? {
    guard case .alreadySettled = stuck.failure else { return stuck }
    let replaced: CloudBatch? = try writeFolded(MirrorAuthor.exporting) { session in
      guard let open = try session.metadata.openBatch(), open.sequence == stuck.sequence else {
        return nil
      }
      let batch = try CloudBatch(encoded: open.payload)
      try session.replaceSettled(batch)
      return batch
    }
    guard let batch = replaced else { return nil }
    context.assets.remove(batch.files)
    state.withLock { $0.work.want(.exporting) }
    journal.note(
      .export,
      .batchRepeated,
      cause: "Another copy of this store has settled batch \(batch.sequence).",
      effect: "What is left of it is sent in a batch of its own."
    ) { $0.recordNames = batch.operations.map(\.name) }
    return nil
  }

  private static func mayBeOfBatch(_ failure: CloudFailure) -> Bool {
    switch failure {
    case .busy(_, nil), .unreachable: true
    default: false
    }
  }

  private func isAtFault(_ batch: CloudBatch, _ failure: CloudFailure) -> Bool {
    guard Self.mayBeOfBatch(failure) else { return false }
    return state.withLock { $0.pace.failures(ofBatch: batch.sequence) } >= Self.failureLimit
  }

  /// Handles the failure of a whole request; returns whether the export can continue.
  func handle(
    _ failure: CloudFailure,
    _ batch: CloudBatch,
    isRepeat: Bool,
    _ total: inout BatchSettlement
  ) async throws -> Bool {
    switch failure {
    case .busy where isAtFault(batch, failure), .unreachable where isAtFault(batch, failure):
      // If the server did execute the batch, the look-up finds its records with the sent fields.
      return try await split(batch, failure, isInDoubt: true, &total)
    case .unreachable, .busy, .notAuthenticated, .accountChanged, .tokenExpired:
      // The server may have executed it: the batch stays open and is repeated.
      if effects.has(.forgetRetry) {
        try write(MirrorAuthor.exporting) { try $0.settleAsSaved(batch) }
      }
      // Imports count the failures of a batch whose requests a proxy or the network breaks; see ``isAtFault``.
      if isRepeat, Self.mayBeOfBatch(failure) { state.withLock { $0.work.want(.importing) } }
      throw failure
    case .alreadySettled:
      // The feed shows the state of its records; the batch is assembled again after the feed was read.
      state.withLock { $0.work.want(.importing) }
      throw failure
    case .zoneMissing:
      try await checkAccount()
      try await checkAccountEpoch()
      // The batch is forgotten with its zone, which may have had the records that the batch was to create.
      try await recoverLostZone(cause: "A batch found no zone.")
      return false
    case .overQuota
    where total.room == .unknown && batch.operations.contains(where: { $0.kind != .delete }):
      // Deletions are queued behind changes that the full database refuses, and free space for
      // them.
      total.room = .deleting
      if isRepeat, try await settleExecuted(batch, &total) { return true }
      try write(MirrorAuthor.exporting) { session in
        _ = try isRepeat ? session.abandonInDoubt(batch) : session.abandon(batch)
      }
      context.assets.remove(batch.files)
      return true
    case .tooLarge, .refused, .overQuota:
      // The server may have executed a repeated batch and discarded its reply, or a proxy refuses it.
      return try await split(batch, failure, isInDoubt: isRepeat, &total)
    }
  }

  /// Halves the next batch: the change that cannot be sent is thus found and parked, and the rest
  /// is sent.
  ///
  /// `isInDoubt` says that the server may have executed the batch.
  private func split(
    _ batch: CloudBatch,
    _ failure: CloudFailure,
    isInDoubt: Bool,
    _ total: inout BatchSettlement
  ) async throws -> Bool {
    if isInDoubt, try await settleExecuted(batch, &total) {
      // The batch may be too large nevertheless, and another device may change a record before each attempt.
      halveLimit(after: batch)
      return true
    }
    guard batch.operations.count == 1 else {
      try write(MirrorAuthor.exporting) { session in
        _ = try isInDoubt ? session.abandonInDoubt(batch) : session.abandon(batch)
      }
      context.assets.remove(batch.files)
      halveLimit(after: batch)
      return true
    }
    let reason = MirrorErrorText.text(failure)
    let outcomes = [CloudOutcome.refused(reason: reason)]
    let settled = try write(MirrorAuthor.exporting) { session in
      try isInDoubt
        ? session.settleInDoubt(batch, outcomes)
        : session.settle(batch, outcomes, fetched: [:])
    }
    context.assets.remove(settled.files)
    total.refused.merge(settled.refused) { _, latest in latest }
    total.refusedInARow += 1
    guard total.refusedInARow < Self.refusalLimit else {
      state.withLock { $0.pace.resetLimits() }
      throw failure
    }
    if case .overQuota = failure { return true }
    state.withLock { $0.pace.widenLimits() }
    return true
  }

  private func halveLimit(after batch: CloudBatch) {
    state.withLock { $0.pace.halveLimits(after: batch.operations.count) }
  }

  /// Looks up the records that a batch in doubt was to change, and settles it as conflicts with those that have
  /// changed: an update without a reply would otherwise overwrite a later edit back to the former value.
  ///
  /// Returns false if none has changed.
  func settleExecuted(
    _ batch: CloudBatch,
    _ total: inout BatchSettlement
  ) async throws -> Bool {
    let updates = batch.operations.filter { $0.kind == .update && !$0.isEdge }
    guard !updates.isEmpty else { return false }
    let tags = Dictionary(
      updates.map { ($0.name, $0.tag) },
      uniquingKeysWith: { first, _ in first }
    )
    func hasChanged(_ record: CloudRecord) -> Bool {
      tags[record.name].map { $0 != record.tag } ?? false
    }
    // The tags show which have changed, without files.
    let tagged = try await cloud.lookup(options.zone, updates.map(\.name), keys: [])
    let names = tagged.records.filter(hasChanged).map(\.name)
    guard !names.isEmpty else { return false }
    // Copies that cannot be read now show nothing more: their updates stay in doubt.
    let looked = try await cloud.lookup(options.zone, names, keys: context.mapping.desiredKeys)
    let found = Dictionary(
      looked.records.filter(hasChanged).map { ($0.name, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    var settled = BatchSettlement()
    for part in parts(of: batch, batch.operations.map { found[$0.name] }) {
      settled += try writeFolded(MirrorAuthor.importing) { session in
        let abandoned = try session.abandonInDoubt(batch, found: found, part: part)
        try session.noteDoubt(about: batch.operations[part], unread: looked.unreadable)
        return abandoned
      }
    }
    context.assets.remove(settled.files + looked.records.flatMap(\.fields.files))
    total.merged += settled.merged
    total.outdated += settled.outdated
    noteOutdated(settled.outdated)
    noteMerged(settled.merged)
    return true
  }
}
