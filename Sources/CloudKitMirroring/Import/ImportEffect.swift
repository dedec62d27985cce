/// The changes of an import in the store.
package struct ImportEffect: Hashable, Sendable {
  package var inserted: [String] = []
  package var updated: [String] = []
  package var deleted: [String] = []
  package var skipped: [String] = []
  package var conflicts: [String] = []
  /// Records that were seen again while their deletions waited.
  package var returned: [String] = []
  /// Set if so many records were missing on the server that none was treated as deleted.
  package var stoppedSweep: StoppedSweep?

  /// Deletions that were not applied: the number of objects, or of links.
  package struct StoppedSweep: Hashable, Sendable {
    package var missing: Int
    package var known: Int

    package init(missing: Int, known: Int) {
      self.missing = missing
      self.known = known
    }
  }

  package init() {}

  package mutating func add(_ other: ImportEffect) {
    inserted += other.inserted
    updated += other.updated
    deleted += other.deleted
    skipped += other.skipped
    conflicts += other.conflicts
    returned += other.returned
    stoppedSweep = other.stoppedSweep ?? stoppedSweep
  }

  package var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty
  }
}

/// The number of changes by all pages of an import: a first import may have a million records.
struct ImportTotal {
  var inserted = 0
  var updated = 0
  var deleted = 0
  var stoppedSweep: ImportEffect.StoppedSweep?

  mutating func add(_ effect: ImportEffect) {
    inserted += effect.inserted.count
    updated += effect.updated.count
    deleted += effect.deleted.count
    stoppedSweep = effect.stoppedSweep ?? stoppedSweep
  }
}
