import Effects
import Foundation
import Synchronization

/// Prints the events of a demo: a timeline for users, or a JSON object per line.
final class DemoReporter: Sendable {
  /// One line of the timeline.
  struct Event: Encodable {
    /// The time of the event, in milliseconds since the demo began.
    var at: Double
    /// The actor: a device, the server, or the demo itself.
    var who: String
    /// The kind of event, such as `saved`, `exported` or `imported`.
    var what: String
    /// The sentence in the timeline.
    var text: String
    /// The duration, if it was measured.
    var milliseconds: Double?
    /// The number of objects or records.
    var count: Int?
    /// A record or a difference in full, one line for each part.
    var lines: [String]?
    /// Names and values for programs that read the events.
    var facts: [String: String]?
  }

  private let isJSON: Bool
  private let waitsBeforeChapters: Bool
  private let isColored: Bool
  private let now: @Sendable () -> Double
  private let start: Double
  private let output = Mutex(())
  private let onFailure: @Sendable (StandardOutputError) -> Void

  /// `now` returns seconds of a monotonic clock; `onFailure` ends a demo whose output cannot be
  /// written.
  init(
    isJSON: Bool,
    isColored: Bool,
    waitsBeforeChapters: Bool = false,
    now: @escaping @Sendable () -> Double,
    onFailure: @escaping @Sendable (StandardOutputError) -> Void
  ) {
    self.isJSON = isJSON
    self.waitsBeforeChapters = waitsBeforeChapters
    self.onFailure = onFailure
    self.isColored = isColored
    self.now = now
    start = now()
  }

  /// Milliseconds since the demo began.
  var elapsed: Double { (now() - start) * 1000 }

  /// Begins a chapter with a title.
  func chapter(_ title: String) {
    if waitsBeforeChapters {
      report("demo", "waits", "for a line, before: \(title)")
      _ = readLine()
    }
    report("demo", "chapter", title)
  }

  /// Prints one event.
  func report(
    _ who: String,
    _ what: String,
    _ text: String,
    milliseconds: Double? = nil,
    count: Int? = nil,
    lines: [String]? = nil,
    facts: [String: String]? = nil
  ) {
    let event = Event(
      at: (elapsed * 10).rounded() / 10,
      who: who,
      what: what,
      text: text,
      milliseconds: milliseconds.map { ($0 * 10).rounded() / 10 },
      count: count,
      lines: lines,
      facts: facts
    )
    write(isJSON ? json(event) : sentence(event))
  }

  private func write(_ text: String) {
    do throws(StandardOutputError) {
      try output.withLock { _ throws(StandardOutputError) in try StandardOutput.print(text) }
    } catch {
      onFailure(error)
    }
  }

  private func json(_ event: Event) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(event)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }

  private func sentence(_ event: Event) -> String {
    if event.what == "chapter" { return "\n" + styled(event.text, "1") }
    let time = String(format: "%8.1f ms", event.at)
    let who = event.who.padding(toLength: 8, withPad: " ", startingAt: 0)
    let what = event.what.padding(toLength: 10, withPad: " ", startingAt: 0)
    var line = "\(styled(time, "2"))  \(styled(who, color(of: event.who)))"
    line += "  \(styled(what, "1"))  \(event.text)"
    if let milliseconds = event.milliseconds {
      line += styled(String(format: "  (%.1f ms)", milliseconds), "2")
    }
    for detail in event.lines ?? [] { line += "\n               \(detail)" }
    return line
  }

  private func color(of who: String) -> String {
    switch who {
    case "phone": "36"
    case "laptop": "35"
    case "server": "33"
    default: "32"
    }
  }

  private func styled(_ text: String, _ code: String) -> String {
    isColored ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
  }
}
