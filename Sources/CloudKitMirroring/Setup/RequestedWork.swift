/// The work that a mirror was asked to do, and the calls that wait for it.
struct RequestedWork {
  /// What a round does.
  struct Directions: OptionSet {
    let rawValue: UInt8

    static let importing = Directions(rawValue: 1)
    static let exporting = Directions(rawValue: 2)
    static let both: Directions = [.importing, .exporting]
  }

  /// A call that waits for a round.
  struct Waiter {
    var continuation: CheckedContinuation<Void, any Error>
    /// Whether the call came while a round was running: the failure of that round may have occurred
    /// before the call.
    var isLate: Bool
  }

  /// A mirror that was just started has both to do.
  private var requested = Directions.both
  private var waiters: [Waiter] = []
  private var isRunning = false

  /// Whether nothing is requested; a round may be running.
  var isEmpty: Bool { requested.isEmpty }

  /// Whether nothing is requested and no round is running.
  var isIdle: Bool { isEmpty && !isRunning }

  /// Whether some of the directions were not requested yet.
  func lacks(_ directions: Directions) -> Bool { !requested.isSuperset(of: directions) }

  mutating func want(_ directions: Directions) { requested.formUnion(directions) }

  /// Requests both directions for a call that waits for them.
  mutating func wait(_ continuation: CheckedContinuation<Void, any Error>) {
    waiters.append(Waiter(continuation: continuation, isLate: isRunning))
    want(.both)
  }

  // MARK: Rounds

  /// Begins a round, which answers all calls that are waiting when it begins.
  mutating func begin() {
    isRunning = true
    for index in waiters.indices { waiters[index].isLate = false }
  }

  /// Takes the requested work; a round that fails requests it again.
  mutating func take() -> Directions {
    defer { requested = [] }
    return requested
  }

  /// Ends a round without an error; returns the calls that it answers.
  ///
  /// Work that was requested during this round gets a round of its own, which answers them.
  mutating func succeed() -> [Waiter] {
    isRunning = false
    return isEmpty ? takeWaiters() : []
  }

  /// Ends a round with an error; returns the calls that it answers.
  ///
  /// A late call gets a round of its own, at once: its signal ends the pause. While the server asks to
  /// wait (`isHeld`), there is no round for long, and late calls are answered too.
  mutating func fail(isHeld: Bool) -> [Waiter] {
    isRunning = false
    let answered = waiters.filter { !$0.isLate || isHeld }
    waiters.removeAll { !$0.isLate || isHeld }
    return answered
  }

  /// Takes all calls that wait.
  mutating func takeWaiters() -> [Waiter] {
    defer { waiters = [] }
    return waiters
  }
}
