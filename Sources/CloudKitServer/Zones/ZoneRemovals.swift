import Effects

/// Deletes the rows of zones that have ended, in transactions of limited size: other writers take their
/// turns between two of them.
///
/// The zones are noted in the storage, so that a server that stops leaves them to the next one. Several
/// servers may do it at once.
final class ZoneRemovals: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let limits: ServiceLimits
  private let effects: Effects

  init(storage: any Storage, writer: StorageWriter, limits: ServiceLimits, effects: Effects) {
    self.storage = storage
    self.writer = writer
    self.limits = limits
    self.effects = effects
  }

  /// Deletes all rows of ended zones.
  func finishAll() async throws { try await run(for: .infinity) }

  /// Deletes rows of ended zones for a number of seconds, at least one step.
  func run(for seconds: Double) async throws {
    let end = effects.clock.uptime + seconds
    var range = DirectoryRange(.endedZone, limit: 100)
    while true {
      let page = try await writer.read { [range] in try $0.entries(range) }
      for entry in page {
        guard let ended = EndedZone(entry.key) else { continue }
        while try await step(ended, entry) {
          try Task.checkCancellation()
          guard effects.clock.uptime < end else { return }
        }
      }
      guard page.count == range.limit else { return }
      range.after = page.last?.key.name
    }
  }

  /// Deletes some rows of a zone; returns whether it may have more.
  private func step(_ ended: EndedZone, _ entry: DirectoryEntry) async throws -> Bool {
    try await writer.write(to: ended.partition) { [storage, limits] () -> (WriteBatch?, Bool) in
      guard try storage.read({ try $0.isEnded(ended.zone, in: ended.partition) }) else {
        return (nil, false)
      }
      var batch = WriteBatch(partition: ended.partition)
      batch.expectedEntries[ended.key] = .some(entry.revision)
      batch.emptiedZones = [ended.zone]
      batch.removalStep = limits.removalStep
      return (batch, true)
    }
  }
}
