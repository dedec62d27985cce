import Dispatch
import Foundation

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

  /// How long nobody wonders why the main queue does not turn.
  private static let patience = 10

  /// Runs the body on the queue and waits; says so when that takes long, as it does forever while the
  /// main thread is blocked.
  static func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
    let watch = DispatchWorkItem {
      StandardError.print(
        """
        CoreData: warning: a call has waited \(patience) seconds for the main queue. Its thread \
        must run a run loop or call dispatchMain(), and must not wait for other threads itself.
        """
      )
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(patience), execute: watch)
    defer { watch.cancel() }
    return try DispatchQueue.main.sync(execute: body)
  }
}
