import CloudKitMirroring
import Foundation

/// Turns what a device's mirroring notes in its journal into lines of the timeline.
enum DemoJournal {
  static func follow(_ device: DemoDevice, _ reporter: DemoReporter) {
    for mirror in device.container.storeMirrors {
      mirror.journal.observe { event in
        guard let line = line(for: event) else { return }
        reporter.report(
          device.name,
          line.what,
          line.text,
          milliseconds: event.duration.map { $0 * 1000 },
          count: line.count
        )
      }
    }
  }

  private struct Line {
    var what: String
    var text: String
    var count: Int?
  }

  /// The steps that a watcher wants to see; the rest is in the log.
  private static func line(for event: SyncEvent) -> Line? {
    switch (event.phase, event.step) {
    case (.setup, .finished):
      Line(what: "set up", text: event.effect)
    case (.export, .batchSaved):
      Line(
        what: "exported",
        text: "\(event.saved) records saved, \(event.deleted) deleted. \(event.effect)",
        count: event.saved + event.deleted
      )
    case (.import, .pageApplied):
      Line(
        what: "imported",
        text: event.effect,
        count: event.inserted + event.updated + event.deleted
      )
    case (_, .conflictMerged): Line(what: "merged", text: "\(event.cause) \(event.effect)")
    case (_, .deleteWon): Line(what: "delete won", text: "\(event.cause) \(event.effect)")
    case (_, .recordParked): Line(what: "parked", text: "\(event.cause) \(event.effect)")
    case (_, .failed): Line(what: "failed", text: "\(event.cause): \(event.effect)")
    default: nil
    }
  }
}
