import CloudKitWebServices
import Effects
import Synchronization

/// Ends a read whose request was cancelled, or whose time limit is exceeded.
///
/// SQLite checks it during a statement, a query between two batches of records. To PostgreSQL a
/// cancel request for the running statement is sent.
package final class ReadControl: Sendable {
  private let clock: any EffectClock
  private let end: Double
  private let isCancelled = Atomic<Bool>(false)
  private let stop = Mutex<(@Sendable () -> Void)?>(nil)

  package init(seconds: Double, clock: any EffectClock) {
    self.clock = clock
    end = clock.uptime + seconds
  }

  package func cancel() {
    isCancelled.store(true, ordering: .relaxed)
    stop.withLock { $0 }?()
  }

  /// Runs the body; a cancellation in between calls `stop`, which must not block.
  func stopping<Result>(
    by stop: @escaping @Sendable () -> Void,
    _ body: () throws -> Result
  ) throws -> Result {
    self.stop.withLock { $0 = stop }
    defer { self.stop.withLock { $0 = nil } }
    // An earlier cancellation did not call it.
    try check()
    return try body()
  }

  /// The seconds until the end of the time.
  var secondsLeft: Double { end - clock.uptime }

  package var isOver: Bool { isCancelled.load(ordering: .relaxed) || clock.uptime > end }

  package func check() throws { if isOver { throw ReadOver() } }
}

/// The time that the reads of one request have together, the time in the queue included.
///
/// What a request waits for besides, such as its turn of the writers, does not count.
final class ReadTime: Sendable {
  private let left: Mutex<Double>

  init(seconds: Double) { left = Mutex(seconds) }

  var seconds: Double { left.withLock { $0 } }

  func spend(_ seconds: Double) { left.withLock { $0 -= seconds } }
}

/// A read was ended before it was complete.
struct ReadOver: Error {
  var dictionary: ErrorDictionary {
    ErrorDictionary(
      .tryAgainLater,
      "the read took too long; ask for less, or again when the server is less busy",
      retryAfter: 10
    )
  }
}
