import CloudKitMirroring
import CloudKitServer
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization

/// One world: a server, devices of some persons, a network between them, and the oracle that
/// watches.
final class SimulatedWorld: @unchecked Sendable {
  // Unchecked: used by the one thread of a run.
  let plan: SimulationPlan
  let plantedBug: PlantedBug?
  let folder: URL
  let clock = SimulatedClock()
  let scheduler: SimulationScheduler
  let random: SeededRandomness
  let oracle: Oracle
  private(set) var network: SimulatedNetwork
  private(set) lazy var server = SimulatedServer(world: self)
  private(set) var devices: [SimulatedDevice] = []
  private(set) lazy var driver = process("test", person: nil)
  /// Processes that ended, and what frees their memory and files when the run is over.
  var endedProcesses: [(process: SimulatedProcess, free: (@Sendable () async -> Void)?)] = []
  private(set) var timeline: [TimelineEntry] = []
  private(set) var traceDigest = TraceDigest()
  var counts: [String: Int] = [:]
  private var processCount = 0
  /// The newest version of the app that a device of each person has had.
  private var newestVersions: [Int: Int] = [:]
  /// Persons with a device on which an older version of the app followed a newer one.
  var personsWithDowngrade: Set<Int> = []
  /// Virtual seconds that the calm took.
  var calmTime: Double?

