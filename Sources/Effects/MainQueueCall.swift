import Dispatch
import Foundation
import Synchronization

/// A block that the main queue has to run while another thread waits for it.
///
/// The main queue runs it in its turn, or the main thread runs it while it waits for a lane that the
/// waiting thread has; the first of the two takes it.
final class MainQueueCall: @unchecked Sendable {
  // Unchecked: the thread that takes the call alone uses the body, and the waiting one only after the
  // signal.
  private var body: (() -> Void)?
  private let taken = Atomic(false)
  private let ended = Atomic(false)
  private let end = DispatchSemaphore(value: 0)

  init(_ body: @escaping () -> Void) {
    self.body = body
  }

  /// Whether a thread runs the body, or has run it.
  var isTaken: Bool { taken.load(ordering: .acquiring) }

  /// Whether the body has run: the waiting thread no longer waits, even if it has not noticed yet.
  var hasEnded: Bool { ended.load(ordering: .acquiring) }

  /// Runs the body, unless another thread has taken the call.
  func run() {
    guard
      taken.compareExchange(
        expected: false,
        desired: true,
        ordering: .acquiringAndReleasing
      ).exchanged
    else { return }
    runBody()
    ended.store(true, ordering: .releasing)
    end.signal()
  }

  /// Apart from `run`, so that no reference to the body is left when the end is signalled: the body
  /// must not outlive the call of the thread that waits.
  @inline(never)
  private func runBody() {
    body?()
    body = nil
  }

  func waitForEnd() { end.wait() }
}
