import Simulation
import Testing

/// Worlds in which a server lost files.
extension RegressionTests {
  /// A value is uploaded before a server is restored from its backup, and its record saved after.
  private static var uploadBeforeRestorationPlan: SimulationPlan {
    var plan = SimulationPlan(seed: 9_000_019, devices: [0, 0, 0, 0, 0])
    plan.limits.operationsPerBatch = 200
    plan.limits.recordsPerPage = 1
    plan.limits.inlineBytes = 556
    plan.limits.repeatsRequests = false
    plan.network.latency = 30
    plan.requestFaults = [
      PlannedRequestFault(device: 2, request: 4, kind: .delayed),
      PlannedRequestFault(device: 3, request: 16, kind: .serverError),
      PlannedRequestFault(device: 3, request: 20, kind: .replyDelayed),
    ]
    func save(_ device: Int, _ context: Int, _ change: AppChange) -> StepAction {
      .save(device: device, context: context, changes: [change])
    }
    plan.steps = [
      PlannedStep(
        0.8371484111764425,
        save(3, 0, .insert(.folder, link: 4_248_519_343, length: 1500))
      ),
      PlannedStep(3.6248612371421847, save(0, 1, .insert(.item, link: 3_279_046_834, length: 0))),
      PlannedStep(0.39762076786271294, .killServer(startAfter: 21.758469787545785)),
      PlannedStep(
        16.632119008758075,
        save(3, 1, .toggleLabel(pick: 3_456_939_133, label: 2_351_212_846))
      ),
      PlannedStep(18.13517182387824, .killServer(startAfter: 42.340364361181706)),
      PlannedStep(0.7986553730267494, .leap(days: 0.5)),
      PlannedStep(
        0.7737714735503399,
        save(0, 0, .toggleLabel(pick: 3_823_148_591, label: 3_976_976_508))
      ),
      PlannedStep(11.190052864783668, save(3, 1, .insert(.photo, link: 1_325_665_102, length: 0))),
      PlannedStep(0.7515410018182602, .killServer(startAfter: 114.46912881498542)),
      PlannedStep(9.54975587024105, .backUpServer),
      PlannedStep(
        0.7850629928034193,
        save(0, 0, .edit(.item, pick: 1_317_088_714, attribute: 513_571_765, length: 1500))
      ),
      PlannedStep(173.3940745112412, .leap(days: 89)),
      PlannedStep(
        250.6003407487978,
        save(0, 0, .insert(.label, link: 2_165_559_260, length: 0))
      ),
      PlannedStep(7.442775213825378, .restoreServer),
    ]
    return plan
  }

  @Test("A file that was uploaded before a server was restored is uploaded again with its record")
  func uploadBeforeRestoration() async throws {
    try await play(Self.uploadBeforeRestorationPlan)
  }
}
