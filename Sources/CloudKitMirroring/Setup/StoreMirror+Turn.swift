import Effects
import Foundation

extension StoreMirror {
  /// One round: waits until something is wanted, then does all of it.
  func turn() async {
    let (isWanted, hasNotifications) = state.withLock { state in
      (state.wantsImport || state.wantsExport, state.hasNotifications)
    }
    if !isWanted {
      let wait = hasNotifications ? nil : options.pollInterval
      await signal.wait(seconds: wait, clock: effects.clock)
      if Task.isCancelled { return }
      if !hasNotifications { state.withLock { $0.wantsImport = true } }
      return
    }
    do {
      try await work()
      let waiters = state.withLock { state -> [CheckedContinuation<Void, any Error>] in
        state.isRunning = false
        state.lastError = nil
        state.pausedUntil = nil
        state.backoff.succeeded()
        // Who asked while this round ran gets a round of their own.
        guard !state.wantsImport, !state.wantsExport else { return [] }
        defer { state.waiters = [] }
        return state.waiters
      }
      for waiter in waiters { waiter.resume() }
    } catch is CancellationError where Task.isCancelled {
      return
    } catch {
      await pause(after: error)
    }
  }

  private func work() async throws {
    state.withLock { $0.isRunning = true }
    try await setUpIfNeeded()
    while true {
      let (wantsImport, wantsExport) = state.withLock { state in
        defer {
          state.wantsImport = false
          state.wantsExport = false
        }
        return (state.wantsImport, state.wantsExport)
      }
      guard wantsImport || wantsExport else { return }
      do {
        if wantsImport { try await runImport() }
        if wantsExport { try await runExport() }
      } catch {
        // What was wanted is still wanted.
        state.withLock { state in
          state.wantsImport = state.wantsImport || wantsImport
          state.wantsExport = state.wantsExport || wantsExport
        }
        throw error
      }
    }
  }

  private func pause(after error: any Error) async {
    let fraction = effects.randomness.fraction()
    var retryAfter: Double?
    if case CloudFailure.busy(_, let seconds) = error { retryAfter = seconds }
    let (wait, waiters) = state.withLock { state in
      state.isRunning = false
      state.lastError = error
      let wait = state.backoff.failed(retryAfter: retryAfter, fraction: fraction)
      state.pausedUntil = effects.now.addingTimeInterval(wait)
      defer { state.waiters = [] }
      return (wait, state.waiters)
    }
    journal.note(
      .retry,
      .waiting,
      cause: MirrorErrorText.text(error),
      effect: "Everything stays saved here; the next try is in "
        + "\(String(format: "%.1f", wait)) s, or as soon as the server is back."
    )
    log.detail(1, "Request failed, will retry: \(MirrorErrorText.text(error))")
    for waiter in waiters { waiter.resume(throwing: error) }
    await signal.wait(onlyUrgent: true, seconds: wait, clock: effects.clock)
    state.withLock { $0.pausedUntil = nil }
  }

  // MARK: Events

  /// Runs a phase between its two events, and keeps it in the books.
  func phase<Result>(
    _ phase: SyncEvent.Phase,
    type: Int,
    cause: String,
    _ body: () async throws -> (result: Result, effect: String)
  ) async throws -> Result {
    let started = effects.clock.uptime
    var event = BookedEvent(
      identifier: effects.uuid(),
      type: type,
      started: effects.now.timeIntervalSinceReferenceDate
    )
    onEvent(event, nil)
    journal.note(phase, .started, cause: cause, effect: "")
    log.detail(1, "Asked to execute request: \(phase.rawValue) \(event.identifier.uuidString)")
    log.detail(2, "Executing: \(phase.rawValue)")
    do {
      let (result, effect) = try await body()
      event.succeeded = true
      finish(&event, nil)
      journal.note(phase, .finished, cause: cause, effect: effect) {
        $0.duration = effects.clock.uptime - started
      }
      log.detail(1, "Finished request: \(phase.rawValue) success: 1 \(effect)")
      return result
    } catch {
      let shown = error as NSError
      event.errorDomain = shown.domain
      event.errorCode = shown.code
      event.errorReason = MirrorErrorText.text(error)
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

  private func finish(_ event: inout BookedEvent, _ error: (any Error)?) {
    event.ended = effects.now.timeIntervalSinceReferenceDate
    do {
      try write(MirrorAuthor.setup) { [event] in try $0.books.keep(event) }
    } catch {
      // An event that cannot be kept is still told; the next write meets the same trouble.
      log.error("An event could not be kept: \(error)")
    }
    onEvent(event, error)
  }
}

/// An error in one sentence, as logs and status show it.
enum MirrorErrorText {
  static func text(_ error: any Error) -> String {
    switch error {
    case CloudFailure.unreachable(let reason), CloudFailure.busy(let reason, _),
      CloudFailure.notAuthenticated(let reason), CloudFailure.refused(let reason):
      return reason
    case CloudFailure.tokenExpired: return "The change token has expired."
    case CloudFailure.zoneMissing: return "The zone is not on the server."
    case CloudFailure.tooLarge: return "The request was too large."
    default:
      let error = error as NSError
      return error.localizedFailureReason ?? "\(error)"
    }
  }
}
