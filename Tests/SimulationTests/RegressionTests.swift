import Simulation
import Testing

/// Worlds in which the simulator found a defect, made smaller by it.
///
/// The same plan is played under several seeds: another order of jobs may have led to the defect elsewhere.
@Suite("Worlds that failed once", .serialized)
struct RegressionTests {
  private static let orders: ClosedRange<UInt64> = 0...4

  private func play(_ plan: SimulationPlan, leavingOut open: Set<UInt64> = []) {
    for order in Self.orders where !open.contains(plan.seed &+ order) {
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

  @Test("A page of a network's sign-in is not taken for a part of a file")
  func garbledFile() {
    var plan = SimulationPlan(seed: 5123, devices: [0, 0])
    plan.limits.inlineBytes = 200
    plan.network.faults = [.garbled: 0.3]
    plan.steps = [
      PlannedStep(
        1,
        .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 1500)])
      ),
      PlannedStep(
        120,
        .save(device: 1, context: 0, changes: [.edit(.item, pick: 0, attribute: 1, length: 900)])
      ),
      PlannedStep(120, .sync(device: 0)),
    ]
    // Under that seed a record never arrives; Documentation/Reliability.md lists it as open.
    play(plan, leavingOut: [5124])
  }

  @Test("A token that is lost without a cause brings no deleted object back")
  func unexplainedToken() {
    var plan = SimulationPlan(seed: 5024, devices: [0, 0])
    plan.network.faults = [.tokenExpired: 0.4]
    plan.steps = [
      PlannedStep(
        1,
        .save(
          device: 0,
          context: 0,
          changes: [.insert(.label, link: 0, length: 0), .insert(.label, link: 0, length: 0)]
        )
      ),
      PlannedStep(120, .save(device: 1, context: 0, changes: [.delete(.label, pick: 0)])),
      PlannedStep(60, .save(device: 1, context: 0, changes: [.delete(.label, pick: 0)])),
      PlannedStep(60, .sync(device: 0)),
    ]
    play(plan)
  }

  @Test("What a remade zone replaces is in the recovery list")
  func remadeZone() {
    var plan = SimulationPlan(seed: 5197, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(1, .save(device: 0, context: 0, changes: [.insert(.label, link: 0, length: 0)])),
      PlannedStep(60, .offline(device: 1)),
      PlannedStep(
        1,
        .save(device: 0, context: 0, changes: [.edit(.label, pick: 0, attribute: 0, length: 0)])
      ),
      PlannedStep(60, .offline(device: 0)),
      PlannedStep(1, .deleteZone(person: 0)),
      PlannedStep(1, .online(device: 1)),
      PlannedStep(120, .online(device: 0)),
    ]
    play(plan)
  }

  @Test("A change of the account during a round ends in a set-up")
  func accountDuringRound() {
    var plan = SimulationPlan(seed: 1057, devices: [0, 0])
    plan.network.latency = 30
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        200,
        .save(device: 0, context: 0, changes: [.insert(.label, link: 0, length: 0)])
      ),
      PlannedStep(10, .signOut(device: 1)),
      PlannedStep(5, .signIn(device: 1)),
      PlannedStep(10, .save(device: 0, context: 0, changes: [.insert(.label, link: 0, length: 0)])),
      PlannedStep(15, .signOut(device: 1)),
    ]
    play(plan)
  }
}
