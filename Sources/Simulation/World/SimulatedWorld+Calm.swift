import CloudKitMirroring
import Effects
import Foundation
import OpenCoreData

extension SimulatedWorld {
  /// Virtual seconds in which all must agree once nothing goes wrong any more: what the server refused may
  /// wait an hour for its next try.
  private static let calmLimit = 3.0 * 3600
  /// Virtual seconds between two looks.
  private static let interval = 20.0
  private static let idleSpan = 300.0

  /// Ends all faults and waits until all devices agree and nothing waits.
  func calmDown() async throws {
    note("world", "calm")
    network.isCalm = true
    server.clockOffset = 0
    if server.service != nil, server.isFull {
      server.isFull = false
      server.kill()
    }
    server.isFull = false
    await startServer()
    for device in devices {
      device.process?.whenKilled(nil)
      device.process?.kill(afterJobs: .max)
      device.link.isOnline = true
      if !device.isSignedIn { try await signIn(device, as: device.person) }
      try start(device)
    }
    for device in devices {
      // A version that does not know a renamed entity or relationship leaves its records alone, so it lacks some
      // objects and links until it is updated, also where no device has the newer version any more.
      try await changeVersion(device, to: newestVersion(of: device.person))
    }
    let began = clock.elapsed
    try await settle(devices)
    calmTime = clock.elapsed - began
  }

  private func settle(_ devices: [SimulatedDevice]) async throws {
    let deadline = clock.elapsed + Self.calmLimit
    var problems: [(Guarantee, String)] = []
    repeat {
      try await clock.sleep(seconds: Self.interval)
      for device in devices { observe(device) }
      problems = try unsettled(devices)
      if problems.isEmpty {
        // Once more: a change may be on its way.
        try await clock.sleep(seconds: Self.interval)
        problems = try unsettled(devices)
      }
    } while !problems.isEmpty && clock.elapsed < deadline
    oracle.check(.convergence)
    oracle.check(.nothingWaits)
    for (guarantee, text) in problems { oracle.report(guarantee, text) }
  }

  /// The violations at the end of a calm.
  private func unsettled(_ devices: [SimulatedDevice]) throws -> [(Guarantee, String)] {
    var problems: [(Guarantee, String)] = []
    var first: [Int: (name: String, state: AppState)] = [:]
    for device in devices {
      guard let mirror = device.mirror, let state = try device.state() else { continue }
      let status = try mirror.status()
      let isOpen = try mirror.read { try $0.openBatch() != nil }
      if !status.isSetUp || !status.isIdle || status.pendingCount > 0 || isOpen
        || !status.parked.isEmpty
      {
        let reason = status.lastError.map { MirrorErrorReason.text($0) } ?? "no error"
        problems.append(
          (
            .nothingWaits,
            "\(device.name): \(status.pendingCount) changes wait, \(status.parked.count) are refused, "
              + "set up \(status.isSetUp), open batch \(isOpen): \(reason)"
              + (status.parked.first.map { "; \($0.entityName): \($0.reason)" } ?? "")
          )
        )
      }
      // The connection on which it waits may break only now: the request was lost before the calm.
      if device.link.lossesRead < device.link.lossCount {
        problems.append(
          (.nothingWaits, "\(device.name) has not asked for changes since the server lost data")
        )
      }
      guard let known = first[device.person] else {
        first[device.person] = (device.name, state)
        continue
      }
      let differences = known.state.differences(from: state)
      if !differences.isEmpty {
        problems.append(
          (
            .convergence,
            "\(known.name) and \(device.name) differ: \(differences.prefix(6).joined(separator: "; "))"
          )
        )
      }
    }
    return problems
  }

  /// Nothing changes any more: devices that are left alone send nothing.
  func checkIdleness() async throws {
    let before = network.requests
    try await clock.sleep(seconds: Self.idleSpan)
    let sent = network.requests["records/modify", default: 0] - before["records/modify", default: 0]
    oracle.expect(sent == 0, .boundedEffort, "\(sent) batches were sent while nothing changed")
    let all = network.requests.filter { $0.key != "poll" }.values.reduce(0, +)
    let known = before.filter { $0.key != "poll" }.values.reduce(0, +)
    // A device without notifications looks every 30 seconds, with a few requests.
    let limit = devices.count * 5 * Int(Self.idleSpan / 30)
    oracle.expect(
      all - known <= limit,
      .boundedEffort,
      "\(all - known) requests in \(Int(Self.idleSpan)) s while nothing changed"
    )
  }

  /// Compares every person's devices with the server, as a new device sees it, and with the log.
  func audit(_ round: Int) async throws {
    note("world", "audit \(round)")
    for person in Set(plan.devices).sorted() {
      let own = devices.filter { $0.person == person }
      guard let first = own.first, let state = try first.state() else { continue }
      let version = own.map(\.version).max() ?? 1
      let auditor = try await makeDevice(
        index: devices.count + person + round * 10,
        person: person,
        name: "auditor"
      )
      auditor.version = version
      auditor.link.isPerfect = true
      try launch(auditor)
      let deadline = clock.elapsed + Self.calmLimit
      var served: AppState?
      repeat {
        try await clock.sleep(seconds: Self.interval)
        served = try auditor.state()
      } while served?.objects != state.objects && clock.elapsed < deadline
      if let served {
        oracle.expect(
          served.objects == state.objects,
          .convergence,
          "\(first.name) and the server differ: "
            + state.differences(from: served).prefix(6).joined(separator: "; ")
        )
        for defect in served.defects {
          oracle.report(defect.guarantee, "new device: \(defect.text)")
        }
      }
      var recovered: Set<String> = []
      for device in own { recovered.formUnion(try device.recoveredWrites()) }
      oracle.audit(state, person: person, recovered: recovered)
      for line in try stateLines(state) { traceState(line) }
      try await quit(auditor)
    }
  }

  private func stateLines(_ state: AppState) throws -> [String] {
    state.objects.sorted { $0.key < $1.key }.map { key, object in
      "\(key) \(object.values.sorted { $0.key < $1.key }) \(object.links.sorted { $0.key < $1.key }) "
        + "\(object.labels.sorted())"
    }
  }

  /// Ends and starts everything; nothing may be lost or move by that.
  func restartAll() async throws {
    var before: [Int: AppState] = [:]
    for device in devices {
      before[device.index] = try device.state()
      try await quit(device)
    }
    server.kill()
    await startServer()
    for device in devices { try start(device) }
    try await settle(devices)
    for device in devices {
      guard let old = before[device.index], let new = try device.state() else { continue }
      oracle.expect(
        old.objects == new.objects,
        .durableSave,
        "\(device.name) changed by a restart: \(old.differences(from: new).prefix(6).joined(separator: "; "))"
      )
    }
  }
}

/// An error in a sentence.
enum MirrorErrorReason {
  static func text(_ error: any Error) -> String {
    let shown = error as NSError
    return shown.localizedFailureReason ?? "\(error)"
  }
}
