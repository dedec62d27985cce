import Simulation
import Testing

/// Worlds in which the app was updated, or went back to its former version.
extension RegressionTests {
  @Test("A link that was removed while another device waits for its object stays removed")
  func linkRemovedWhileWaiting() async throws {
    var plan = SimulationPlan(seed: 1_795_455_006_023, devices: [0, 0])
    plan.limits.operationsPerBatch = 200
    plan.limits.recordsPerPage = 200
    plan.limits.inlineBytes = 700_000
    plan.limits.repeatsRequests = false
    plan.network.latency = 1.1657992849427923
    plan.requestFaults = []
    func save(_ device: Int, _ context: Int, _ changes: AppChange...) -> StepAction {
      .save(device: device, context: context, changes: changes)
    }
    plan.steps = [
      PlannedStep(15.16372581327299, .quota(isReached: true)),
      PlannedStep(10.07684292470989, .upgrade(device: 0)),
      PlannedStep(0.4497914962566978, save(0, 0, .insert(.item, link: 1_438_322_330, length: 0))),
      PlannedStep(
        14.84508449077096,
        save(
          1,
          0,
          .insert(.item, link: 991_268_055, length: 0),
          .insert(.item, link: 2_520_619_973, length: 0)
        )
      ),
      PlannedStep(
        3.860189923501324,
        save(1, 0, .insert(.folder, link: 845_563_355, length: 1500))
      ),
      PlannedStep(
        17.607329146269084,
        save(0, 1, .insert(.photo, link: 4_201_191_240, length: 0))
      ),
      PlannedStep(
        16.893877159210167,
        save(
          1,
          0,
          .move(pick: 1_501_232_286, folder: 2_664_371_594),
          .delete(.item, pick: 2_549_391_711)
        )
      ),
      PlannedStep(
        199.63309219727864,
        save(0, 1, .edit(.item, pick: 1_756_696_208, attribute: 852_766_273, length: 0))
      ),
      PlannedStep(1.7597146741332061, .quota(isReached: false)),
      PlannedStep(
        0.4665937881552329,
        save(1, 0, .edit(.item, pick: 696_279_642, attribute: 3_909_873_407, length: 0))
      ),
      PlannedStep(
        0.16632072791015606,
        save(1, 1, .move(pick: 2_044_522_778, folder: 1_111_458_228))
      ),
    ]
    try await play(plan)
  }

  @Test("Devices that went back to a former version are compared under the newest one")
  func linksOfNewerVersion() async throws {
    var plan = SimulationPlan(seed: 1_795_455_006_023, devices: [0, 0])
    plan.requestFaults = []
    plan.steps = [
      PlannedStep(30, .upgrade(device: 0)),
      PlannedStep(0, .upgrade(device: 1)),
      PlannedStep(
        120,
        .save(
          device: 1,
          context: 0,
          changes: [
            .insert(.item, link: 0, length: 0), .insert(.label, link: 0, length: 0),
            .toggleLabel(pick: 0, label: 0),
          ]
        )
      ),
      PlannedStep(0, .downgrade(device: 0)),
      PlannedStep(120, .downgrade(device: 1)),
    ]
    try await play(plan)
  }

  @Test("A device that has taken an edit of a former version sends it over no later one")
  func takenFormerEdit() async throws { try await play(Self.takenFormerEditPlan) }

  /// A device with the newer version takes the edit of one with the former version, which is then updated and edits
  /// the attribute again, before the first has sent the edit under the present name.
  static var takenFormerEditPlan: SimulationPlan {
    var plan = SimulationPlan(seed: 1_795_881_556_088, devices: [0, 0, 0])
    plan.limits.operationsPerBatch = 200
    plan.limits.recordsPerPage = 4
    plan.limits.inlineBytes = 736
    plan.limits.repeatsRequests = false
    plan.network.latency = 1.485631666487227
    plan.requestFaults = []
    func save(_ device: Int, _ context: Int, _ change: AppChange) -> StepAction {
      .save(device: device, context: context, changes: [change])
    }
    plan.steps = [
      PlannedStep(200.2630158964074, save(1, 0, .insert(.item, link: 4_221_872_896, length: 0))),
      PlannedStep(0.7728473051635956, save(1, 0, .insert(.photo, link: 3_210_653_552, length: 0))),
      PlannedStep(16.50862029158006, .upgrade(device: 0)),
      PlannedStep(
        280.53692078455674,
        save(1, 1, .edit(.item, pick: 3_172_350_506, attribute: 1_690_533_939, length: 0))
      ),
      PlannedStep(0.5549874419310777, .killServer(startAfter: 96.52664239987206)),
      PlannedStep(
        0.8201381777823303,
        save(2, 1, .edit(.photo, pick: 389_506_346, attribute: 3_363_825_628, length: 0))
      ),
      PlannedStep(
        0.7055655278243074,
        save(1, 0, .edit(.item, pick: 2_567_142_160, attribute: 3_860_327_238, length: 0))
      ),
    ]
    return plan
  }
}
