import Effects
import Simulation
import Testing

/// The simulator is tested too: each defect that a debug build can switch on must be found.
@Suite("Planted bugs", .serialized)
struct PlantedBugTests {
  /// Worlds that are played at most until a bug is found.
  private static let patience = 300
  /// From here on all bugs are found within some dozens of worlds.
  private static let firstSeed: UInt64 = 30_000

  #if DEBUG
  @Test("Every planted bug is found", arguments: PlantedBug.allCases)
  func found(_ bug: PlantedBug) {
    var seed = Self.firstSeed
    for count in 1...Self.patience {
      var plan = PlanGenerator.plan(seed: seed)
      plan.plantedBug = bug.rawValue
      let outcome = Simulation.run(plan)
      if let violation = outcome.violations.first {
        // It is the bug's fault: without it the same world is whole.
        plan.plantedBug = nil
        if !Simulation.run(plan).hasFailed {
          print(
            "\(bug.rawValue): found by world \(count), seed \(seed): \(violation.guarantee.rawValue)"
          )
          return
        }
      }
      seed += 1
    }
    Issue.record("\(bug.rawValue) was not found in \(Self.patience) worlds")
  }
  #endif
}
