import Simulation

#if DEBUG
/// Worlds that are made to find planted bugs.
extension PlantedBugTests {
  /// Two devices edit different attributes of one object at once: a batch meets a conflict.
  static var editsAtOnce: SimulationPlan {
    var plan = SimulationPlan(seed: 31_000, devices: [0, 0])
    plan.network.latency = 2
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(1, .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 0)]))
    ]
    for _ in 0..<6 {
      plan.steps += [
        PlannedStep(
          120,
          .save(device: 0, context: 0, changes: [.edit(.item, pick: 0, attribute: 0, length: 0)])
        ),
        PlannedStep(
          0.1,
          .save(device: 1, context: 0, changes: [.edit(.item, pick: 0, attribute: 1, length: 0)])
        ),
      ]
    }
    return plan
  }

  /// A device is away until the server has forgotten a deletion: its token is too old.
  static var absence: SimulationPlan {
    var plan = SimulationPlan(seed: 31_100, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        1,
        .save(
          device: 0,
          context: 0,
          changes: [.insert(.label, link: 0, length: 0), .insert(.label, link: 0, length: 0)]
        )
      ),
      PlannedStep(120, .quit(device: 1)),
      PlannedStep(1, .save(device: 0, context: 0, changes: [.delete(.label, pick: 0)])),
      PlannedStep(120, .leap(days: 400)),
      PlannedStep(120, .collectTraces),
      PlannedStep(10, .launch(device: 1)),
    ]
    return plan
  }

  /// The app is updated on a device, and its model names an attribute otherwise.
  static var update: SimulationPlan {
    var plan = SimulationPlan(seed: 31_200, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(1, .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 0)])),
      PlannedStep(120, .upgrade(device: 1)),
    ]
    return plan
  }

  /// The server is restored from a backup that lacks an object.
  static var restore: SimulationPlan {
    var plan = SimulationPlan(seed: 31_300, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(60, .backUpServer),
      PlannedStep(1, .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 0)])),
      PlannedStep(120, .restoreServer),
    ]
    return plan
  }

  /// Two devices edit small attributes of an object with a file at once.
  static var editsOfLargeObject: SimulationPlan {
    var plan = editsAtOnce
    plan.seed = 31_400
    plan.limits.inlineBytes = 200
    plan.steps[0].action = .save(
      device: 0,
      context: 0,
      changes: [.insert(.item, link: 0, length: 1500)]
    )
    for index in plan.steps.indices.dropFirst() {
      // The first two attributes become small, the third one stays in its file.
      plan.steps[index].delay = index % 2 == 1 ? 120 : 0.1
    }
    return plan
  }

  /// A device is restored from a backup and edits what it had edited since.
  static var restoredDevice: SimulationPlan {
    var plan = SimulationPlan(seed: 31_500, devices: [0, 0])
    plan.requestFaults = []
    let edit = StepAction.save(
      device: 1,
      context: 0,
      changes: [.edit(.item, pick: 0, attribute: 0, length: 0)]
    )
    plan.steps = [
      PlannedStep(1, .save(device: 1, context: 0, changes: [.insert(.item, link: 0, length: 0)])),
      PlannedStep(120, .backUp(device: 1)),
      PlannedStep(1, edit),
      PlannedStep(120, .restore(device: 1)),
      PlannedStep(120, edit),
    ]
    return plan
  }

  /// A device that is offline puts an object into a folder, which another device deletes.
  static var ownerDeleted: SimulationPlan {
    var plan = SimulationPlan(seed: 31_800, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(1, .save(device: 0, context: 0, changes: [.insert(.folder, link: 0, length: 0)])),
      PlannedStep(120, .offline(device: 1)),
      // Without it the object would be in an open batch, which is sent before the deletion is read.
      PlannedStep(1, .sync(device: 1)),
      PlannedStep(10, .save(device: 1, context: 0, changes: [.insert(.item, link: 0, length: 0)])),
      PlannedStep(1, .save(device: 0, context: 0, changes: [.delete(.folder, pick: 0)])),
      PlannedStep(60, .online(device: 1)),
    ]
    return plan
  }

  /// A full database refuses the move of an item out of a folder, which is deleted then.
  static var moveInFullDatabase: SimulationPlan {
    var plan = SimulationPlan(seed: 31_900, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        1,
        .save(
          device: 0,
          context: 0,
          changes: [.insert(.folder, link: 0, length: 0), .insert(.item, link: 0, length: 0)]
        )
      ),
      PlannedStep(120, .quota(isReached: true)),
      PlannedStep(10, .save(device: 0, context: 0, changes: [.move(pick: 0, folder: 0)])),
      PlannedStep(0, .save(device: 0, context: 0, changes: [.delete(.folder, pick: 0)])),
      PlannedStep(120, .sync(device: 0)),
    ]
    return plan
  }

  /// The app deletes its history while a batch waits for a connection.
  static var historyDeletedOffline: SimulationPlan {
    var plan = SimulationPlan(seed: 31_700, devices: [0, 0])
    plan.requestFaults = []
    func edit(_ attribute: UInt32) -> StepAction {
      .save(
        device: 0,
        context: 0,
        changes: [.edit(.item, pick: 0, attribute: attribute, length: 0)]
      )
    }
    plan.steps = [
      PlannedStep(1, .save(device: 0, context: 0, changes: [.insert(.item, link: 0, length: 0)])),
      PlannedStep(120, .offline(device: 0)),
      PlannedStep(1, edit(0)),
      PlannedStep(30, edit(1)),
      PlannedStep(0, .deleteHistory(device: 0)),
      PlannedStep(60, .online(device: 0)),
    ]
    return plan
  }
}
#endif
