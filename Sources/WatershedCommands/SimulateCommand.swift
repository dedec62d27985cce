import ArgumentParser
import Effects
import Foundation
import Logging
import Simulation

/// `watershed simulate`: simulates worlds of devices and a server in one thread, with faults.
struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Simulate devices and a server with injected faults.",
    discussion: """
      Each world follows from its seed: devices that save, sync, crash, go offline and are restored \
      from backups, a server that fails, and a network that loses, duplicates and delays requests. An \
      oracle computes the expected state independently. A world that fails is reduced and \
      printed as a Swift test.
      """
  )

  @Option(help: "Run the world of this seed and print its timeline.")
  var seed: UInt64?

  @Option(help: "The number of worlds to run, one after the other.")
  var seeds: Int?

  @Option(help: "The minutes to run worlds for.")
  var minutes: Double?

  @Option(help: "The first seed of many worlds; otherwise it follows from the time.")
  var from: UInt64?

  @Option(help: "Enable a planted bug of a debug build, to check that it is found.")
  var bug: String?

  @Flag(help: "Print the events as JSON.")
  var json = false

  @Flag(help: "Print the smaller world of the first failure as a Swift test.")
  var shrink = false

  @Flag(help: "Print the counts of faults and of checks as tables.")
  var tables = false

  func validate() throws {
    if seed != nil, seeds != nil || minutes != nil {
      throw ValidationError("--seed runs one world; --seeds and --minutes run many.")
    }
    let bugs = PlantedBug.allCases.map(\.rawValue) + [Simulation.canary]
    if let bug, !bugs.contains(bug) {
      throw ValidationError(
        "There is no planted bug \(bug); there are \(bugs.sorted().joined(separator: ", "))."
      )
    }
  }

  func run() async throws {
    try repeatWithStableHashing()
    // The devices' own logs have no device name; the timeline has.
    LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
    if let seed {
      var plan = PlanGenerator.plan(seed: seed)
      plan.plantedBug = bug
      let outcome = Simulation.run(plan)
      try show(outcome)
      if outcome.hasFailed {
        if shrink { try printSmaller(outcome) }
        throw ExitCode.failure
      }
      return
    }
    try playMany()
  }

  /// Restarts the process with the environment variable that makes hashing equal in two processes.
  private func repeatWithStableHashing() throws {
    let name = "SWIFT_DETERMINISTIC_HASHING"
    guard ProcessInfo.processInfo.environment[name] == nil else { return }
    setenv(name, "1", 1)
    let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
    // Returns only if it fails; the worlds are then still valid, but repeatable only within this
    // process.
    _ = execv("/proc/self/exe", arguments)
    for argument in arguments { free(argument) }
  }

  private func playMany() throws {
    let base = from ?? UInt64(Effects.live.now.timeIntervalSince1970) &* 1000
    let clock = Effects.live.clock
    let end = minutes.map { clock.uptime + $0 * 60 }
    let count = seeds ?? (minutes == nil ? 100 : Int.max)
    try StandardOutput.print("from seed \(base)")
    var campaign = SimulationCampaign()
    var number = 0
    while number < count, end.map({ clock.uptime < $0 }) ?? true {
      let outcome = campaign.run(seed: base &+ UInt64(number), plantedBug: bug)
      number += 1
      if outcome.hasFailed {
        try StandardOutput.print(Self.line(outcome))
        if shrink {
          try printSmaller(outcome)
          break
        }
        if bug != nil { break }
      }
    }
    try StandardOutput.print(campaign.summary)
    let calm = campaign.calm
    try StandardOutput.print(
      "all devices agreed after \(Int(calm.median)) virtual seconds of calm in half of the worlds, after "
        + "\(Int(calm.longest)) in all"
    )
    if tables { try StandardOutput.print(campaign.tables) }
    for seed in campaign.differingSeeds {
      try StandardOutput.print("the second run of seed \(seed) differed")
    }
    if !campaign.failures.isEmpty || !campaign.differingSeeds.isEmpty { throw ExitCode.failure }
  }

  private static func line(_ outcome: SimulationOutcome) -> String {
    let texts = outcome.violations.prefix(3).map { "\($0.guarantee.rawValue): \($0.text)" }
    return "seed \(outcome.plan.seed) fails: " + texts.joined(separator: "\n  ")
  }

  private func show(_ outcome: SimulationOutcome) throws {
    if json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      return try StandardOutput.print(String(decoding: encoder.encode(outcome), as: UTF8.self))
    }
    for entry in outcome.timeline { try StandardOutput.print(entry.description) }
    for violation in outcome.violations {
      try StandardOutput.print("BROKEN \(violation.guarantee.rawValue): \(violation.text)")
    }
    try StandardOutput.print(
      "\(outcome.jobCount) jobs, \(Int(outcome.virtualSeconds)) virtual seconds, digest "
        + String(outcome.digest.value, radix: 16)
    )
  }

  private func printSmaller(_ outcome: SimulationOutcome) throws {
    guard
      var shrinker = PlanShrinker(
        outcome,
        progress: { StandardError.print("smaller: \($0)") }
      )
    else { return }
    shrinker.shrink()
    let smallest = shrinker.smallest
    for entry in smallest.timeline { try StandardOutput.print(entry.description) }
    for violation in smallest.violations {
      try StandardOutput.print("BROKEN \(violation.guarantee.rawValue): \(violation.text)")
    }
    let name = smallest.violations.first?.guarantee.rawValue ?? ""
    try StandardOutput.print(smallest.plan.swiftTest(named: name))
  }
}
