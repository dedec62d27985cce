import Dispatch
import Foundation

/// The executor of a context's work: a serial lane, or the main queue.
public enum Lane: Sendable {
  /// A FIFO on the concurrent pool.
  case serial(SerialLane)
  /// The main thread's queue.
  case main

  /// Runs the body after the work queued before it, on the calling thread or on the main thread.
  ///
  /// `isForParent` says whether the caller has the lane of a child context of this lane's context. The
  /// main thread runs the body before its turn if it waits for a lane that the caller has.
  public func sync<Result>(
    isForParent: @autoclosure () -> Bool = false,
    _ body: () throws -> Result
  ) rethrows -> Result {
    switch self {
    case .serial(let lane):
      return try lane.sync(isForParent: isForParent(), body)
    case .main:
      if MainQueue.isCurrent { return try body() }
      return try MainQueue.sync(isForParent: isForParent(), body)
    }
  }

  /// Queues the body and returns at once.
  public func async(_ body: @escaping @Sendable () -> Void) {
    switch self {
    case .serial(let lane): lane.async(body)
    case .main: DispatchQueue.main.async(execute: body)
    }
  }

  /// Queues the body and suspends until it has run.
  public func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }

  /// Whether the calling code runs on this lane now.
  public var isCurrent: Bool {
    switch self {
    case .serial(let lane): lane.isCurrent
    case .main: MainQueue.isCurrent
    }
  }
}
