import Dispatch
import Foundation
import Synchronization

/// The main queue, also in a program without a run loop.
///
/// A program that ends its main function with `dispatchMain()`, as one with an asynchronous `main`
/// does, gives up its main thread: afterwards any thread runs the queue's work. Whether the calling
/// code is on the queue is therefore read from queue-specific data, and from the thread for code
/// that runs before that.
enum MainQueue {
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  static var isCurrent: Bool {
    Thread.isMainThread || DispatchQueue.getSpecific(key: mark) == true
  }

  /// A call that waits longer than this is reported, in seconds.
  private static let patience = 10.0

  /// The waiting calls, and whether a timer is scheduled to check them.
  private struct Waiting {
    var since: [Int: DispatchTime] = [:]
    var last = 0
    var isWatched = false
  }

  private static let waiting = Mutex(Waiting())

  /// Runs the body on the queue and waits.
  ///
  /// It prints a warning if the wait is long: it never ends while the main thread is blocked.
  ///
  /// A child of a main-queue context calls it for each fault, so one timer serves all calls.
  static func sync<Result>(
    isForParent: Bool,
    _ body: () throws -> Result
  ) rethrows -> Result {
    let (call, isFirst) = waiting.withLock { waiting in
      waiting.last += 1
      waiting.since[waiting.last] = .now()
      defer { waiting.isWatched = true }
      return (waiting.last, !waiting.isWatched)
    }
    if isFirst { watch() }
    defer { waiting.withLock { _ = $0.since.removeValue(forKey: call) } }
    return try run(isForParent, body) { throw $0 }
  }

  /// Has the queue run the body, or the main thread while it waits for a lane that the caller has.
  ///
  /// `rescue` throws the body's error, which lets the function rethrow it.
  private static func run<Result>(
    _ isForParent: Bool,
    _ body: () throws -> Result,
    rescue: (any Error) throws -> Result
  ) rethrows -> Result {
    var outcome: Swift.Result<Result, any Error>?
    withoutActuallyEscaping({ outcome = Swift.Result { try body() } }) { work in
      let call = MainQueueCall(work)
      DispatchQueue.main.async { call.run() }
      let resolution = LaneWaits.shared.begin(
        LaneWaits.Wait(goal: .main(call), isForParent: isForParent, isOnMainQueue: false)
      )
      resolution?.lane?.wake()
      call.waitForEnd()
      _ = LaneWaits.shared.end()
    }
    switch outcome {
    case .success(let result)?: return result
    case .failure(let error)?: return try rescue(error)
    case nil: preconditionFailure("The main queue did not run the block that a thread waited for.")
    }
  }

  /// Checks the waiting calls once in each period, as long as there are any.
  private static func watch() {
    DispatchQueue.global().asyncAfter(deadline: .now() + patience) {
      let (isOverdue, isWatched) = waiting.withLock { waiting in
        let limit = DispatchTime.now() - patience
        let overdue = waiting.since.filter { $0.value <= limit }
        for call in overdue.keys { waiting.since[call] = nil }
        waiting.isWatched = !waiting.since.isEmpty
        return (!overdue.isEmpty, waiting.isWatched)
      }
      if isOverdue {
        StandardError.print(
          """
          CoreData: warning: a call has waited \(Int(patience)) seconds for the main queue. Its \
          thread must run a run loop or call dispatchMain(), and must not wait for other threads \
          itself.
          """
        )
      }
      if isWatched { watch() }
    }
  }
}
