/// Everything that happens in one world: who is there, what they do and what goes wrong.
///
/// A plan is a value, so a run can be repeated, made smaller and written as a test. What it leaves
/// open, such as the order of jobs, follows from its seed.
package struct SimulationPlan: Hashable, Sendable, Codable {
  /// Chooses the order of jobs, delays of the network and random bits.
  package var seed: UInt64
  /// The person of each device; persons are numbered from 0.
  package var devices: [Int]
  package var limits: PlanLimits
  package var network: NetworkConditions
  package var steps: [PlannedStep]
  /// Faults of single requests; nil: drawn while the world runs, as `network` says.
  package var requestFaults: [PlannedRequestFault]?
  /// A defect that is switched on, to test the simulator.
  package var plantedBug: PlantedBugName?

  package init(
    seed: UInt64,
    devices: [Int],
    limits: PlanLimits = PlanLimits(),
    network: NetworkConditions = NetworkConditions(),
    steps: [PlannedStep] = [],
    requestFaults: [PlannedRequestFault]? = nil,
    plantedBug: PlantedBugName? = nil
  ) {
    self.seed = seed
    self.devices = devices
    self.limits = limits
    self.network = network
    self.steps = steps
    self.requestFaults = requestFaults
    self.plantedBug = plantedBug
  }
}

/// The raw value of a planted bug.
package typealias PlantedBugName = String

/// Limits of the mirroring in a world; small ones reach the ends of batches and pages sooner.
package struct PlanLimits: Hashable, Sendable, Codable {
  /// Operations of one batch.
  package var operationsPerBatch = 200
  /// Records of one page of the feed.
  package var recordsPerPage = 200
  /// Bytes of a record's values before the largest move into files.
  package var inlineBytes = 700_000
  /// Whether the client repeats failed requests by itself before the mirroring does.
  package var repeatsRequests = false

  package init() {}
}

/// The network's latency and fault probabilities.
package struct NetworkConditions: Hashable, Sendable, Codable {
  /// The longest time that one way of a request takes, in seconds.
  package var latency = 0.2
  /// The probability of each kind of fault for one request.
  package var faults: [RequestFaultKind: Double] = [:]

  package init() {}
}

/// One fault of one request.
package struct PlannedRequestFault: Hashable, Sendable, Codable {
  /// The index of the device.
  package var device: Int
  /// The number of the request among all of the device's, from 1.
  package var request: Int
  package var kind: RequestFaultKind

  package init(device: Int, request: Int, kind: RequestFaultKind) {
    self.device = device
    self.request = request
    self.kind = kind
  }
}

/// The kinds of faults of one request.
package enum RequestFaultKind: String, Hashable, Sendable, Codable, CaseIterable {
  /// The request never arrives.
  case requestLost
  /// The server answers the request, and the reply never arrives.
  case replyLost
  /// The request arrives twice, the second time later.
  case duplicated
  /// The request takes up to two minutes.
  case delayed
  /// The reply takes up to two minutes: a later request may be answered before.
  case replyDelayed
  /// The server refuses the request and names a time to wait.
  case throttled
  /// The server is busy and names no time.
  case busy
  /// The zone is busy.
  case zoneBusy
  /// The request is too large for the server.
  case limitExceeded
  /// The server fails before it executes the request.
  case serverError
  /// A proxy replies with a failure after the server executed the request.
  case failureAfterCommit
  /// The server cannot continue the change token, and gives no reason.
  case tokenExpired
  /// The reply is not JSON.
  case garbled
  /// The process of the device ends before the request leaves.
  case killBefore
  /// The process of the device ends after the server answered and before the reply arrives.
  case killAfterCommit
}
