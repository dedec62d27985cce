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
    var steps = EveryStep()
    try await steps.run("expired rows") {
      try await write {
        var batch = WriteBatch()
        batch.sweepsExpiredBefore = time
        return (batch, ())
      }
    }
    devices.endUnboundListeners()
    try await steps.run("erasings of schema imports") { try await erasing.finishAll() }
    try await steps.run("removals of zones") { try await removals.finishAll() }
    try await steps.run("deletions of containers") { try await containerErasures.finishAll() }
    try await steps.run("purges of accounts") { try await purges.purgeDeleted() }
    try await steps.run("removals of databases") { try await purges.forgetPartitions() }
    try await steps.run("unused files") { try await assets.collectGarbage() }
    try steps.finish()
  }
}
