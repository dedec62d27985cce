import Simulation
import Testing

/// Worlds in which the simulator found a defect, made smaller by it.
///
/// The same plan is played under several seeds: another order of jobs may have led to the defect elsewhere.
@Suite("Worlds that failed once", .serialized)
struct RegressionTests {
  private static let orders: ClosedRange<UInt64> = 0...4

  func play(_ plan: SimulationPlan) async throws {
    let outcomes = try await worldLane.run {
      Self.orders.map { order in
        var plan = plan
        plan.seed &+= order
        return Simulation.run(plan)
      }
    }
    for outcome in outcomes { #expect(outcome.violations == [], "seed \(outcome.plan.seed)") }
  }

  @Test("A conflict with a server that was restored takes no older value for an edit")
  func conflictWithRestoredServer() async throws {
    try await play(Self.conflictWithRestoredServerPlan)
  }

  @Test("A large value that a deletion overrides is in the recovery list itself")
  func largeValueInRecoveryList() async throws { try await play(Self.largeValuePlan) }

  @Test("A page of a network's sign-in is not taken for a part of a file")
  func garbledFile() async throws {
    try await play(Self.garbledFilesPlan)
    var plan = Self.garbledFilesPlan
    // Each failed request is left to the mirroring.
    plan.limits.repeatsRequests = false
    try await play(plan)
  }

  @Test("A token that is lost without a cause brings no deleted object back")
  func unexplainedToken() async throws { try await play(Self.unexplainedTokenPlan) }

  @Test("The values that a remade zone replaces are in the recovery list")
  func remadeZone() async throws { try await play(Self.remadeZonePlan) }

  @Test("A change of the account during a round ends in a set-up")
  func accountDuringRound() async throws {
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
    try await play(plan)
  }

  @Test("A record that a newer version sends again has the fields that older versions read")
  func formerFieldsOfLostRecord() async throws {
    var plan = SimulationPlan(seed: 200_053, devices: [0, 0])
    plan.limits.recordsPerPage = 5
    plan.limits.inlineBytes = 473
    plan.limits.repeatsRequests = true
    plan.network.latency = 0.786
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(2.771, .backUpServer),
      PlannedStep(169.057, .upgrade(device: 0)),
      PlannedStep(
        7.632,
        .save(device: 1, context: 0, changes: [.insert(.item, link: 881_948_831, length: 0)])
      ),
      PlannedStep(11.211, .sync(device: 1)),
      PlannedStep(0.223, .restoreServer),
    ]
    try await play(plan)
  }

  @Test("A page that answers a wait for notifications is not taken for silence")
  func garbledNotification() async throws {
    var plan = SimulationPlan(seed: 200_034, devices: [0, 0])
    plan.network.latency = 0.5
    // The waits of a device that has nothing else to ask: one of them ends with the other's save.
    plan.requestFaults = (14...60).map {
      PlannedRequestFault(device: 0, request: $0, kind: .garbled)
    }
    plan.steps = [
      PlannedStep(
        600,
        .save(device: 1, context: 0, changes: [.insert(.label, link: 0, length: 0)])
      ),
      PlannedStep(20, .save(device: 1, context: 0, changes: [.insert(.label, link: 0, length: 0)])),
    ]
    try await play(plan)
  }

  @Test("An object that its own device deleted may be restored without its last edit")
  func editBeforeDeletion() async throws {
    var plan = SimulationPlan(seed: 200_007, devices: [0, 0])
    plan.limits.operationsPerBatch = 6
    plan.limits.recordsPerPage = 2
    plan.limits.repeatsRequests = true
    plan.network.latency = 30
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        11.677,
        .save(device: 1, context: 0, changes: [.insert(.item, link: 1_610_922_342, length: 0)])
      ),
      PlannedStep(252.015, .deleteZone(person: 0)),
      PlannedStep(
        15.987,
        .save(
          device: 1,
          context: 0,
          changes: [
            .edit(.item, pick: 2_061_881_340, attribute: 1_745_329_885, length: 0),
            .delete(.item, pick: 475_642_462),
          ]
        )
      ),
    ]
    try await play(plan)
  }

  @Test("A crash is compared with the launch that follows it, where steps launch the app too")
  func twoCrashes() async throws {
    var plan = SimulationPlan(seed: 200_055, devices: [0, 0])
    plan.requestFaults = []
    // The first crash would have the app launched after 18 seconds, the step does so after 9.
    plan.steps = [
      PlannedStep(20, .kill(device: 1, afterJobs: 0, launchAfter: 18)),
      PlannedStep(9, .launch(device: 1)),
      PlannedStep(1, .save(device: 1, context: 0, changes: [.insert(.label, link: 0, length: 0)])),
      PlannedStep(3, .kill(device: 1, afterJobs: 0, launchAfter: 19)),
      PlannedStep(30, .sync(device: 0)),
    ]
    try await play(plan)
  }

  @Test("A new version of the app does not take a zone that was made again for the one it read")
  func remadeZoneDuringUpdate() async throws { try await play(Self.remadeZoneDuringUpdatePlan) }

  @Test("A device with a lost reply that is away for months brings no deleted object back")
  func lostReplyBeforeAbsence() async throws {
    var plan = SimulationPlan(seed: 50_000_026, devices: [0, 0])
    plan.limits.operationsPerBatch = 3
    plan.network.latency = 1.006
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        18.64,
        .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 0)])
      ),
      PlannedStep(0.54, .offline(device: 0)),
      PlannedStep(0.718, .leap(days: 91)),
      PlannedStep(7.009, .save(device: 1, context: 1, changes: [.delete(.item, pick: 0)])),
    ]
    try await play(plan)
  }

  @Test("A record that a restored server lost is gone when its only device is reinstalled")
  func reinstallAfterLoss() async throws {
    var plan = SimulationPlan(seed: 50_000_198, devices: [0])
    plan.network.latency = 1.172
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(3.261, .backUpServer),
      PlannedStep(
        3.544,
        .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 0)])
      ),
      PlannedStep(1.281, .restoreServer),
      PlannedStep(1.195, .reinstall(device: 0)),
    ]
    try await play(plan)
  }

  @Test("A backup from before an object was first sent brings no second one")
  func backupBeforeName() async throws { try await play(Self.backupBeforeNamePlan) }

  @Test(
    "A restored backup's copy of an object that was edited or deleted since does not win",
    arguments: [true, false]
  )
  func backupBeforeNameAndChange(isDeleted: Bool) async throws {
    var plan = SimulationPlan(seed: 50_000_062, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(30, .save(device: 1, context: 0, changes: [.insert(.item, link: 0, length: 0)])),
      PlannedStep(0, .backUp(device: 1)),
      PlannedStep(
        120,
        .save(
          device: 0,
          context: 0,
          changes: [
            isDeleted
              ? .delete(.item, pick: 0) : .edit(.item, pick: 0, attribute: 0, length: 0)
          ]
        )
      ),
      PlannedStep(120, .restore(device: 1)),
    ]
    try await play(plan)
  }
}
