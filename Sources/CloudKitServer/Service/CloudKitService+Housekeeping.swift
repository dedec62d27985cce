import CloudKitWebServices
import Foundation

/// What has to be done now and then, whether or not anybody asks.
extension CloudKitService {
  /// Finishes what a server has left in the middle, removes what has expired and purges accounts
  /// whose time has come.
  ///
  /// Safe to run again, after a crash in the middle and in several processes at once.
  package func housekeep() async throws {
    let time = now
    try await write {
      var batch = WriteBatch()
      batch.sweepsExpiredBefore = time
      return (batch, ())
    }
    endUnboundListeners()
    try await finishErasings()
    try await purgeDeletedAccounts()
    try await forgetPurgedPartitions()
    try await collectAssetGarbage()
  }
}
