import Foundation

/// Finds a smaller plan that fails in the same way.
package struct PlanShrinker {
  private let guarantee: Guarantee
  private var budget: Int
  package private(set) var smallest: SimulationOutcome
  private let progress: (String) -> Void

  /// Shrinks a failed run with at most `budget` further runs.
  package init?(
    _ failure: SimulationOutcome,
    budget: Int = 200,
    progress: @escaping (String) -> Void = { _ in }
  ) {
    guard let violation = failure.violations.first else { return nil }
    guarantee = violation.guarantee
    self.budget = budget
    self.progress = progress
    smallest = failure
  }

  /// Leaves out faults, steps, changes and devices while the run still fails.
  package mutating func shrink() {
    var listed = smallest.plan
    listed.requestFaults = smallest.requestFaults
    guard keeps(listed) else { return }
    var isSmaller = true
    while isSmaller, budget > 0 {
      let before = size
      drop({ $0.requestFaults ?? [] }, { $0.requestFaults = $1 })
      drop(\.steps, { $0.steps = $1 })
      dropChanges()
      dropDevices()
      isSmaller = size < before
      progress(
        "\(smallest.plan.steps.count) steps, \(smallest.plan.requestFaults?.count ?? 0) faults"
      )
    }
  }

  private var size: Int {
    let plan = smallest.plan
    let changes = plan.steps.reduce(0) { count, step in
      if case .save(_, _, let changes) = step.action { return count + changes.count }
      return count
    }
    return plan.steps.count + changes + (plan.requestFaults?.count ?? 0) + plan.devices.count
  }

  /// Runs a plan; keeps it where it fails alike.
  private mutating func keeps(_ plan: SimulationPlan) -> Bool {
    guard budget > 0 else { return false }
    budget -= 1
    let outcome = Simulation.run(plan)
    guard outcome.violations.contains(where: { $0.guarantee == guarantee }) else { return false }
    smallest = outcome
    return true
  }

  /// Leaves out stretches of a list, from long to short.
  private mutating func drop<Element>(
    _ list: (SimulationPlan) -> [Element],
    _ set: (inout SimulationPlan, [Element]) -> Void
  ) {
    var length = list(smallest.plan).count
    while length > 0, budget > 0 {
      var start = 0
      while start < list(smallest.plan).count, budget > 0 {
        var rest = list(smallest.plan)
        rest.removeSubrange(start..<min(start + length, rest.count))
        var plan = smallest.plan
        set(&plan, rest)
        if !keeps(plan) { start += length }
      }
      length = length == 1 ? 0 : (length + 1) / 2
    }
  }

  private mutating func dropChanges() {
    for index in smallest.plan.steps.indices {
      guard case .save(let device, let context, var changes) = smallest.plan.steps[index].action
      else { continue }
      for change in changes.indices.reversed() where changes.count > 1 {
        var fewer = changes
        fewer.remove(at: change)
        var plan = smallest.plan
        plan.steps[index].action = .save(device: device, context: context, changes: fewer)
        if keeps(plan) { changes = fewer }
      }
    }
  }

  private mutating func dropDevices() {
    while smallest.plan.devices.count > 1, budget > 0 {
      let last = smallest.plan.devices.count - 1
      guard !smallest.plan.steps.contains(where: { $0.action.device == last }) else { return }
      var plan = smallest.plan
      plan.devices.removeLast()
      plan.requestFaults?.removeAll { $0.device == last }
      guard keeps(plan) else { return }
    }
  }
}

extension SimulationPlan {
  /// The plan as a Swift test, for `Tests/SimulationTests`.
  package func swiftTest(named name: String) -> String {
    func source(_ value: some Any) -> String {
      "\(value)".replacingOccurrences(of: "Simulation.AppChange.", with: ".")
        .replacingOccurrences(of: "Simulation.AppEntity.", with: ".")
    }
    let lines = steps.map { "      PlannedStep(\($0.delay), .\(source($0.action)))," }
    let faults = (requestFaults ?? []).map {
      "      PlannedRequestFault(device: \($0.device), request: \($0.request), kind: .\($0.kind)),"
    }
    return """
      @Test("\(name)")
      func seed\(seed)() {
        var plan = SimulationPlan(seed: \(seed), devices: \(devices))
        plan.limits.operationsPerBatch = \(limits.operationsPerBatch)
        plan.limits.recordsPerPage = \(limits.recordsPerPage)
        plan.limits.inlineBytes = \(limits.inlineBytes)
        plan.limits.repeatsRequests = \(limits.repeatsRequests)
        plan.network.latency = \(network.latency)
        plan.requestFaults = [
      \(faults.joined(separator: "\n"))
        ]
        plan.steps = [
      \(lines.joined(separator: "\n"))
        ]
        #expect(Simulation.run(plan).violations == [])
      }
      """
  }
}
