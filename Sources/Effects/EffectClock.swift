import Foundation

/// Tells the time and waits for it.
public protocol EffectClock: Sendable {
  /// The wall-clock time now.
  var now: Date { get }
  /// Seconds on a clock that never jumps, for measuring spans.
  var uptime: Double { get }
  /// Suspends until the span has passed or the task is cancelled.
  func sleep(seconds: Double) async throws
}

/// The clocks of the machine.
public struct LiveClock: EffectClock {
  /// Creates the clock.
  public init() {}

  /// The wall-clock time now.
  public var now: Date { Date() }

  /// Seconds since the machine started.
  public var uptime: Double { ProcessInfo.processInfo.systemUptime }

  /// About thirty years: more nanoseconds than a span can hold are no reason to trap.
  private static let longestSleep = 1e9

  /// Suspends for the span, unless the task is cancelled first.
  public func sleep(seconds: Double) async throws {
    guard seconds > 0 else { return }
    try await Task.sleep(nanoseconds: UInt64(min(seconds, Self.longestSleep) * 1_000_000_000))
  }
}
