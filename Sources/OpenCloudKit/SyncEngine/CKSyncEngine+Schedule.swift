import Effects
import Foundation
import Synchronization

/// How an engine syncs by itself: the schedule of its work, and the retries of parked records and changes.
extension CKSyncEngine {
  /// The delay that collects state changes before the delegate is notified, and pending changes
  /// before they are sent: enough for a burst of changes, too short for users to notice.
  private static let collectingTime = 0.1

  /// Runs the schedule until no work is due.
  func runSchedule() async {
    while !Task.isCancelled {
      let step = activity.withLock { activity in
        let step = activity.schedule.step(at: effects.clock.uptime)
        if case .run(let work) = step { activity.schedule.begin(work) }
        return step
      }
      switch step {
      case .rest: return
      case .wait(let seconds): return setTimer(seconds)
      case .run(let work): await run(work)
      }
    }
  }

  private func run(_ work: SyncSchedule.Work) async {
    do throws(CKError) {
      try await operate { engine throws(CKError) in
        switch work {
        case .fetch:
          try await engine.ensureSubscription()
          try await engine.fetch(FetchChangesContext(reason: .scheduled, options: .init()))
        case .send:
          try await engine.send(SendChangesContext(reason: .scheduled, options: .init()))
        }
      }
      activity.withLock { $0.schedule.succeed() }
    } catch {
      if work == .fetch ? error.isOfRecordsOnly : error.isOfParkedChangesOnly {
        // Parked records have their own retry delays, so the schedule counts this as a success.
        return activity.withLock { $0.schedule.succeed() }
      }
      // A zone with an expired token waits until its pending changes were sent; one for which the service
      // did not answer is tried again.
      let hasMore =
        work == .send
        ? state.value.hasChangesToSend
        : error.withPartialErrors.contains {
          $0.code == .changeTokenExpired || $0.isServiceFailure || $0.mayBeOfOneZone
        }
      let jitter = effects.randomness.fraction()
      activity.withLock { activity in
        let time = effects.clock.uptime
        activity.schedule.fail(work, error, hasMore: hasMore, at: time, jitter: jitter)
      }
    }
  }

  private func setTimer(_ seconds: Double) {
    let clock = effects.clock
    let signals = self.signals
    let timer = effects.tasks.spawn {
      // A cancelled timer was replaced by another one.
      guard (try? await clock.sleep(seconds: seconds)) != nil else { return }
      signals.yield()
    }
    let old = activity.withLock { activity in
      let old = activity.timer
      activity.timer = timer
      return old
    }
    old?.cancel()
  }

  /// Adds work to the schedule, if the engine syncs automatically.
  func request(_ work: SyncSchedule.Work) {
    guard automaticallySyncs else { return }
    activity.withLock { $0.schedule.request(work) }
    signals.yield()
  }

  /// Schedules a fetch in a number of seconds, if the engine syncs automatically.
  func requestFetch(after seconds: Double) {
    guard automaticallySyncs else { return }
    let time = effects.clock.uptime + seconds
    activity.withLock { $0.schedule.requestFetch(at: time) }
    signals.yield()
  }

  /// Whether the service was asked for the subscription since the engine was created.
  var hasCheckedSubscription: Bool {
    get { activity.withLock { $0.hasCheckedSubscription } }
    set { activity.withLock { $0.hasCheckedSubscription = newValue } }
  }

  /// The parked records that a fetch tries again.
  func parkedRecords(_ context: FetchChangesContext) -> [CKRecord.ID] {
    let recordIDs = state.value.parkedRecords.filter {
      context.options.scope.contains($0.zoneID)
    }
    let time = effects.clock.uptime
    let areDue = activity.withLock { $0.parkedRetries.areDue(at: time, context.reason) }
    return areDue ? recordIDs : []
  }

  /// Schedules another fetch if records are parked.
  func planParkedRetry(haveTried: Bool) {
    let isEmpty = state.value.parkedRecords.isEmpty
    let (time, jitter) = (effects.clock.uptime, effects.randomness.fraction())
    activity.withLock { activity in
      guard !isEmpty else { return activity.parkedRetries.succeed() }
      let next = activity.parkedRetries.plan(at: time, haveTried: haveTried, jitter: jitter)
      if automaticallySyncs { activity.schedule.requestFetch(at: next) }
    }
  }

  /// The parked changes that a send leaves out; one that the app has added again is sent.
  package func waitingChanges(_ reason: SyncReason) -> [PendingRecordMark] {
    let (time, pending) = (effects.clock.uptime, state.value.recordChanges)
    return activity.withLock { activity in
      activity.sendRetries.areDue(at: time, reason)
        ? [] : activity.parkedChanges.filter { pending.contains($0) }
    }
  }

  /// Schedules another send if changes are parked: those at which the service failed in this send, and
  /// those that it left out.
  func planSendRetry(of broken: [PendingRecordMark], still waiting: [PendingRecordMark]) {
    let pending = state.value.recordChanges
    let (time, jitter) = (effects.clock.uptime, effects.randomness.fraction())
    activity.withLock { activity in
      activity.parkedChanges = (broken + waiting).filter { pending.contains($0) }
      guard !activity.parkedChanges.isEmpty else { return activity.sendRetries.succeed() }
      let next = activity.sendRetries.plan(at: time, haveTried: !broken.isEmpty, jitter: jitter)
      if automaticallySyncs { activity.schedule.requestSend(at: next) }
    }
  }

  func stateWasTouched(_ touch: State.Touch) {
    let isFirst = activity.withLock { activity in
      if touch == .added, automaticallySyncs { activity.schedule.request(.send) }
      defer { activity.isUpdateDue = true }
      return !activity.isUpdateDue
    }
    guard isFirst else { return }
    let clock = effects.clock
    effects.tasks.spawn { [weak self] in
      // This task is never cancelled; if sleeping fails, the delegate is notified at once.
      try? await clock.sleep(seconds: Self.collectingTime)
      await self?.deliverChangedState()
    }
  }

  private func deliverChangedState() async {
    activity.withLock { $0.isUpdateDue = false }
    signals.yield()
    // Reports the state, unless an operation reported it meanwhile.
    _ = await runInTurn { engine in await engine.deliverState() }
  }
}
