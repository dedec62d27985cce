import CloudKitMirroring
import CloudKitServer
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

extension SimulatedWorld {
  private static let day = 86_400.0

  /// Carries out the steps of the plan, one after the other.
  func runSteps() async throws {
    for (number, step) in plan.steps.enumerated() {
      oracle.step = number + 1
      if step.delay > 0 { try await clock.sleep(seconds: step.delay) }
      try await perform(step.action)
    }
    oracle.step = plan.steps.count + 1
  }

  private func perform(_ action: StepAction) async throws {
    let device = action.device.flatMap { devices.indices.contains($0) ? devices[$0] : nil }
    if action.device != nil, device == nil { return }
    count(action.kind)
    if let device {
      try await perform(action, on: device)
    } else {
      try await performOnServer(action)
    }
  }

  private func perform(_ action: StepAction, on device: SimulatedDevice) async throws {
    switch action {
    case .save(_, let context, let changes):
      save(device, context, changes)
      return
    case .kill(_, let jobs, let launchAfter):
      planKill(of: device, afterJobs: jobs, launchAfter: launchAfter)
      return
    default: break
    }
    note(device.name, action.kind)
    switch action {
    case .sync:
      guard let container = device.container, let process = device.process else { return }
      process.spawn { _ = try? await container.syncNow() }
    case .offline:
      device.link.isOnline = false
      network.breakConnections(of: device.link)
    case .online: device.link.isOnline = true
    case .quit:
      observe(device)
      try await quit(device)
    case .launch: try start(device)
    case .backUp:
      let copy = folder.appendingPathComponent("\(device.name).backup.\(oracle.step)")
      observe(device)
      try copyFiles(from: device.folder, to: copy)
      device.backup = .init(
        folder: copy,
        version: device.version,
        knowledge: oracle.knowledge(of: device.index)
      )
    case .restore: try await restore(device)
    case .reinstall: try await reinstall(device)
    case .signOut:
      device.isSignedIn = false
      device.webAuthToken = nil
      try device.cloud?.setWebAuthToken(nil)
    case .signIn: try await signIn(device, as: device.person)
    case .signInOther:
      // A store that was never synced with an account belongs to the first user who signs in.
      guard try device.mirror?.status().isSetUp == true else { return }
      let others = Set(plan.devices).subtracting([device.person]).sorted()
      guard let other = others.first else { return }
      try await signIn(device, as: other)
    case .setClock(_, let offset): device.clockOffset = offset
    case .upgrade: try await changeVersion(device, to: 2)
    case .downgrade: try await changeVersion(device, to: 1)
    case .deleteHistory: deleteHistory(device)
    default: break
    }
  }

  private func performOnServer(_ action: StepAction) async throws {
    note("server", action.kind)
    switch action {
    case .leap(let days): clock.leap(seconds: days * Self.day)
    case .killServer(let seconds):
      guard server.service != nil else { return }
      server.kill()
      driver.spawn { [self] in
        try? await clock.sleep(seconds: seconds)
        await startServer()
      }
    case .backUpServer:
      for device in devices { observe(device) }
      try server.backUp()
      oracle.noteServerBackup()
    case .restoreServer: try await restoreServer()
    case .deleteZone(let person): await deleteZone(person)
    case .quota(let isReached):
      server.isFull = isReached
      guard server.service != nil else { return }
      server.kill()
      await startServer()
    case .setServerClock(let offset): server.clockOffset = offset
    case .collectTraces: try? await server.service?.collectTraces()
    default: break
    }
  }

  // MARK: Devices

  /// Launches the app where it does not run; a store that was closed or copied must open.
  func start(_ device: SimulatedDevice) throws {
    guard !device.isRunning else { return }
    do {
      try launch(device)
      observe(device)
    } catch {
      oracle.report(.liveness, "\(device.name) does not open its store: \(error)")
      throw error
    }
  }

  func observe(_ device: SimulatedDevice) {
    do {
      if let state = try device.state() {
        oracle.observe(state, on: device.index, batches: device.link.batchCount)
      }
    } catch {
      oracle.report(.liveness, "\(device.name) cannot be read: \(error)")
    }
  }

  private func planKill(of device: SimulatedDevice, afterJobs jobs: Int, launchAfter: Double) {
    guard let process = device.process else { return }
    process.whenKilled { [self] in killed(device, launchAfter: launchAfter) }
    if jobs == 0 { process.kill() } else { process.kill(afterJobs: jobs) }
  }

  /// Checks after the kill of a process: its data must be complete when the app is launched again.
  func killed(_ device: SimulatedDevice, launchAfter: Double) {
    guard device.isRunning else { return }
    note(device.name, "killed")
    count("killed")
    let before: AppState?
    do { before = try device.state() } catch { before = nil }
    kill(device)
    let launches = device.launches
    driver.spawn { [self] in
      try? await clock.sleep(seconds: launchAfter)
      // A step may have launched the app meanwhile, and another kill ended it again.
      guard device.launches == launches, !device.isRunning, !network.isOver else { return }
      note(device.name, "launched again")
      do {
        try launch(device)
        let after = try device.state()
        if let before, let after {
          oracle.expect(
            before.objects == after.objects,
            .durableSave,
            "\(device.name) lost by a crash: \(before.differences(from: after).joined(separator: "; "))"
          )
        }
        observe(device)
      } catch {
        oracle.report(.liveness, "\(device.name) does not open its store after a crash: \(error)")
      }
    }
  }

