import Simulation
import Testing

/// Worlds in which the simulator found a defect, made smaller by it.
///
/// The same plan is played under several seeds: another order of jobs may have led to the defect elsewhere.
@Suite("Worlds that failed once", .serialized)
struct RegressionTests {
  private static let orders: ClosedRange<UInt64> = 0...4

  private func play(_ plan: SimulationPlan) {
    for order in Self.orders {
      var plan = plan
      plan.seed &+= order
      let violations = Simulation.run(plan).violations
      #expect(violations == [], "seed \(plan.seed)")
    }
  }

  @Test("A conflict with a server that was restored takes no older value for an edit")
  func conflictWithRestoredServer() {
    var plan = SimulationPlan(seed: 5034, devices: [0, 0])
    plan.network.latency = 1.6987047820378396
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        0.377,
        .save(device: 0, context: 0, changes: [.insert(.item, link: 2_551_646_004, length: 1500)])
      ),
      PlannedStep(
        15.179,
        .save(
          device: 1,
          context: 1,
          changes: [.edit(.item, pick: 2_836_264_038, attribute: 2_184_609_665, length: 0)]
        )
      ),
      PlannedStep(0.622, .backUpServer),
      PlannedStep(
        8.594,
        .save(device: 0, context: 2, changes: [.insert(.label, link: 4_286_480_164, length: 0)])
      ),
      PlannedStep(0.234, .restoreServer),
      PlannedStep(
        0.291,
        .save(
          device: 1,
          context: 2,
          changes: [.edit(.item, pick: 2_633_257_045, attribute: 2_247_028_495, length: 0)]
        )
      ),
    ]
    play(plan)
  }

  @Test("A large value that a deletion overrides is in the recovery list itself")
  func largeValueInRecoveryList() {
    var plan = SimulationPlan(seed: 7046, devices: [0, 0, 0])
    plan.limits.operationsPerBatch = 3
    plan.limits.inlineBytes = 349
    plan.limits.repeatsRequests = true
    plan.network.latency = 0.8286757259782801
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        5.24,
        .save(device: 0, context: 0, changes: [.insert(.item, link: 815_296_818, length: 0)])
      ),
      PlannedStep(163.5, .offline(device: 1)),
      PlannedStep(
        3.65,
        .save(device: 1, context: 0, changes: [.delete(.item, pick: 3_935_208_831)])
      ),
      PlannedStep(19.5, .killServer(startAfter: 6.198374375313613)),
      PlannedStep(
        0.957,
        .save(
          device: 2,
          context: 0,
          changes: [.edit(.item, pick: 3_439_061_503, attribute: 3_698_070_705, length: 1500)]
        )
      ),
    ]
    play(plan)
  }
}
