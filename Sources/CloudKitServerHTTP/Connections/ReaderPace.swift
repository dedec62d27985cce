import NIOCore

/// Decides whether a client reads its replies fast enough.
///
/// Only the time during which written bytes wait for the client is counted, so that a slow asset
/// store is not attributed to the client.
struct ReaderPace {
  enum Verdict: Equatable {
    /// No bytes wait; the next write starts a new measurement.
    case idle
    /// The time of the next measurement.
    case waits(until: NIODeadline)
    case tooSlow
  }

  private struct Mark {
    var time: NIODeadline
    /// The bytes that waited at that time.
    var bytes: Int
  }

  /// The time between two measurements.
  let window: TimeAmount
  /// The bytes that the client must read in each window.
  let leastBytes: Int
  private var mark: Mark?

  init(window: TimeAmount, leastBytes: Int) {
    self.window = window
    self.leastBytes = leastBytes
  }

  /// Records a write after which `waiting` bytes wait for the client; returns when to measure.
  mutating func wrote(waiting: Int, at now: NIODeadline) -> NIODeadline {
    let current = mark ?? Mark(time: now, bytes: waiting)
    mark = current
    return current.time + window
  }

  /// Records that the client has read everything.
  mutating func caughtUp() { mark = nil }

  /// Measures; `deadline` is when the client must have read a whole reply.
  mutating func check(waiting: Int, at now: NIODeadline, deadline: NIODeadline?) -> Verdict {
    guard let mark else { return .idle }
    let due = mark.time + window
    guard now >= due else { return .waits(until: due) }
    guard mark.bytes - waiting >= leastBytes, deadline.map({ now < $0 }) ?? true else {
      return .tooSlow
    }
    self.mark = Mark(time: now, bytes: waiting)
    return .waits(until: now + window)
  }
}
