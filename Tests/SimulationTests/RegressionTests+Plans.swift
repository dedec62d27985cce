import Simulation

/// Worlds of regression tests that find planted bugs too.
extension RegressionTests {
  /// A device edits what a restored server has an older copy of.
  static var conflictWithRestoredServerPlan: SimulationPlan {
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
    return plan
  }

  /// Change tokens are lost without a cause while objects are deleted.
  static var unexplainedTokenPlan: SimulationPlan {
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
    return plan
  }

  /// A device that missed an edit makes a zone again that was deleted.
  static var remadeZonePlan: SimulationPlan {
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
    return plan
  }

  /// The app is updated on one device while another one makes a deleted zone again.
  static var remadeZoneDuringUpdatePlan: SimulationPlan {
    var plan = SimulationPlan(seed: 1_795_412_472_022, devices: [0, 0])
    plan.limits.operationsPerBatch = 1
    plan.limits.recordsPerPage = 2
    plan.network.latency = 0.179
    // The first device sets up late, and makes the zone that the second one has lost.
    plan.requestFaults = [PlannedRequestFault(device: 0, request: 2, kind: .replyDelayed)]
    plan.steps = [
      PlannedStep(
        0.035,
        .save(device: 1, context: 1, changes: [.insert(.item, link: 0, length: 0)])
      ),
      PlannedStep(7.43, .deleteZone(person: 0)),
      PlannedStep(0.685, .upgrade(device: 1)),
    ]
    return plan
  }

  /// Files are fetched while replies are often no JSON, by a client that continues where a fetch broke.
  static var garbledFilesPlan: SimulationPlan {
    var plan = SimulationPlan(seed: 5123, devices: [0, 0])
    plan.limits.inlineBytes = 200
    plan.limits.repeatsRequests = true
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
    return plan
  }

  /// A device deletes offline what another one edits with a large value.
  static var largeValuePlan: SimulationPlan {
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
    return plan
  }

  /// A device is restored from a backup of the moment after an object was saved, and before it was sent.
  static var backupBeforeNamePlan: SimulationPlan {
    var plan = SimulationPlan(seed: 50_000_061, devices: [0, 0, 0])
    plan.limits.inlineBytes = 538
    plan.network.latency = 1.655
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(
        30,
        .save(device: 2, context: 1, changes: [.insert(.item, link: 0, length: 0)])
      ),
      PlannedStep(0, .backUp(device: 2)),
      PlannedStep(10.807, .restore(device: 2)),
    ]
    return plan
  }
}