  private func restore(_ device: SimulatedDevice) async throws {
    guard let backup = device.backup else { return }
    try await signInOwner(device)
    if !device.isRunning { try start(device) }
    observe(device)
    try keepList(of: device)
    if try !device.hasReadSinceLoss() {
      oracle.lostWithServer(device.index, keeping: backup.knowledge)
      device.loss = .unknown
    }
    kill(device)
    device.copies += 1
    let next = folder.appendingPathComponent("\(device.name).restored.\(device.copies)")
    try copyFiles(from: backup.folder, to: next)
    device.folder = next
    device.version = backup.version
    oracle.restored(device.index, to: backup.knowledge)
    try start(device)
  }

  /// A device is about to lose its recovery list: what was in it has reached it.
  private func keepList(of device: SimulatedDevice) throws {
    oracle.lostLists[device.person, default: []].formUnion(try device.recoveredWrites())
  }

  private func reinstall(_ device: SimulatedDevice) async throws {
    try await signInOwner(device)
    if !device.isRunning { try start(device) }
    observe(device)
    try keepList(of: device)
    if try !device.hasReadSinceLoss() { oracle.lostWithServer(device.index) }
    device.loss = .none
    oracle.erased(device.index, hadUnsentChanges: try device.hasUnsentChanges())
    kill(device)
    device.copies += 1
    device.folder = folder.appendingPathComponent("\(device.name).new.\(device.copies)")
    device.backup = nil
    try FileManager.default.createDirectory(at: device.folder, withIntermediateDirectories: true)
    try start(device)
  }

  func changeVersion(_ device: SimulatedDevice, to version: Int) async throws {
    guard device.version != version else { return }
    observe(device)
    try await quit(device)
    // Read when the app has ended: an import may be carried out while its stores close.
    let before = try device.storedState()
    let former = device.version
    device.version = version
    do {
      try launch(device)
    } catch {
      // An older version may refuse a newer store; it must leave the store as it is.
      guard version < former else {
        return oracle.report(.liveness, "\(device.name) cannot be upgraded: \(error)")
      }
      count("downgrade refused")
      device.version = former
      try start(device)
    }
    if device.version < former { personsWithDowngrade.insert(device.person) }
    if let before, let after = try device.state() {
      oracle.expect(
        before.objects == after.objects,
        .durableSave,
        "\(device.name) lost by an update: \(before.differences(from: after).joined(separator: "; "))"
      )
    }
  }

  func signIn(_ device: SimulatedDevice, as person: Int) async throws {
    guard let token = try await token(of: person) else { return }
    device.isSignedIn = person == device.person
    device.isSignedInSinceBackup = true
    device.webAuthToken = token
    try device.cloud?.setWebAuthToken(token)
  }

  /// A store without an account would take that of another person who is signed in.
  private func signInOwner(_ device: SimulatedDevice) async throws {
    guard !device.isSignedIn else { return }
    try await signIn(device, as: device.person)
    if !device.isSignedIn { device.webAuthToken = nil }
  }

  private func deleteHistory(_ device: SimulatedDevice) {
    guard let context = device.context(0) else { return }
    context.performAndWait {
      do {
        try context.execute(
          NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        )
      } catch {
        oracle.report(.liveness, "\(device.name) cannot delete its history: \(error)")
      }
    }
  }

  // MARK: Server

  func startServer() async {
    guard server.service == nil, !network.isOver else { return }
    note("server", "started")
    do {
      try await server.start()
    } catch {
      oracle.report(.liveness, "the server does not start: \(error)")
    }
  }

  /// The batches that each device has begun to send.
  private var begunBatches: [Int: Int] {
    Dictionary(devices.map { ($0.index, $0.link.batchCount) }) { first, _ in first }
  }

  private func restoreServer() async throws {
    guard server.backup != nil, let step = server.backupStep else { return }
    server.kill()
    try server.putBackupInPlace()
    for device in devices {
      observe(device)
      device.link.lossCount += 1
    }
    oracle.serverLostSince = min(oracle.serverLostSince ?? step, step)
    oracle.serverRestored(persons: Set(plan.devices), begun: begunBatches)
    try await server.start()
    try await server.service?.beginNewIncarnation()
    for device in devices { try device.noteLoss() }
    // A sign-in that the backup does not know is over.
    for device in devices where device.isSignedInSinceBackup && device.webAuthToken != nil {
      try await signIn(device, as: device.person)
    }
  }

  private func deleteZone(_ person: Int) async {
    guard server.service != nil else { return }
    let own = devices.filter { $0.person == person }
    for device in own {
      observe(device)
      device.link.lossCount += 1
    }
    oracle.zoneDeleted(person: person, begun: begunBatches)
    let link = SimulatedNetwork.Link(device: -1, name: "web")
    link.isPerfect = true
    let effects = driver.effects(seed: SeedMixing.mix(plan.seed, "web", oracle.step))
    do {
      let token = try await token(of: person)
      _ = try await cloud(link, effects, token: token).privateCloudDatabase.deleteRecordZone(
        withID: CKRecordZone.ID(
          zoneName: MirrorNames.zone,
          ownerName: CKCurrentUserDefaultName
        )
      )
    } catch {
      for device in own {
        device.link.lossCount -= 1
        device.link.lossesRead = min(device.link.lossesRead, device.link.lossCount)
      }
      return note("web", "the zone could not be deleted: \(error.localizedDescription)")
    }
    for device in own {
      do {
        try device.noteLoss()
      } catch {
        oracle.report(.liveness, "\(device.name) cannot be read: \(error)")
      }
    }
  }
}
