/// Decides what an engine that syncs automatically does next, and when.
///
/// It fetches before it sends: a local change that was already merged causes no conflict. After a fetch that
/// failed, a send that is due precedes the next fetch, so that a fetch that always fails does not keep changes
/// on the device.
package struct SyncSchedule: Sendable {
  /// A kind of work.
  package enum Work: Hashable, Sendable {
    /// Fetch changes.
    case fetch
    /// Send the pending changes.
    case send
  }

  /// The next step.
  package enum Step: Hashable, Sendable {
    /// Wait until work is requested.
    case rest
    /// Wait for a number of seconds.
    case wait(Double)
    /// Run work.
    case run(Work)
  }

  /// The delays after failures: from half a second to five minutes.
  private static let pauses = RetryPolicy(attempts: .max, firstDelay: 0.5, longestDelay: 300)

  private var wanted: Set<Work> = []
  private var failures = 0
  /// The time before which no work runs.
  private var earliest = 0.0
  /// The time of the next fetch, if one is scheduled.
  private var fetchTime: Double?
  /// The time of the next send, if one is scheduled.
  private var sendTime: Double?
  /// Whether the last work was a fetch that failed although the service may answer other requests.
  private var isSendNext = false
  /// The work that runs.
  private var running: Work?
  /// Whether the running work was cancelled.
  private var isCancelled = false

  package init() {}

  /// Requests work.
  package mutating func request(_ work: Work) { wanted.insert(work) }

  /// Schedules a fetch, unless an earlier one is scheduled.
  package mutating func requestFetch(at time: Double) {
    fetchTime = min(time, fetchTime ?? time)
  }

  /// Schedules a send, unless an earlier one is scheduled.
  package mutating func requestSend(at time: Double) {
    sendTime = min(time, sendTime ?? time)
  }

  /// The step to take at a time.
  package func step(at time: Double) -> Step {
    func isDue(_ work: Work, _ planned: Double?) -> Bool {
      wanted.contains(work) || planned.map { $0 <= time } == true
    }
    let work: Work
    let isSendDue = isDue(.send, sendTime)
    if isSendDue, isSendNext {
      work = .send
    } else if isDue(.fetch, fetchTime) {
      work = .fetch
    } else if isSendDue {
      work = .send
    } else {
      return [fetchTime, sendTime].compactMap(\.self).min().map { .wait($0 - time) } ?? .rest
    }
    return earliest > time ? .wait(earliest - time) : .run(work)
  }

  /// Records that work starts: later requests are further work.
  package mutating func begin(_ work: Work) {
    wanted.remove(work)
    running = work
    isCancelled = false
    isSendNext = false
    switch work {
    case .fetch: fetchTime = nil
    case .send: sendTime = nil
    }
  }

  /// Records that work succeeded.
  package mutating func succeed() {
    running = nil
    clearFailures()
  }

  private mutating func clearFailures() {
    failures = 0
    earliest = 0
    isSendNext = false
  }

  /// Records that work failed.
  ///
  /// Errors that the engine handles itself are retried, after the delay that the service asks for.
  /// Other errors are for the delegate to handle; work that it requests then runs after a delay, so
  /// that a repeated mistake does not keep a processor busy. `hasMore` says that work of the same kind is left,
  /// regardless of the error. Cancelled work is not requested again.
  package mutating func fail(
    _ work: Work,
    _ error: CKError,
    hasMore: Bool = false,
    at time: Double,
    jitter: Double
  ) {
    running = nil
    guard !isCancelled else { return }
    failures += 1
    let pause = Self.pauses.delay(afterAttempt: failures, jitter: jitter)
    let asked = error.withPartialErrors.compactMap(\.retryAfterSeconds).max()
    earliest = time + max(asked ?? 0, pause)
    // Without a token no request can be sent, but another process that shares the token file may
    // sign the user in.
    if error.code == .notAuthenticated { earliest = time + Self.pauses.longestDelay }
    if hasMore || SyncEngineState.retries(error) { request(work) }
    isSendNext = work == .fetch && !Self.meetsEachRequest(error)
  }

  /// Whether a send would fail for the same reason as a fetch.
  private static func meetsEachRequest(_ error: CKError) -> Bool {
    switch error.code {
    case .networkUnavailable, .notAuthenticated, .accountTemporarilyUnavailable: true
    default: false
    }
  }

  /// Ends the delays after failures: an account was signed in to, or the app asks for work at once.
  package mutating func wake() {
    clearFailures()
  }

  /// Drops the requested work, and the running work, which the caller cancels; scheduled work stays.
  package mutating func cancel() {
    wanted = []
    isCancelled = running != nil
  }
}
