import Effects

/// The notifications of others' changes, and the times at which the feed is polled without them.
///
/// All times are seconds on the monotonic clock.
struct ListenerState {
  /// The number of the listener that receives notifications; nil if none does.
  private var current: Int?
  /// The number of listeners so far: the end of a former one does not concern the current one.
  private var started = 0
  /// The task of the last listener that was kept.
  private(set) var task: SpawnedTask?
  /// When the feed is polled next while notifications are not available.
  var nextPoll = -Double.infinity
  /// When a subscription that could not be saved is saved again; nil if there is one.
  var nextSubscription: Double?

  /// When the feed is to be polled; nil while others' changes are announced.
  var pollTime: Double? { current != nil && nextSubscription == nil ? nil : nextPoll }

  /// Returns the number of a new listener; nil if there is one.
  mutating func begin() -> Int? {
    guard current == nil else { return nil }
    started += 1
    current = started
    return started
  }

  /// Keeps the task of a listener; returns false if the listener was stopped or ended while the task was started.
  mutating func keep(_ task: SpawnedTask, of number: Int) -> Bool {
    guard current == number else { return false }
    self.task = task
    return true
  }

  /// Ends a listener that receives no more notifications.
  mutating func end(_ number: Int, nextPoll: Double) {
    guard current == number else { return }
    current = nil
    self.nextPoll = nextPoll
  }

  /// Stops the current listener; returns the task to cancel.
  mutating func stop(nextPoll: Double) -> SpawnedTask? {
    current = nil
    self.nextPoll = nextPoll
    defer { task = nil }
    return task
  }
}
