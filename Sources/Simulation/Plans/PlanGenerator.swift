import Effects

/// Draws the plan of a seed: each seed switches its own kinds of faults on, with its own strengths, so that
/// no two worlds fail alike.
package struct PlanGenerator {
  /// Which kinds of steps may come, and how likely each is.
  private struct Mix {
    var actions: [(Kind, Int)] = []
  }

  private enum Kind: CaseIterable {
    case save, sync, offline, kill, quit, leap, killServer, restoreServer, restore, reinstall
    case deleteZone, quota, signOut, signInOther, clock, serverClock, upgrade, downgrade
    case collectTraces, deleteHistory, backUpServer, backUp
  }

  private let seed: UInt64
  private let random: SeededRandomness

  package init(seed: UInt64) {
    self.seed = seed
    random = SeededRandomness(seed: SeedMixing.mix(seed, "plan"))
  }

  /// The plan of the seed.
  package static func plan(seed: UInt64) -> SimulationPlan {
    PlanGenerator(seed: seed).plan()
  }

  private func plan() -> SimulationPlan {
    let people = random.happens(0.2) ? 2 + random.below(2) : 1
    let count = max(people, random.weighted([(1, 1), (2, 5), (3, 3), (4, 1), (5, 1)]) ?? 2)
    var plan = SimulationPlan(seed: seed, devices: (0..<count).map { $0 % people })
    plan.limits = limits()
    plan.network = network()
    let mix = mix(people: people)
    let length = 12 + random.below(36)
    var hasServerBackup = false
    for number in 0..<length {
      // The first steps create objects, so that later ones have some to change.
      let kind = number < 2 ? Kind.save : random.weighted(mix.actions) ?? .save
      plan.steps += steps(kind, plan, &hasServerBackup)
    }
    return plan
  }

  private func limits() -> PlanLimits {
    var limits = PlanLimits()
    if random.happens(0.6) { limits.operationsPerBatch = 1 + random.below(6) }
    if random.happens(0.6) { limits.recordsPerPage = 1 + random.below(6) }
    if random.happens(0.4) { limits.inlineBytes = 200 + random.below(600) }
    limits.repeatsRequests = random.happens(0.3)
    return limits
  }

  private func network() -> NetworkConditions {
    var network = NetworkConditions()
    network.latency = random.happens(0.2) ? 30 : random.between(0.01...2)
    guard random.happens(0.8) else { return network }
    for kind in RequestFaultKind.allCases where random.happens(0.3) {
      network.faults[kind] = random.between(0.005...0.12)
    }
    for kind in [RequestFaultKind.killBefore, .killAfterCommit] {
      network.faults[kind] = network.faults[kind].map { $0 / 4 }
    }
    return network
  }

  private func mix(people: Int) -> Mix {
    var mix = Mix(actions: [(.save, 30)])
    let rare: Set<Kind> = [
      .restoreServer, .restore, .reinstall, .deleteZone, .quota, .signOut, .signInOther, .clock,
      .serverClock, .upgrade, .downgrade, .leap, .deleteHistory,
    ]
    for kind in Kind.allCases where kind != .save {
      if kind == .signInOther, people == 1 { continue }
      let probability = rare.contains(kind) ? 0.18 : 0.5
      if random.happens(probability) {
        mix.actions.append((kind, rare.contains(kind) ? 1 + random.below(3) : 2 + random.below(6)))
      }
    }
    return mix
  }

  /// The delay before a step: mostly short, now and then long enough for everything to settle.
  private func delay() -> Double {
    switch random.below(10) {
    case 0..<5: random.between(0...1)
    case 5..<9: random.between(1...20)
    default: random.between(60...300)
    }
  }

  private func steps(
    _ kind: Kind,
    _ plan: SimulationPlan,
    _ hasServerBackup: inout Bool
  ) -> [PlannedStep] {
    let device = random.below(plan.devices.count)
    func one(_ action: StepAction) -> [PlannedStep] { [PlannedStep(delay(), action)] }
    switch kind {
    case .save: return save(device)
    case .sync: return one(.sync(device: device))
    case .offline:
      return random.happens(0.6) ? one(.offline(device: device)) : one(.online(device: device))
    case .kill:
      return one(
        .kill(
          device: device,
          afterJobs: random.happens(0.3) ? 0 : random.below(400),
          launchAfter: random.between(0...60)
        )
      )
    case .quit:
      return random.happens(0.4) ? one(.quit(device: device)) : one(.launch(device: device))
    case .leap: return leap(device)
    case .killServer: return one(.killServer(startAfter: random.between(0...120)))
    case .backUpServer:
      hasServerBackup = true
      return one(.backUpServer)
    case .restoreServer:
      guard hasServerBackup else {
        hasServerBackup = true
        return one(.backUpServer)
      }
      return one(.restoreServer)
    case .backUp: return one(.backUp(device: device))
    case .restore: return one(.restore(device: device))
    case .reinstall: return one(.reinstall(device: device))
    case .deleteZone: return one(.deleteZone(person: plan.devices[device]))
    case .quota: return one(.quota(isReached: random.happens(0.6)))
    case .signOut:
      return random.happens(0.5) ? one(.signOut(device: device)) : one(.signIn(device: device))
    case .signInOther:
      return random.happens(0.6) ? one(.signInOther(device: device)) : one(.signIn(device: device))
    case .clock:
      return one(.setClock(device: device, offset: random.between(-40_000_000...40_000_000)))
    case .serverClock: return one(.setServerClock(offset: random.between(-90_000...90_000)))
    case .upgrade: return one(.upgrade(device: device))
    case .downgrade: return one(.downgrade(device: device))
    case .collectTraces: return one(.collectTraces)
    case .deleteHistory: return one(.deleteHistory(device: device))
    }
  }

  private func save(_ device: Int) -> [PlannedStep] {
    let changes = (0...random.below(4)).map { _ in change() }
    var steps = [
      PlannedStep(
        delay(),
        .save(
          device: device,
          context: random.happens(0.7) ? 0 : 1,
          changes: changes
        )
      )
    ]
    // A crash is likelier right after a write.
    if random.happens(0.03) {
      let jobs = random.below(60)
      steps.append(
        PlannedStep(0, .kill(device: device, afterJobs: jobs, launchAfter: random.between(0...30)))
      )
    }
    return steps
  }

  /// A device is away while all sleep, for up to 400 days.
  private func leap(_ device: Int) -> [PlannedStep] {
    let days = [0.5, 7, 89, 91, 400][random.below(5)]
    var steps = [PlannedStep(delay(), .leap(days: days))]
    if random.happens(0.7) {
      steps.insert(PlannedStep(delay(), .offline(device: device)), at: 0)
      steps.append(PlannedStep(delay(), .collectTraces))
    }
    return steps
  }

  private func change() -> AppChange {
    let entity = AppEntity.allCases[random.below(4)]
    switch random.below(20) {
    case 0..<5: return .insert(entity, link: random.pick(), length: length())
    case 5..<12:
      return .edit(
        random.happens(0.6) ? .item : entity,
        pick: random.pick(),
        attribute: random.pick(),
        length: length()
      )
    case 12..<14: return .delete(entity, pick: random.pick())
    case 14..<16: return .move(pick: random.pick(), folder: random.pick())
    case 16: return .illustrate(pick: random.pick(), photo: random.pick())
    default: return .toggleLabel(pick: random.pick(), label: random.pick())
    }
  }

  private func length() -> Int {
    switch random.below(10) {
    case 0: 300 + random.below(600)
    case 1: 1500
    default: 0
    }
  }
}
