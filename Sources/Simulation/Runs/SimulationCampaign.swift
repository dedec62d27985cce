import Foundation

/// Runs many seeds, one after the other, and counts what they exercised.
package struct SimulationCampaign: Sendable {
  /// One seed in this many is run twice, to compare the two runs.
  package static let repeatInterval = 20

  package private(set) var seeds = 0
  package private(set) var seconds = 0.0
  package private(set) var jobs = 0
  package private(set) var steps = 0
  package private(set) var virtualSeconds = 0.0
  package private(set) var counts: [String: Int] = [:]
  package private(set) var checks: [String: Int] = [:]
  package private(set) var failures: [SimulationOutcome] = []
  package private(set) var repeats = 0
  /// Seeds whose second run was not the same.
  package private(set) var differingSeeds: [UInt64] = []
  private var calmSeconds: [Double] = []

  package init() {}

  /// Plays one seed; returns what it came to.
  @discardableResult
  package mutating func run(
    seed: UInt64,
    plantedBug: PlantedBugName? = nil
  ) -> SimulationOutcome {
    var plan = PlanGenerator.plan(seed: seed)
    plan.plantedBug = plantedBug
    let outcome = Simulation.run(plan)
    seeds += 1
    seconds += outcome.seconds
    jobs += outcome.jobCount
    steps += plan.steps.count
    virtualSeconds += outcome.virtualSeconds
    counts.merge(outcome.counts, uniquingKeysWith: +)
    checks.merge(outcome.checks, uniquingKeysWith: +)
    if let calm = outcome.calmSeconds { calmSeconds.append(calm) }
    if outcome.hasFailed { failures.append(outcome) }
    if seeds % Self.repeatInterval == 1 {
      let second = Simulation.run(plan)
      seconds += second.seconds
      repeats += 1
      if second.digest != outcome.digest { differingSeeds.append(seed) }
    }
    return outcome
  }

  package var worldsPerMinute: Double {
    seconds > 0 ? Double(seeds + repeats) / seconds * 60 : 0
  }

  /// The virtual time that half of the worlds took to agree, and the longest.
  package var calm: (median: Double, longest: Double) {
    let sorted = calmSeconds.sorted()
    return (sorted.isEmpty ? 0 : sorted[sorted.count / 2], sorted.last ?? 0)
  }

  /// The counts, as lines of two tables of Markdown.
  package var tables: String {
    func rows(_ counts: [String: Int]) -> String {
      counts.sorted { $0.key < $1.key }.map { "| \($0.key) | \($0.value) |" }
        .joined(separator: "\n")
    }
    return """
      | what happened | times |
      |---|---|
      \(rows(counts))

      | guarantee | checks |
      |---|---|
      \(rows(checks))
      """
  }

  /// The campaign's counts, in one line.
  package var summary: String {
    "\(seeds) worlds, \(steps) steps, \(jobs) jobs, \(Int(virtualSeconds / 3600)) virtual hours in "
      + "\(Int(seconds)) s: \(Int(worldsPerMinute)) worlds a minute; \(repeats) run twice, "
      + "\(differingSeeds.count) of them differed; \(failures.count) failed"
  }
}
