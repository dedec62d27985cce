import CloudKitWebServices
import Foundation

/// What a server does now and then.
extension CloudKitService {
  /// Forgets what was deleted long ago, whose older tokens have expired, and replies that no device
  /// will ask for again.
  package func collectTraces() async throws {
    let oldest = now - Int64(limits.traceLifetime * 1000)
    let oldestReply = now - Int64(limits.replyLifetime * 1000)
    for id in try storage.read({ try $0.partitions() }) {
      try await write(to: id) { [storage] in
        let (expired, zones, hasReplies) = try storage.read { snapshot in
          let expired = try snapshot.expiredTraces(in: id, before: oldest)
          return (
            expired, expired.isEmpty ? [] : try snapshot.livingZones(in: id),
            try snapshot.hasReplies(in: id, before: oldestReply)
          )
        }
        var batch = WriteBatch(partition: id)
        if hasReplies { batch.forgetsRepliesBefore = oldestReply }
        batch.collectedZones = zones.compactMap { zone in
          expired[zone.number].map {
            WriteBatch.CollectedZone(name: zone.name, number: zone.number, horizon: $0)
          }
        }
        return (batch.collectedZones.isEmpty && !hasReplies ? nil : batch, ())
      }
    }
  }

  /// Forgets commit events that every process has read long since.
  package func forgetNews() async throws {
    let oldest = now - Int64(limits.eventLifetime * 1000)
    try await writing.run { [storage] in try storage.forgetEvents(before: oldest) }
  }

  /// Looks for the commits of other processes every few seconds, behind whatever word the storage
  /// gives, and tidies up once an hour; returns when it is cancelled or the server stops.
  package func runMaintenance() async {
    var sinceTidying = 0.0
    do {
      // Left by a server that stopped in the middle, this one or another.
      try await finishErasings()
    } catch {
      logger.error("erasing did not go on", metadata: ["error": "\(error)"])
    }
    while !isClosed {
      do { try await effects.clock.sleep(seconds: limits.newsInterval) } catch { return }
      // Storage that does not answer now may do so next time; requests tell of it.
      try? await deliverNews()
      sinceTidying += limits.newsInterval
      guard sinceTidying >= 3600 else { continue }
      sinceTidying = 0
      try? await collectTraces()
      try? await forgetNews()
      do {
        try await housekeep()
      } catch {
        logger.error("housekeeping failed", metadata: ["error": "\(error)"])
      }
    }
  }
}
