import CloudKitWebServices
import Foundation

/// The periodic work of a server.
extension CloudKitService {
  /// Finishes work that a server left incomplete, removes expired rows and purges accounts whose
  /// deletion is due.
  ///
  /// Safe to repeat, after a crash during the work and in several processes at once.
  package func housekeep() async throws {
    let time = now
    try await write {
      var batch = WriteBatch()
      batch.sweepsExpiredBefore = time
      return (batch, ())
    }
    devices.endUnboundListeners()
    var steps = EveryStep()
    try await steps.run { try await erasing.finishAll() }
    try await steps.run { try await removals.finishAll() }
    try await steps.run { try await containerErasures.finishAll() }
    try await steps.run { try await purges.purgeDeleted() }
    try await steps.run { try await purges.forgetPartitions() }
    try await steps.run { try await assets.collectGarbage() }
    try steps.finish()
  }
}
