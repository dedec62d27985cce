import Foundation

/// A source of the current time, with a sleep.
public protocol EffectClock: Sendable {
  /// The wall-clock time now.
  var now: Date { get }
  /// Seconds on a monotonic clock, for measuring durations.
  var uptime: Double { get }
  /// Suspends until the duration has passed or the task is cancelled.
  func sleep(seconds: Double) async throws
}

/// The system's clocks.
public struct LiveClock: EffectClock {
  /// Creates the clock.
  public init() {}

  /// The wall-clock time now.
  public var now: Date { Date() }

  /// Seconds since the machine started.
  public var uptime: Double { ProcessInfo.processInfo.systemUptime }

  /// About thirty years: a longer duration would overflow the number of nanoseconds.
  private static let longestSleep = 1e9

  /// Suspends for the duration, unless the task is cancelled first.
  public func sleep(seconds: Double) async throws {
    guard seconds > 0 else { return }
    try await Task.sleep(nanoseconds: UInt64(min(seconds, Self.longestSleep) * 1_000_000_000))
  }
}
