import Effects
import Synchronization

/// Runs the jobs of all simulated processes on one thread, in an order that the seed chooses.
///
/// A job that is ready may run next, whichever process it belongs to. When none is ready the virtual clock
/// advances to the next time that a task sleeps until.
package final class SimulationScheduler: @unchecked Sendable {
  // Unchecked: used by the one thread of a run; jobs of other threads come in under the lock.

  /// How a run of the scheduler ended.
  package enum Ending: Hashable, Sendable {
    /// The condition that ends the run holds.
    case finished
    /// No job is ready and no task sleeps, so nothing can happen any more.
    case stalled
    /// So many jobs ran without any progress of the clock that the program loops.
    case spinning
    /// The process that the run waits for has had no job for longer than any step takes, unlike others.
    case abandoned
  }

  private struct Entry {
    var job: UnownedJob
    var process: SimulatedProcess
  }

  /// Jobs at one moment of the clock after which the run counts as a loop.
  private static let jobsPerMoment = 400_000

  package let clock: SimulatedClock
  private let random: SeededRandomness
  private let ready = Mutex<[Entry]>([])
  /// Jobs that have run.
  package private(set) var jobCount = 0
  /// A digest of the order in which processes ran.
  package private(set) var orderDigest = TraceDigest()

  package init(seed: UInt64, clock: SimulatedClock) {
    self.clock = clock
    random = SeededRandomness(seed: seed)
  }

  func enqueue(_ job: UnownedJob, of process: SimulatedProcess) {
    ready.withLock { $0.append(Entry(job: job, process: process)) }
  }

  /// Whether a job could run now.
  package var hasReadyJobs: Bool { ready.withLock { !$0.isEmpty } }

  /// Runs jobs and moves the clock until the condition holds.
  ///
  /// A world in which devices ask the server again and again never runs out of jobs, even if the step under
  /// way can no longer end. So the run also ends where `driver` has no job for `patience` virtual seconds.
  package func run(
    until isFinished: () -> Bool,
    driver: SimulatedProcess? = nil,
    patience: Double = .infinity
  ) -> Ending {
    var jobsAtThisMoment = 0
    var lastOfDriver = clock.elapsed
    while !isFinished() {
      if let entry = takeOne() {
        jobsAtThisMoment += 1
        guard jobsAtThisMoment < Self.jobsPerMoment else { return .spinning }
        let isOfDriver = entry.process === driver
        guard isOfDriver || clock.elapsed - lastOfDriver <= patience else { return .abandoned }
        jobCount += 1
        orderDigest.add(UInt64(entry.process.number))
        entry.process.run(entry.job)
        // Read after the job: it may have moved the clock.
        if isOfDriver { lastOfDriver = clock.elapsed }
      } else if clock.advanceToNextDeadline() {
        jobsAtThisMoment = 0
      } else {
        return .stalled
      }
    }
    return .finished
  }

  private func takeOne() -> Entry? {
    ready.withLock { ready in
      guard !ready.isEmpty else { return nil }
      let index = ready.count == 1 ? 0 : Int(random.next() % UInt64(ready.count))
      ready.swapAt(index, ready.count - 1)
      return ready.removeLast()
    }
  }
}

/// A running digest (FNV-1a) of what happened, to compare two runs of a seed.
package struct TraceDigest: Hashable, Sendable, Codable {
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  package init() {}

  package mutating func add(_ word: UInt64) {
    value = (value ^ word) &* 0x100_0000_01B3
  }

  package mutating func add(_ text: String) {
    for byte in text.utf8 { add(UInt64(byte)) }
    add(0xFF)
  }
}
