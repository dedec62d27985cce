/// When the changes that the server refused, and the records that could not be read, are tried again.
///
/// All times are seconds on the monotonic clock.
struct ParkedRetry {
  /// The first pause before a retry, and the longest.
  static let firstPause = 60.0
  static let longestPause = 3600.0

  /// Whether the next round retries: after a launch it does, because the app or the schema may be newer.
  private var isWanted = true
  /// Whether the round in progress retries.
  private(set) var isRunning = false
  /// When the next retry is due; nil if there is nothing to retry.
  private(set) var next: Double?
  private var pause = ParkedRetry.firstPause

  mutating func want() { isWanted = true }

  /// Requests a retry whose time has come; returns whether it has.
  mutating func wantIfDue(at now: Double) -> Bool {
    guard let next, next <= now else { return false }
    isWanted = true
    self.next = nil
    return true
  }

  /// Begins a requested retry; returns whether one was requested.
  mutating func begin() -> Bool {
    defer { isWanted = false }
    if isWanted { isRunning = true }
    return isWanted
  }

  /// Ends a round; after a retry that left something parked the pause doubles.
  mutating func end(isParked: Bool, at now: Double) {
    defer { isRunning = false }
    guard isParked else {
      pause = Self.firstPause
      next = nil
      return
    }
    if isRunning { pause = min(pause * 2, Self.longestPause) }
    if next == nil { next = now + pause }
  }
}
