import Effects
import Foundation

/// Runs simulated worlds.
///
/// A run uses the calling thread for all work, and only a virtual clock. The runs of one process are
/// serialized: devices share the process's notification center.
package enum Simulation {
  /// The oracle's self-test: injects a save that did not happen; a run that passes proves the oracle
  /// blind.
  package static let canary: PlantedBugName = "canary"

  /// The longest time of a step in virtual seconds: the slowest waits minutes for its requests.
  private static let longestStep = 6.0 * 3600

  /// Serializes the worlds of one process.
  private static let turn = NSRecursiveLock()

  /// Plays a plan from its beginning to its end.
  package static func run(_ plan: SimulationPlan) -> SimulationOutcome {
    turn.lock()
    defer { turn.unlock() }
    StableHashing.turnOn()
    let began = ProcessInfo.processInfo.systemUptime
    let (result, escapes) = EscapeWatch.watching { play(plan) }
    var outcome = result
    for escape in escapes.prefix(3) {
      outcome.violations.append(
        Violation(guarantee: .determinism, text: "A task left the scheduler:\n\(escape)", time: 0)
      )
    }
    outcome.seconds = ProcessInfo.processInfo.systemUptime - began
    return outcome
  }

  private static func play(_ plan: SimulationPlan) -> SimulationOutcome {
    let world: SimulatedWorld
    do {
      world = try SimulatedWorld(plan: plan, folder: newFolder())
    } catch {
      return SimulationOutcome(
        plan: plan,
        violations: [Violation(guarantee: .liveness, text: "No folder: \(error)", time: 0)]
      )
    }
    let isFinished = Flag()
    world.driver.spawn {
      do {
        try await world.live()
      } catch {
        world.oracle.report(.liveness, "the world ended early: \(error)")
      }
      await world.end()
      isFinished.isSet = true
    }
    let longestDelay = plan.steps.map(\.delay).max() ?? 0
    let ending = world.scheduler.run(
      until: { isFinished.isSet },
      driver: world.driver,
      patience: longestDelay + longestStep
    )
    switch ending {
    case .finished: break
    case .stalled:
      world.oracle.report(.liveness, "deadlock: no task can run, and at least one is waiting")
    case .spinning:
      world.oracle.report(
        .boundedEffort,
        "livelock: tasks keep running while the clock stands still"
      )
    case .abandoned:
      world.oracle.report(.liveness, "a step has not ended after \(Int(longestStep / 3600)) hours")
    }
    let outcome = SimulationOutcome(world)
    world.buryAll()
    return outcome
  }

  private final class Flag: @unchecked Sendable {
    // Unchecked: used by the one thread of a run.
    var isSet = false
  }

  private static let runs = SeededRandomness(
    seed: UInt64(ProcessInfo.processInfo.processIdentifier) &* 0x9E37_79B9_7F4A_7C15
      ^ UInt64(Date().timeIntervalSince1970 * 1000)
  )

  /// A folder in memory where the system has one: a crash is a copy of the files, never a lost cache.
  private static func newFolder() -> URL {
    let memory = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
    let place =
      FileManager.default.isWritableFile(atPath: memory.path)
      ? memory : FileManager.default.temporaryDirectory
    return place.appendingPathComponent("watershed-world-\(runs.next())", isDirectory: true)
  }
}

extension SimulatedWorld {
  /// Runs chaos, calm, an audit, a restart of all devices, and another audit.
  func live() async throws {
    try await begin()
    try await runSteps()
    if plan.plantedBug == Simulation.canary {
      let key = "canary#1"
      oracle.saved(
        [.born(key: key, .label), .wrote(.init(key: key, property: "name"), value: key)],
        on: 0
      )
    }
    try await calmDown()
    guard oracle.violations.isEmpty else { return }
    try await checkIdleness()
    try await audit(1)
    guard oracle.violations.isEmpty else { return }
    try await restartAll()
    try await audit(2)
  }

  /// Closes what is open.
  func end() async {
    for device in devices { try? await quit(device) }
    if server.service != nil { server.kill() }
  }
}

/// The result of a run.
package struct SimulationOutcome: Sendable, Codable {
  package var plan: SimulationPlan
  package var violations: [Violation] = []
  package var timeline: [TimelineEntry] = []
  /// How often each kind of step and each fault of requests happened.
  package var counts: [String: Int] = [:]
  /// How often each guarantee was checked.
  package var checks: [String: Int] = [:]
  /// The faults of requests that happened.
  package var requestFaults: [PlannedRequestFault] = []
  /// The timeline, the final states and the order of all jobs.
  package var digest = TraceDigest()
  package var jobCount = 0
  /// Virtual seconds from the beginning to the end.
  package var virtualSeconds = 0.0
  /// Virtual seconds until all agreed.
  package var calmSeconds: Double?
  /// Seconds of the machine.
  package var seconds = 0.0

  package var hasFailed: Bool { !violations.isEmpty }

  init(plan: SimulationPlan, violations: [Violation]) {
    self.plan = plan
    self.violations = violations
  }

  init(_ world: SimulatedWorld) {
    plan = world.plan
    violations = world.oracle.violations
    timeline = world.timeline
    counts = world.counts
    for fault in world.network.fired { counts[fault.kind.rawValue, default: 0] += 1 }
    for (guarantee, count) in world.oracle.checks { checks[guarantee.rawValue] = count }
    requestFaults = world.network.fired
    digest = world.traceDigest
    digest.add(world.scheduler.orderDigest.value)
    jobCount = world.scheduler.jobCount
    virtualSeconds = world.clock.elapsed
    calmSeconds = world.calmTime
  }
}
