import Effects
import Foundation
import OpenCloudKit
import Synchronization

extension StoreMirror {
  /// One round: waits for work, then does all of it.
  func turn() async {
    let (isWanted, due) = state.withLock { state in
      (!state.work.isEmpty, dueTime(state))
    }
    if !isWanted {
      let wait = due.map { max(0, $0 - effects.clock.uptime) }
      if wait != 0 { await signal.wait(seconds: wait, clock: effects.clock) }
      if Task.isCancelled { return }
      wantWhatIsDue()
      return
    }
    do {
      try await work()
      let waiters = state.withLock { state in
        state.pause.succeed()
        return state.work.succeed()
      }
      for waiter in waiters { waiter.continuation.resume() }
    } catch is CancellationError where Task.isCancelled {
      return
    } catch {
      await pause(after: error)
    }
  }

  /// When to poll the feed or retry refused changes without a wake-up; nil: never.
  private func dueTime(_ state: State) -> Double? {
    [state.listener.pollTime, state.parked.next].compactMap(\.self).min()
  }

  private func wantWhatIsDue() {
    let now = effects.clock.uptime
    state.withLock { state in
      if let poll = state.listener.pollTime, poll <= now { state.work.want(.importing) }
      if state.parked.wantIfDue(at: now) { state.work.want(.both) }
    }
  }

  /// Makes refused changes pending again if their retry is due, or the app asked to sync.
  private func unpark() throws {
    guard state.withLock({ $0.parked.begin() }) else { return }
    try write(MirrorAuthor.exporting) { try $0.metadata.unparkChanges() }
  }

  /// Schedules the retry of refused changes, after a pause that grows.
  private func planParkedRetry() throws {
    let isParked = try read { try $0.parkedCount() + $0.unreadableCount() > 0 }
    let now = effects.clock.uptime
    state.withLock { $0.parked.end(isParked: isParked, at: now) }
  }

  private func work() async throws {
    state.withLock { state in
      state.work.begin()
      state.account.beginRound()
    }
    while true {
      // Checked again: the account may have changed during the round.
      try await setUpIfNeeded()
      try unpark()
      let directions = state.withLock { $0.work.take() }
      guard !directions.isEmpty else { return try planParkedRetry() }
      let imports = directions.contains(.importing)
      do {
        if imports { try await saveSubscriptionIfDue() }
        let end = try await imports ? runImport() : ImportEnd()
        if let stuck = end.stuck { throw stuck }
        if directions.contains(.exporting) { try await runExport() }
        if let failure = end.failedLookUp {
          try planParkedRetry()
          throw failure
        }
      } catch {
        // The requested work is still to be done.
        state.withLock { state in
          // The current account decides how to continue.
          if case CloudFailure.accountChanged = error { state.account.noteChange() }
          state.work.want(directions)
        }
        throw error
      }
    }
  }

  private func pause(after error: any Error) async {
    let fraction = effects.randomness.fraction()
    var retryAfter: Double?
    if case CloudFailure.busy(_, let seconds) = error {
      retryAfter = seconds.map { RetryBackoff.bounded($0) }
    }
    let (now, uptime) = (effects.now, effects.clock.uptime)
    let (wait, waiters) = state.withLock { [retryAfter] state in
      let wait = state.pause.begin(
        after: error,
        retryAfter: retryAfter,
        fraction: fraction,
        now: now,
        uptime: uptime
      )
      return (wait, state.work.fail(isHeld: (retryAfter ?? 0) > 0))
    }
    journal.note(
      .retry,
      .waiting,
      cause: MirrorErrorText.text(error),
      effect: "Everything stays saved here; the next try is in "
        + "\(String(format: "%.1f", wait)) s, or as soon as the server is back."
    )
    log.detail(1, "Request failed, will retry: \(MirrorErrorText.text(error))")
    for waiter in waiters { waiter.continuation.resume(throwing: error) }
    // A pause that the server requested is kept, regardless of wake-ups.
    if let retryAfter { try? await effects.clock.sleep(seconds: retryAfter) }
    let rest = wait - (retryAfter ?? 0)
    if rest > 0 { await signal.wait(onlyUrgent: true, seconds: rest, clock: effects.clock) }
    state.withLock { $0.pause.noteEnd() }
  }

