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
  private static let delays = RetryPolicy(attempts: .max, firstDelay: 0.5, longestDelay: 300)

  /// The pause after consecutive failures.
  private struct Pause: Sendable {
    private var failures = 0
    /// The time before which no work that the pause concerns runs.
    private(set) var end = 0.0

    mutating func noteFailure(at time: Double, asked: Double, jitter: Double) {
      failures += 1
      end = time + max(asked, SyncSchedule.delays.delay(afterAttempt: failures, jitter: jitter))
    }
  }

  private var wanted: Set<Work> = []
  /// Cancelled work, which the next request or planned work requests again.
  private var cancelled: Set<Work> = []
  /// The times of the work that is planned.
  private var plans: [Work: Double] = [:]
  /// The pauses after errors that concern one kind of work.
  private var pauses: [Work: Pause] = [:]
  /// The pause after errors that concern all work.
  private var commonPause = Pause()
  /// Whether the last work was a fetch that failed although the service may answer other requests.
  private var isSendNext = false
  /// The work that runs.
  private var running: Work?
  /// The time for which the running work was planned, if it was.
  private var runningPlan: Double?
  /// Whether the running work was cancelled.
  private var isCancelled = false

  package init() {}

  /// Requests work, and all work that was cancelled.
  package mutating func request(_ work: Work) {
    wanted.insert(work)
    requestCancelledWork()
  }

  private mutating func requestCancelledWork() {
    wanted.formUnion(cancelled)
    cancelled = []
  }

  /// Schedules a fetch, unless an earlier one is scheduled.
  package mutating func requestFetch(at time: Double) { plan(.fetch, at: time) }

  /// Schedules a send, unless an earlier one is scheduled.
  package mutating func requestSend(at time: Double) { plan(.send, at: time) }

  private mutating func plan(_ work: Work, at time: Double) {
    plans[work] = min(time, plans[work] ?? time)
  }

  /// The step to take at a time.
  package func step(at time: Double) -> Step {
    let order: [Work] = isSendNext ? [.send, .fetch] : [.fetch, .send]
    if let work = order.first(where: { start(of: $0).map { $0 <= time } == true }) {
      return .run(work)
    }
    return order.compactMap(start(of:)).min().map { .wait($0 - time) } ?? .rest
  }

  /// The time from which work may run, if it is wanted or planned.
  private func start(of work: Work) -> Double? {
    guard let due = wanted.contains(work) ? 0 : plans[work] else { return nil }
    return max(due, commonPause.end, pauses[work]?.end ?? 0)
  }

  /// Records that work starts: later requests are further work.
  package mutating func begin(_ work: Work) {
    requestCancelledWork()
    wanted.remove(work)
    running = work
    runningPlan = plans.removeValue(forKey: work)
    isCancelled = false
    isSendNext = false
  }

  /// Records that work succeeded: the service can be reached, and accepts work of this kind.
  package mutating func succeed() {
    if let running { pauses[running] = nil }
    running = nil
    commonPause = Pause()
    isSendNext = false
  }

  /// Records that work failed.
  ///
  /// Errors that the engine handles itself are retried, after the delay that the service asks for.
  /// Other errors are for the delegate to handle; work that it requests then runs after a delay, so
  /// that a repeated mistake does not keep a processor busy. The delay concerns work of the same kind, or
  /// all work if the error does. `hasMore` says that work of the same kind is left, regardless of the error.
  /// Cancelled work waits for the next request; if it was planned, it is planned for later.
  package mutating func fail(
    _ work: Work,
    _ error: CKError,
    hasMore: Bool = false,
    at time: Double,
    jitter: Double
  ) {
    running = nil
    guard !isCancelled else {
      cancelled.insert(work)
      let later = time + Self.delays.longestDelay
      if let runningPlan { plan(work, at: runningPlan > time ? runningPlan : later) }
      return
    }
    var asked = error.withPartialErrors.compactMap(\.retryAfterSeconds).max() ?? 0
    // Without a token no request can be sent, but another process that shares the token file may
    // sign the user in.
    if error.code == .notAuthenticated { asked = max(asked, Self.delays.longestDelay) }
    if error.meetsEachRequest || error.code == .requestRateLimited {
      commonPause.noteFailure(at: time, asked: asked, jitter: jitter)
    } else {
      pauses[work, default: Pause()].noteFailure(at: time, asked: asked, jitter: jitter)
    }
    if hasMore || SyncEngineState.retries(error) { request(work) }
    isSendNext = work == .fetch && !error.meetsEachRequest
  }

  /// Ends the delays after failures: an account was signed in to, or the app asks for work at once.
  package mutating func wake() {
    pauses = [:]
    commonPause = Pause()
    isSendNext = false
  }

  /// Postpones the requested work, and the running work, which the caller cancels, until work is requested or
  /// planned work is due; planned work stays.
  package mutating func cancel() {
    cancelled.formUnion(wanted)
    wanted = []
    isCancelled = running != nil
  }
}

extension CKError {
  /// Whether each other request would fail for the same reason: the service can't be reached, or accepts no
  /// request of the account.
  var meetsEachRequest: Bool {
    switch code {
    case .networkUnavailable, .notAuthenticated, .accountTemporarilyUnavailable: true
    default: false
    }
  }
}
