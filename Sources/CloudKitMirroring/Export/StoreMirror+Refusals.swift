import Foundation
import OpenCloudKit

/// What an export does about requests and records that the server does not take.
extension StoreMirror {
  /// Requests of one record that are refused in a row before the rest is left for later: where all are
  /// refused, as in a full database, one request for each record would say no more.
  private static let refusalLimit = 5

  /// Times that the server fails at a batch while it takes other requests, before the batch is split.
  private static let failureLimit = 3

  /// What the server refused, as the event of the export says it: as from CloudKit, an error with those
  /// of the single records.
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

  /// After what was too large or refused has been found, batches grow again.
  func widenLimits() {
    state.withLock { state in
      let wider = min(options.limits.operations, state.limits.operations * 2)
      state.limits.operations = wider
    }
  }

  /// Notes that the server failed at the open batch, or that its connection broke, and that the server took
  /// the requests of the import after it: the batch is at fault then, and not the server as a whole.
  func noteFailedBatch(_ failure: CloudFailure) throws {
    guard Self.mayBeOfBatch(failure), let open = try read({ try $0.openBatch() }) else { return }
    state.withLock { state in
      let known = state.failedBatch.flatMap { $0.sequence == open.sequence ? $0.count : nil } ?? 0
      state.failedBatch = (open.sequence, known + 1)
    }
  }

  private static func mayBeOfBatch(_ failure: CloudFailure) -> Bool {
    switch failure {
    case .busy(_, nil), .unreachable: true
    default: false
    }
  }

  private func isAtFault(_ batch: CloudBatch, _ failure: CloudFailure) -> Bool {
    guard Self.mayBeOfBatch(failure) else { return false }
    return state.withLock { state in
      state.failedBatch.map { $0.sequence == batch.sequence && $0.count >= Self.failureLimit }
        ?? false
    }
  }

  /// A request that failed as a whole; returns whether something was done about it.
  func handle(
    _ failure: CloudFailure,
    _ batch: CloudBatch,
    _ total: inout BatchSettlement
  ) async throws -> Bool {
    switch failure {
    case .busy where isAtFault(batch, failure), .unreachable where isAtFault(batch, failure):
      // Where the server did have it, the records are found there with what was sent.
      return try split(batch, failure, &total)
    case .unreachable, .busy, .notAuthenticated, .accountChanged, .tokenExpired:
      // The server may have it: the batch stays open and is repeated.
      if effects.has(.forgetRetry) { try write(MirrorAuthor.exporting) { try $0.believe(batch) } }
      throw failure
    case .zoneMissing:
      try await checkAccount()
      try await checkAccountEpoch()
      try write(MirrorAuthor.exporting) { try $0.abandon(batch) }
      try await recoverLostZone(cause: "A batch found no zone.")
      return false
    case .overQuota
    where total.room == .unknown && batch.operations.contains(where: { $0.kind != .delete }):
      // Deletions wait behind what the full database does not take, and make room for it.
      total.room = .deleting
      try write(MirrorAuthor.exporting) { try $0.abandon(batch) }
      return true
    case .tooLarge, .refused, .overQuota:
      return try split(batch, failure, &total)
    }
  }

  /// Half as much is sent next: what cannot be sent is found and held back, and the rest goes through.
  private func split(
    _ batch: CloudBatch,
    _ failure: CloudFailure,
    _ total: inout BatchSettlement
  ) throws -> Bool {
    guard batch.operations.count == 1 else {
      try write(MirrorAuthor.exporting) { try $0.abandon(batch) }
      state.withLock { $0.limits.operations = max(1, batch.operations.count / 2) }
      return true
    }
    let reason = MirrorErrorText.text(failure)
    let settled = try write(MirrorAuthor.exporting) { session in
      try session.settle(batch, [.refused(reason: reason)], fetched: [:])
    }
    context.assets.remove(settled.files)
    total.refused.merge(settled.refused) { _, latest in latest }
    total.refusedInARow += 1
    guard total.refusedInARow < Self.refusalLimit else {
      state.withLock { $0.limits = options.limits }
      throw failure
    }
    if case .overQuota = failure { return true }
    widenLimits()
    return true
  }
}
