/// Whether a check runs, and whether another one has to follow it.
///
/// A notification that arrives while a check runs may be about a commit that the check did not see,
/// so the checks continue until one has begun after the last notification. However many notifications
/// arrive, at most one check waits.
struct RepeatedChecks {
  private var isRunning = false
  private var isRequested = false

  /// Notes a notification; true where the caller has to start the checks.
  mutating func request() -> Bool {
    isRequested = true
    guard !isRunning else { return false }
    isRunning = true
    return true
  }

  /// A check begins: it sees what the notifications so far were about.
  mutating func beginCheck() { isRequested = false }

  /// The last check is over; true where the checks end, false where a notification arrived since it
  /// began.
  mutating func finish() -> Bool {
    guard !isRequested else { return false }
    isRunning = false
    return true
  }

  /// The checks end without a further one.
  mutating func stop() { isRunning = false }
}
