import Effects
import Foundation
import Synchronization

/// One process of a simulated world: an app's launch on a device, a server's run, or the test
/// driver.
///
/// Everything that `Effects` starts for it is a job of its executor. A process that is killed runs
/// no further job: what it would have done next never happens.
package final class SimulatedProcess: TaskExecutor, TaskSpawner, @unchecked Sendable {
  // Unchecked: `state` guards what changes.

  private enum Life {
    case running
    case dead
    /// The run is over: the jobs that a kill held back may end, so that their memory is freed.
    case released
  }

  private struct State {
    var life = Life.running
    var heldJobs: [UnownedJob] = []
    /// Jobs that run before a planned kill; nil: none is planned.
    var jobsBeforeKill: Int?
    var onKill: (@Sendable () -> Void)?
    var clockOffset = 0.0
  }

  package let name: String
  /// Distinguishes processes in digests.
  package let number: Int
  private let scheduler: SimulationScheduler
  private let state = Mutex(State())

  package init(name: String, number: Int, scheduler: SimulationScheduler) {
    self.name = name
    self.number = number
    self.scheduler = scheduler
  }

  // MARK: Effects

  /// The effects of this process; all of its random bits come from the seed.
  package func effects(seed: UInt64, plantedBug: PlantedBug? = nil) -> Effects {
    var effects = Effects(
      clock: ProcessClock(process: self, clock: scheduler.clock),
      randomness: SeededRandomness(seed: seed),
      tasks: self
    )
    effects.plant(plantedBug)
    return effects
  }

  /// Seconds that this process's wall clock is ahead of the true time.
  package var clockOffset: Double {
    get { state.withLock { $0.clockOffset } }
    set { state.withLock { $0.clockOffset = newValue } }
  }

  @discardableResult
  package func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask {
    SpawnedTask(Task.detached(executorPreference: self, operation: operation))
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    scheduler.enqueue(UnownedJob(job), of: self)
  }

  // MARK: Life

  package var isDead: Bool { state.withLock { $0.life != .running } }

  /// Ends the process at once, as a crash does.
  package func kill() {
    let onKill = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.life == .running else { return nil }
      state.life = .dead
      state.jobsBeforeKill = nil
      defer { state.onKill = nil }
      return state.onKill
    }
    onKill?()
  }

  /// Ends the process after `count` further jobs of it.
  package func kill(afterJobs count: Int) {
    state.withLock { $0.jobsBeforeKill = count }
  }

  /// The handlers of a kill; discarded when the process ends by itself.
  package func whenKilled(_ body: (@Sendable () -> Void)?) {
    state.withLock { $0.onKill = body }
  }

  /// Lets the jobs that a kill held back run after all.
  package func release() {
    let jobs = state.withLock { state in
      state.life = .released
      defer { state.heldJobs = [] }
      return state.heldJobs
    }
    for job in jobs { scheduler.enqueue(job, of: self) }
  }

  func run(_ job: UnownedJob) {
    let isDue = state.withLock { state -> Bool in
      guard state.life == .running, let count = state.jobsBeforeKill else { return false }
      state.jobsBeforeKill = count - 1
      return count <= 0
    }
    if isDue { kill() }
    let isHeld = state.withLock { state in
      guard state.life == .dead else { return false }
      state.heldJobs.append(job)
      return true
    }
    if !isHeld { job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