  init(plan: SimulationPlan, folder: URL) throws {
    self.plan = plan
    self.folder = folder
    plantedBug = plan.plantedBug.flatMap(PlantedBug.init(rawValue:))
    scheduler = SimulationScheduler(seed: SeedMixing.mix(plan.seed, "order"), clock: clock)
    random = SeededRandomness(seed: SeedMixing.mix(plan.seed, "world"))
    oracle = Oracle(personOf: plan.devices, now: { [clock] in clock.elapsed })
    network = SimulatedNetwork(plan: plan, clock: clock, note: { _, _ in })
    network = SimulatedNetwork(plan: plan, clock: clock) { [weak self] actor, text in
      self?.note(actor, text)
    }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  // MARK: Log

  func note(_ actor: String, _ text: String) {
    let entry = TimelineEntry(time: clock.elapsed, actor: actor, text: text)
    timeline.append(entry)
    traceDigest.add(entry.description)
  }

  /// Takes a final state into the digest, without a line in the timeline.
  func traceState(_ line: String) { traceDigest.add(line) }

  func count(_ name: String) { counts[name, default: 0] += 1 }

  // MARK: Processes and files

  func process(_ name: String, person: Int?) -> SimulatedProcess {
    processCount += 1
    return SimulatedProcess(name: name, number: processCount, scheduler: scheduler)
  }

  /// Copies what a crash leaves: SQLite makes the index of its log again.
  func copyFiles(from source: URL, to target: URL) throws {
    let files = FileManager.default
    try? files.removeItem(at: target)
    try files.copyItem(at: source, to: target)
    let copied = try files.subpathsOfDirectory(atPath: target.path)
    for path in copied where path.hasSuffix("-shm") || path.hasSuffix(".lock") {
      try files.removeItem(at: target.appendingPathComponent(path))
    }
  }

  // MARK: Beginning

  static func person(_ number: Int) -> String { "person\(number)" }

  /// Starts the server, makes the accounts, and launches every device.
  func begin() async throws {
    try await server.start()
    guard let service = server.service else { return }
    apiToken = try await service.bootstrapAPIToken()
    for person in Set(plan.devices).sorted() {
      try await service.createAccount(userName: Self.person(person), password: "secret")
    }
    for (index, person) in plan.devices.enumerated() {
      let device = try await makeDevice(index: index, person: person)
      devices.append(device)
      try launch(device)
    }
  }

  private var apiToken = ""

  func makeDevice(index: Int, person: Int, name: String? = nil) async throws -> SimulatedDevice {
    let place = folder.appendingPathComponent("\(name ?? "device").\(index).0", isDirectory: true)
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    let device = SimulatedDevice(index: index, person: person, folder: place)
    device.webAuthToken = try await token(of: person)
    return device
  }

  func token(of person: Int) async throws -> String? {
    try await server.service?.signIn(
      userName: Self.person(person),
      container: SimulatedServer.container
    )
  }

  /// A way to the service with the rights of a device.
  func cloud(
    _ link: SimulatedNetwork.Link,
    _ effects: Effects,
    token: String?
  ) -> CKContainer {
    CKContainer(
      identifier: SimulatedServer.container,
      configuration: CKContainerConfiguration(
        url: URL(string: "http://server.simulated"),
        containerIdentifiers: [SimulatedServer.container],
        apiToken: apiToken,
        webAuthToken: token
      ),
      transport: SimulatedTransport(network: network, link: link),
      effects: effects,
      clientIdentifier: link.name,
      retries: plan.limits.repeatsRequests ? .interactive : .never
    )
  }

  // MARK: Launching and ending apps

  /// The newest version of the app that a device of the person has had.
  func newestVersion(of person: Int) -> Int {
    newestVersions[person] ?? AppModel.versions.lowerBound
  }

  /// Starts the app: a process, its store, its mirroring.
  func launch(_ device: SimulatedDevice) throws {
    guard !device.isRunning else { return }
    device.launches += 1
    let process = process(device.name, person: device.person)
    process.clockOffset = device.clockOffset
    let effects = process.effects(
      seed: SeedMixing.mix(plan.seed, device.name, device.launches),
      plantedBug: plantedBug
    )
    let cloud = cloud(device.link, effects, token: device.webAuthToken)
    let container = NSPersistentCloudKitContainer(
      name: "store",
      managedObjectModel: AppModel.managed(device.version)
    )
    container.effects = effects
    let description = NSPersistentStoreDescription(url: device.storeURL)
    let options = NSPersistentCloudKitContainerOptions(container: cloud)
    options.limits.operationsPerBatch = plan.limits.operationsPerBatch
    options.limits.recordsPerPage = plan.limits.recordsPerPage
    options.limits.inlineBytes = plan.limits.inlineBytes
    description.cloudKitContainerOptions = options
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    if let failure {
      process.kill()
      endedProcesses.append((process, { try? await container.closeStores() }))
      throw failure
    }
    device.process = process
    device.link.process = process
    device.container = container
    newestVersions[device.person] = max(device.version, newestVersion(of: device.person))
    device.cloud = cloud
    device.contexts = [:]
    if case .unknown = device.loss { try device.noteLoss() }
    process.whenKilled { [self] in
      killed(
        device,
        launchAfter: 1 + 30 * SeededRandomness(seed: UInt64(device.launches)).fraction()
      )
    }
  }

  /// Ends the app as a crash does, and keeps what is on the disk.
  func kill(_ device: SimulatedDevice) {
    guard let container = device.container, let process = device.process else { return }
    process.whenKilled(nil)
    process.kill()
    device.copies += 1
    let next = folder.appendingPathComponent(
      "\(device.name).\(device.index).\(device.copies)",
      isDirectory: true
    )
    do {
      try copyFiles(from: device.folder, to: next)
      device.folder = next
    } catch {
      oracle.report(.liveness, "\(device.name)'s folder could not be copied: \(error)")
    }
    forget(device, container, process)
  }

  private func forget(
    _ device: SimulatedDevice,
    _ container: NSPersistentCloudKitContainer,
    _ process: SimulatedProcess
  ) {
    container.abandonMirrors()
    // The sign-in may have been renewed.
    if device.isSignedIn {
      device.webAuthToken = (try? device.cloud?.client().webAuthToken) ?? device.webAuthToken
    }
    endedProcesses.append((process, { try? await container.closeStores() }))
    device.container = nil
    device.cloud = nil
    device.process = nil
    device.contexts = [:]
    network.breakConnections(of: device.link)
    device.link.process = nil
  }

  /// Ends the app in order.
  func quit(_ device: SimulatedDevice) async throws {
    guard let container = device.container, let process = device.process else { return }
    // A crash from here on would have nothing left to interrupt.
    process.whenKilled(nil)
    process.kill(afterJobs: .max)
    device.link.process = nil
    device.contexts = [:]
    try await container.closeStores()
    process.kill()
    endedProcesses.append((process, nil))
    device.container = nil
    device.cloud = nil
    device.process = nil
  }

  // MARK: End

  /// Lets everything that a kill held back end, so that no task, file or memory of the world
  /// remains.
  func buryAll() {
    network.isOver = true
    clock.end()
    network.breakConnections(of: nil)
    let left = Atomic(endedProcesses.count)
    for (process, free) in endedProcesses {
      process.release()
      process.spawn {
        await free?()
        left.subtract(1, ordering: .relaxed)
      }
    }
    _ = scheduler.run(until: {
      left.load(ordering: .relaxed) == 0 && !self.scheduler.hasReadyJobs
    })
    endedProcesses = []
    try? FileManager.default.removeItem(at: folder)
  }
}

/// One line of what happened in a world.
package struct TimelineEntry: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Virtual seconds since the world began.
  package var time: Double
  package var actor: String
  package var text: String

  package var description: String {
    let seconds = Int(time)
    let clock =
      seconds < 86_400
      ? "" : "day \(seconds / 86_400) "
    let rest = seconds % 86_400
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let fraction = Int((time - Double(seconds)) * 1000)
    let millis = "\(fraction < 100 ? "0" : "")\(fraction < 10 ? "0" : "")\(fraction)"
    return "\(clock)\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60)).\(millis)  "
      + actor.padding(toLength: 8, withPad: " ", startingAt: 0) + text
  }
}
