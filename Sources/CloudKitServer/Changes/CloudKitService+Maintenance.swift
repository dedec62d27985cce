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
    // A database that fails ends no other one's collection.
    var steps = EveryStep()
    for id in try await writer.read({ try $0.partitions() }) {
      try await steps.run("database \(id.rawValue)") {
        try await collectTraces(in: id, before: oldest, replies: oldestReply)
      }
    }
    try steps.finish()
  }

  private func collectTraces(
    in id: PartitionID,
    before oldest: Int64,
    replies oldestReply: Int64
  ) async throws {
    let (expired, hasReplies) = try await writer.read { snapshot in
      (
        try snapshot.expiredTraces(in: id, before: oldest),
        try snapshot.hasReplies(in: id, before: oldestReply)
      )
    }
    if hasReplies {
      try await write(to: id) {
        var batch = WriteBatch(partition: id)
        batch.forgetsRepliesBefore = oldestReply
        return (batch, ())
      }
    }
    for (zone, horizon) in expired {
      while try await collectStep(of: zone, in: id, upTo: horizon) {}
    }
  }

  /// Removes the oldest tombstones of a zone, as many as one transaction may remove, and returns
  /// whether there may be more.
  private func collectStep(
    of number: ZoneNumber,
    in id: PartitionID,
    upTo horizon: ChangeNumber
  ) async throws -> Bool {
    try await write(to: id) { [storage, limits] in
      let (zone, step) = try storage.read { snapshot in
        let zone = try snapshot.livingZones(in: id).first { $0.number == number }
        let range = ChangeRange(
          zone: number,
          after: zone?.horizon ?? .zero,
          through: horizon,
          limit: limits.rowsPerRemoval
        )
        // Tombstones with the same change number are removed together.
        return (zone, try snapshot.traceHorizon(in: id, range) ?? horizon)
      }
      guard let zone, zone.horizon < step else { return (nil, false) }
      var batch = WriteBatch(partition: id)
      batch.collectedZones = [
        WriteBatch.CollectedZone(name: zone.name, number: number, horizon: step)
      ]
      return (batch, step < horizon)
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
      try? await containerErasures.run(for: limits.eventPollInterval)
      sinceTidying += limits.eventPollInterval
      guard sinceTidying >= 3600 else { continue }
      sinceTidying = 0
      await runStep("tombstones and replies") { try await collectTraces() }
      await runStep("events") { try await forgetOldEvents() }
      await runStep("housekeeping") { try await housekeep() }
    }
  }

  /// Runs a step of the hourly maintenance; an error is logged and does not stop the other steps.
  package func runStep(_ name: String, _ step: () async throws -> Void) async {
    do {
      try await step()
    } catch {
      // The end of the server interrupts a step; its next start runs it.
      guard !isClosed, !Task.isCancelled else { return }
      logger.error(
        "a step of the maintenance failed; the next maintenance retries it",
        metadata: ["step": "\(name)", "error": "\(error)"]
      )
    }
  }
}
