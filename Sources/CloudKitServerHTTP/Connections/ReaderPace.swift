import NIOCore

/// Decides whether a client takes its answers fast enough.
///
/// Time counts only while written bytes wait for the client: an asset store that delivers slowly is
/// not the client's fault.
struct ReaderPace {
  enum Verdict: Equatable {
    /// No bytes wait; the next write begins to measure again.
    case idle
    /// The pace is measured again at that time.
    case waits(until: NIODeadline)
    case tooSlow
  }

  private struct Mark {
    var time: NIODeadline
    /// Bytes that waited then.
    var bytes: Int
  }

  /// Two measurements are this far apart.
  let window: TimeAmount
  /// Bytes that the client takes in each window.
  let leastBytes: Int
  private var mark: Mark?

  init(window: TimeAmount, leastBytes: Int) {
    self.window = window
    self.leastBytes = leastBytes
  }

  /// Notes that bytes were written, of which so many wait for the client; returns when to measure.
  mutating func wrote(waiting: Int, at now: NIODeadline) -> NIODeadline {
    let current = mark ?? Mark(time: now, bytes: waiting)
    mark = current
    return current.time + window
  }

  /// Notes that the client has taken everything.
  mutating func caughtUp() { mark = nil }

  /// Measures; `deadline` is when the client must have taken all of an answer.
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