  // MARK: Events

  /// Runs a phase between its start and end events, and stores them in the metadata.
  func phase<Result>(
    _ phase: SyncEvent.Phase,
    type: Int,
    cause: String,
    _ body: () async throws -> PhaseEnd<Result>
  ) async throws -> Result {
    let started = effects.clock.uptime
    var event = EventMetadata(
      identifier: effects.uuid(),
      type: type,
      started: effects.now.timeIntervalSinceReferenceDate
    )
    onEvent(event, nil)
    journal.note(phase, .started, cause: cause, effect: "")
    log.detail(1, "Asked to execute request: \(phase.rawValue) \(event.identifier.uuidString)")
    log.detail(2, "Executing: \(phase.rawValue)")
    do {
      let end = try await body()
      event.succeeded = end.problem == nil
      if let problem = end.problem { event.note(problem) }
      finish(&event, end.problem)
      journal.note(phase, .finished, cause: cause, effect: end.effect) {
        $0.duration = effects.clock.uptime - started
      }
      log.detail(
        1,
        "Finished request: \(phase.rawValue) success: \(event.succeeded ? 1 : 0) \(end.effect)"
      )
      return end.result
    } catch {
      event.note(error)
      finish(&event, error)
      journal.note(phase, .failed, cause: MirrorErrorText.text(error), effect: cause) {
        $0.duration = effects.clock.uptime - started
      }
      log.detail(
        1,
        "Finished request: \(phase.rawValue) success: 0 error: \(MirrorErrorText.text(error))"
      )
      throw error
    }
  }

  private func finish(_ event: inout EventMetadata, _ error: (any Error)?) {
    event.ended = effects.now.timeIntervalSinceReferenceDate
    do {
      try write(MirrorAuthor.setup) { [event] in try $0.metadata.keep(event) }
    } catch {
      // An event that cannot be stored is still posted; the next write fails for the same reason.
      log.error("An event could not be kept: \(error)")
    }
    onEvent(event, error)
  }
}

/// The result of a phase.
struct PhaseEnd<Result> {
  var result: Result
  /// The effect of the phase, in a sentence.
  var effect: String
  /// A problem that did not stop it: the event then has it as its error.
  var problem: (any Error)?
}

extension EventMetadata {
  fileprivate mutating func note(_ error: any Error) {
    let shown = error as NSError
    errorDomain = shown.domain
    errorCode = shown.code
    errorReason = MirrorErrorText.text(error)
  }
}

/// An error in one sentence, as logs and status show it.
enum MirrorErrorText {
  private static func text(ofRefused error: CKError) -> String {
    let refused = (error.partialErrorsByItemID ?? [:]).values.compactMap { $0 as? CKError }
    let reasons = Set(refused.map(\.localizedDescription)).sorted().prefix(3)
    return "The server refused \(refused.count) records, which are tried again later: "
      + reasons.joined(separator: " ")
  }

  static func text(_ error: any Error) -> String {
    switch error {
    case CloudFailure.unreachable(let reason), CloudFailure.busy(let reason, _),
      CloudFailure.notAuthenticated(let reason), CloudFailure.refused(let reason),
      CloudFailure.overQuota(let reason), CloudFailure.accountChanged(let reason),
      CloudFailure.alreadySettled(let reason):
      return reason
    case CloudFailure.tokenExpired: return "The change token has expired."
    case CloudFailure.zoneMissing: return "The zone is not on the server."
    case CloudFailure.tooLarge: return "The request was too large."
    case let error as CKError where error.code == .partialFailure: return text(ofRefused: error)
    default:
      let error = error as NSError
      return error.localizedFailureReason ?? "\(error)"
    }
  }
}
