/// Decides what a sync engine that syncs by itself does next, and when.
///
/// It fetches before it sends: a change that was merged already conflicts with nothing.
package struct SyncSchedule: Sendable {
  /// Something to do.
  package enum Work: Hashable, Sendable {
    /// Fetch what changed.
    case fetch
    /// Send what is pending.
    case send
  }

  /// What to do now.
  package enum Step: Hashable, Sendable {
    /// Nothing, until something is asked for.
    case rest
    /// Nothing for so many seconds.
    case wait(Double)
    /// Work.
    case run(Work)
  }

  /// The pauses after failures: seconds at first, minutes while a service is away.
  private static let pauses = RetryPolicy(attempts: .max, firstDelay: 0.5, longestDelay: 300)

  private var wanted: Set<Work> = []
  private var failures = 0
  /// The time before which nothing runs.
  private var earliest = 0.0
  /// When to fetch, also where nothing asks for it.
  private var fetchTime: Double?

  package init() {}

  /// Asks for work.
  package mutating func request(_ work: Work) { wanted.insert(work) }

  /// Asks for a fetch at a time, unless one runs before.
  package mutating func requestFetch(at time: Double) {
    fetchTime = min(time, fetchTime ?? time)
  }

  /// What to do at a time.
  package func step(at time: Double) -> Step {
    let fetches = wanted.contains(.fetch) || fetchTime.map { $0 <= time } == true
    guard let work = fetches ? .fetch : wanted.first else {
      return fetchTime.map { .wait($0 - time) } ?? .rest
    }
    return earliest > time ? .wait(earliest - time) : .run(work)
  }

  /// Notes that work begins: what is asked for from now on is more work.
  package mutating func begin(_ work: Work) {
    wanted.remove(work)
    if work == .fetch { fetchTime = nil }
  }

  /// Notes that work was done.
  package mutating func succeed() {
    failures = 0
    earliest = 0
  }

  /// Notes that work failed.
  ///
  /// What the engine deals with itself is tried again, after the time that the service asks for.
  /// The rest is the delegate's affair; what it asks for runs after a pause, so that a mistake that
  /// repeats itself does not keep a processor busy.
  package mutating func fail(_ work: Work, _ error: CKError, at time: Double, jitter: Double) {
    failures += 1
    let pause = Self.pauses.delay(afterAttempt: failures, jitter: jitter)
    let asked = error.withPartialErrors.compactMap(\.retryAfterSeconds).max()
    earliest = time + max(asked ?? 0, pause)
    // Without a token there is nothing to ask the service with, but another process that shares the
    // token file may sign the user in.
    if error.code == .notAuthenticated { earliest = time + Self.pauses.longestDelay }
    if SyncEngineState.retries(error) { request(work) }
  }

  /// Notes that an account was signed in to, or that the app wants no more waiting.
  package mutating func wake() {
    succeed()
  }
}
