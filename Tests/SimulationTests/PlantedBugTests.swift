import Effects
import Simulation
import Testing

/// The simulator is tested too: each defect that a debug build can switch on must be found.
@Suite("Planted bugs", .serialized)
struct PlantedBugTests {
  /// Worlds that are played at most until a bug is found.
  private static let patience = 10

  #if DEBUG
  /// Bugs that need more than chance brings together in a few worlds, with the worlds that do.
  static let made: [PlantedBug: SimulationPlan] = [
    .overwriteOnConflict: editsAtOnce, .expiredIsOtherZone: absence,
    .trustFetchedFiles: RegressionTests.garbledFilesPlan, .forgetFormerNames: update,
    .restoredIsExpired: restore, .mergeWithoutFiles: editsOfLargeObject,
    .reuseSequence: restoredDevice,
    .ignoreHistoryGap: historyDeletedOffline,
    .trustOtherZone: RegressionTests.remadeZoneDuringUpdatePlan,
    .forgetReplaced: RegressionTests.remadeZonePlan,
    .rereadWithoutDeletions: RegressionTests.unexplainedTokenPlan,
    .randomNames: RegressionTests.backupBeforeNamePlan, .skipTakenAlong: ownerDeleted,
    .deleteOwnersFirst: moveInFullDatabase,
    .ownFormerEdits: RegressionTests.takenFormerEditPlan,
  ]

  /// Seeds whose worlds have found a bug; where the order of jobs changes, one of the next ones may.
  static let seeds: [PlantedBug: UInt64] = [
    .forgetTombstone: 30_001, .skipHistoryRow: 30_006, .importOverEdit: 30_009,
    .forgetRetry: 30_004, .clearMarkTooEarly: 30_006, .sweepRenamed: 30_006,
    .skipLastOfPage: 30_002, .reuseTag: 30_001, .dropTombstone: 30_001, .skipRecovery: 30_020,
  ]

  @Test("Each bug has worlds that find it")
  func complete() {
    #expect(Set(Self.seeds.keys).union(Self.made.keys) == Set(PlantedBug.allCases))
  }

  @Test("A bug is found in generated worlds", arguments: Array(PlantedBugTests.seeds.keys))
  func found(_ bug: PlantedBug) async throws {
    let seed = try #require(Self.seeds[bug])
    let isFound = try await worldLane.run {
      (0..<UInt64(Self.patience)).contains { number in
        isFault(of: bug, in: PlanGenerator.plan(seed: seed + number))
      }
    }
    #expect(isFound, "\(bug.rawValue) was not found in \(Self.patience) worlds")
  }

  @Test(
    "A bug is found in the world that is made for it",
    arguments: Array(PlantedBugTests.made.keys)
  )
  func foundInMadeWorld(_ bug: PlantedBug) async throws {
    let plan = try #require(Self.made[bug])
    let isFound = try await worldLane.run {
      (0...4).contains { order in
        var plan = plan
        plan.seed += UInt64(order)
        return isFault(of: bug, in: plan)
      }
    }
    #expect(isFound, "\(bug.rawValue) was not found")
  }

  /// Whether a world fails with the bug, and is whole without it.
  private func isFault(of bug: PlantedBug, in plan: SimulationPlan) -> Bool {
    var plan = plan
    plan.plantedBug = bug.rawValue
    guard let violation = Simulation.run(plan).violations.first else { return false }
    plan.plantedBug = nil
    guard !Simulation.run(plan).hasFailed else { return false }
    print("\(bug.rawValue): found in seed \(plan.seed): \(violation.guarantee.rawValue)")
    return true
  }
  #endif
}
