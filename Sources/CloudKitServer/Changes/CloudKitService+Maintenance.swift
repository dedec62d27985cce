import CloudKitWebServices
import Effects
import Foundation
import Logging

/// Periodic maintenance.
extension CloudKitService {
  /// Removes old tombstones, whose tokens have expired, and kept replies that no device will
  /// request again.
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

  /// Removes commit events that every process has read.
  package func forgetOldEvents() async throws {
    let oldest = now - Int64(limits.eventLifetime * 1000)
    try await writer.directoryLane.run { [storage] in try storage.forgetEvents(before: oldest) }
  }

  /// Checks for commits of other processes every few seconds, besides the storage's notifications,
  /// and runs the housekeeping once an hour; returns when it is cancelled or the server stops.
  package func runMaintenance() async {
    var sinceTidying = 0.0
    do {
      // Left incomplete by a server that stopped, this one or another.
      try await erasing.finishAll()
    } catch {
      logger.error(
        "erasing deleted schema fields failed; the next maintenance retries it",
        metadata: ["error": "\(error)"]
      )
    }
    while !isClosed {
      do { try await effects.clock.sleep(seconds: limits.eventPollInterval) } catch { return }
      // If the storage does not respond now, the next round may succeed; requests report the error.
      try? await delivery.deliverEvents()
      // For as long as the pause: the next events are not delayed further. After an error the next
      // round continues.
      try? await removals.run(for: limits.eventPollInterval)
      sinceTidying += limits.eventPollInterval
      guard sinceTidying >= 3600 else { continue }
      sinceTidying = 0
      try? await collectTraces()
      try? await forgetOldEvents()
      do {
        try await housekeep()
      } catch {
        logger.error("maintenance failed", metadata: ["error": "\(error)"])
      }
    }
  }
}
