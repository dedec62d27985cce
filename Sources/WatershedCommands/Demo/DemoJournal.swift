import CloudKitMirroring
import Foundation

/// Converts events in the journal of a device's mirroring to lines of the timeline.
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

  /// The line of an event; nil for events that are only logged.
  private static func line(for event: SyncEvent) -> Line? {
    switch (event.phase, event.step) {
    case (.setup, .finished):
      Line(what: "set up", text: event.effect)
    case (.export, .batchSaved): exported(event)
    case (.import, .pageApplied): imported(event)
    case (_, .conflictMerged): Line(what: "merged", text: "\(event.cause) \(event.effect)")
    case (_, .deleteWon): Line(what: "delete won", text: "\(event.cause) \(event.effect)")
    case (_, .recordParked): Line(what: "parked", text: "\(event.cause) \(event.effect)")
    case (_, .failed): Line(what: "failed", text: "\(event.cause): \(event.effect)")
    default: nil
    }
  }

  private static func exported(_ event: SyncEvent) -> Line? {
    guard event.saved + event.deleted > 0 else {
      // The server accepted nothing of this batch: the effect explains how it continues.
      return Line(what: "exported", text: "nothing yet. \(event.effect)")
    }
    var parts: [String] = []
    if event.saved > 0 { parts.append("\(counted(event.saved, "record")) saved") }
    if event.deleted > 0 { parts.append("\(counted(event.deleted, "record")) deleted") }
    return Line(
      what: "exported",
      text: parts.joined(separator: ", "),
      count: event.saved + event.deleted
    )
  }

  /// The line of an import; a device's own changes are in the feed too and change nothing.
  private static func imported(_ event: SyncEvent) -> Line? {
    let counts = [
      (event.inserted, "inserted"), (event.updated, "updated"), (event.deleted, "deleted"),
    ]
    let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    guard !parts.isEmpty else { return nil }
    return Line(
      what: "imported",
      text: parts.joined(separator: ", "),
      count: counts.reduce(0) { $0 + $1.0 }
    )
  }

  private static func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }
}
