import Simulation
import Testing

/// Worlds in which requests came late, or what they had brought was lost.
extension RegressionTests {
  private static func insert(_ entity: AppEntity, on device: Int) -> StepAction {
    .save(device: device, context: 0, changes: [.insert(entity, link: 0, length: 0)])
  }

  @Test("A device whose channel was opened while it was signed out receives later changes")
  func openedWhileSignedOut() async throws {
    var plan = SimulationPlan(seed: 1_795_439_638_008, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(60, Self.insert(.label, on: 0)),
      PlannedStep(60, .killServer(startAfter: 30)),
      PlannedStep(10, .signOut(device: 1)),
      PlannedStep(300, .signIn(device: 1)),
      PlannedStep(120, Self.insert(.label, on: 0)),
    ]
    try await play(plan)
  }

  @Test("A batch that the network delivers again much later brings no deleted object back")
  func lateRepetition() async throws {
    var plan = SimulationPlan(seed: 1_795_439_638_084, devices: [0, 0])
    plan.network.faults = [.duplicated: 0.6]
    let delete = StepAction.save(device: 0, context: 0, changes: [.delete(.label, pick: 0)])
    plan.steps = [
      PlannedStep(30, Self.insert(.label, on: 1)),
      PlannedStep(8, Self.insert(.label, on: 1)),
      PlannedStep(8, delete),
      PlannedStep(8, delete),
    ]
    try await play(plan)
  }

  @Test("An object that is deleted with an owner, unseen by that deletion, is in a recovery list")
  func goneWithOwner() async throws {
    try await play(PlanGenerator.plan(seed: 1_795_881_556_349))
  }

  @Test("A record that only the server had is gone if the server is restored from an older backup")
  func erasedBeforeRestore() async throws {
    var plan = SimulationPlan(seed: 1_795_440_345_023, devices: [0, 0])
    plan.network.latency = 30
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(200, .offline(device: 1)),
      PlannedStep(1, .backUpServer),
      PlannedStep(1, Self.insert(.folder, on: 0)),
      PlannedStep(300, .reinstall(device: 0)),
      PlannedStep(1, .restoreServer),
    ]
    try await play(plan)
  }

  @Test("No edit is lost while devices send again what a restored server lost")
  func editOfLostValue() async throws {
    var plan = SimulationPlan(seed: 6_000_143, devices: [0, 0, 0])
    plan.network.latency = 2
    plan.requestFaults = []
    func edit(_ device: Int) -> StepAction {
      .save(device: device, context: 0, changes: [.edit(.item, pick: 0, attribute: 0, length: 0)])
    }
    plan.steps = [
      PlannedStep(30, Self.insert(.item, on: 0)),
      PlannedStep(60, .backUpServer),
    ]
    for round in 0..<6 {
      plan.steps += [
        PlannedStep(60, edit(round % 3)), PlannedStep(60, .restoreServer),
        PlannedStep(4 + Double(round), edit((round + 1) % 3)),
      ]
    }
    try await play(plan)
  }

  @Test("A device that is updated reads no value that a former version has edited since")
  func staleFieldAfterUpdate() async throws {
    var plan = SimulationPlan(seed: 2_000_111, devices: [0, 0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(30, Self.insert(.item, on: 0)), PlannedStep(60, .upgrade(device: 2)),
      PlannedStep(120, .offline(device: 2)),
      PlannedStep(
        30,
        .save(device: 0, context: 0, changes: [.edit(.item, pick: 0, attribute: 0, length: 0)])
      ),
      PlannedStep(60, .upgrade(device: 1)), PlannedStep(120, Self.insert(.label, on: 1)),
    ]
    try await play(plan)
  }

  @Test("A device that waits on a lost request reads what a restored server has before it is idle")
  func lostWaitAtRestore() async throws {
    var plan = SimulationPlan(seed: 1_795_440_345_030, devices: [0, 1])
    // The waits of a device that has nothing else to ask.
    plan.requestFaults = (14...200).map {
      PlannedRequestFault(device: 1, request: $0, kind: .requestLost)
    }
    plan.steps = [
      PlannedStep(30, .backUpServer),
      PlannedStep(1, Self.insert(.label, on: 1)),
      PlannedStep(600, .restoreServer),
    ]
    try await play(plan)
  }
}
