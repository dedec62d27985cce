import Dispatch
import Foundation
import Synchronization

/// The main queue, seen from a program that may not have a run loop.
///
/// A program that ends its main function with `dispatchMain()`, as one with an asynchronous `main`
/// does, gives its main thread up: from then on the queue's work runs on any thread. So whether the
/// calling code is on the queue is asked of the queue, and of the thread for code before that.
enum MainQueue {
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  static var isCurrent: Bool {
    Thread.isMainThread || DispatchQueue.getSpecific(key: mark) == true
  }

  /// After so many seconds a call that waits is reported.
  private static let patience = 10.0

  /// The calls that wait, and whether a timer will look at them.
  private struct Waiting {
    var since: [Int: DispatchTime] = [:]
    var last = 0
    var isWatched = false
  }

  private static let waiting = Mutex(Waiting())

  /// Runs the body on the queue and waits; says so when that takes long, as it does forever while the
  /// main thread is blocked.
  ///
  /// A child of a main-queue context calls it for each fault, so there is one timer for all calls.
  static func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
    let (call, isFirst) = waiting.withLock { waiting in
      waiting.last += 1
      waiting.since[waiting.last] = .now()
      defer { waiting.isWatched = true }
      return (waiting.last, !waiting.isWatched)
    }
    if isFirst { watch() }
    defer { waiting.withLock { _ = $0.since.removeValue(forKey: call) } }
    return try DispatchQueue.main.sync(execute: body)
  }

  /// Looks at the calls that wait, once for each span of patience, as long as there are any.
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
