import CloudKitMirroring
import CloudKitTesting
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization

/// A cloud whose replies a test sets, and which otherwise forwards to the service.
final class ScriptedCloud: MirrorCloud {
  private struct State {
    var calls: [String] = []
    var modify: (@Sendable (CloudBatch) async throws -> [CloudOutcome]?)?
    var lookup: (@Sendable ([String]) async throws -> CloudLookup?)?
    var account: CloudAccount?
    var zoneChanges: (@Sendable (Data?) async throws -> CloudZoneChanges?)?
    var hold: (@Sendable (CloudZoneChanges) async -> Void)?
    var refusals: [String: CloudFailure] = [:]
    var listeners: AsyncStream<ListenerEvent>.Continuation?
  }

  private let base: CloudKitDatabase
  private let state = Mutex(State())

  init(_ container: CKContainer) {
    base = CloudKitDatabase(container: container, scope: .private)
  }

  /// The names of the calls, in order.
  var calls: [String] { state.withLock { $0.calls } }

  /// The numbers of batches in each round: one that a save began may precede the one that a test asks for, and each
  /// other one begins with the feed.
  var batchesOfRounds: [Int] {
    calls.split { $0 == "databaseChanges" }.map { $0.count { $0.hasPrefix("modify") } }
  }

  func forgetCalls() { state.withLock { $0.calls = [] } }

  /// Sets the reply to batches; nil forwards one.
  func onModify(_ body: (@Sendable (CloudBatch) async throws -> [CloudOutcome]?)?) {
    state.withLock { $0.modify = body }
  }

  func onLookup(_ body: (@Sendable ([String]) async throws -> CloudLookup?)?) {
    state.withLock { $0.lookup = body }
  }

  /// Sets the signed-in account for all later requests.
  func setAccount(_ account: CloudAccount?) { state.withLock { $0.account = account } }

  /// Sets the reply to requests for a zone's changes, by their tokens; nil forwards one.
  func onZoneChanges(_ body: (@Sendable (Data?) async throws -> CloudZoneChanges?)?) {
    state.withLock { $0.zoneChanges = body }
  }

  /// Runs a body with each page of a zone before the device gets it.
  func onZonePage(_ body: (@Sendable (CloudZoneChanges) async -> Void)?) {
    state.withLock { $0.hold = body }
  }

  /// Refuses calls of a name, `saveZone` or `saveSubscription`; nil accepts them again.
  func refuse(_ call: String, with failure: CloudFailure?) {
    state.withLock { $0.refusals[call] = failure }
  }

  private func checkRefusal(_ call: String) throws {
    if let failure = state.withLock({ $0.refusals[call] }) { throw failure }
  }

  private func note(_ call: String) { state.withLock { $0.calls.append(call) } }

  func account() async throws -> CloudAccount {
    note("account")
    if let account = state.withLock({ $0.account }) { return account }
    return try await base.account()
  }

  func saveZone(_ zone: String) async throws {
    note("saveZone")
    try checkRefusal("saveZone")
    try await base.saveZone(zone)
  }

  func saveSubscription(_ identifier: String) async throws {
    note("saveSubscription")
    try checkRefusal("saveSubscription")
    try await base.saveSubscription(identifier)
  }

  func databaseChanges(after token: Data?) async throws -> CloudDatabaseChanges {
    note("databaseChanges")
    return try await base.databaseChanges(after: token)
  }

  func zoneChanges(
    _ zone: String,
    after token: Data?,
    limit: Int,
    keys: [String],
    includesDeleted: Bool
  ) async throws -> CloudZoneChanges {
    note("zoneChanges")
    let script = state.withLock { $0.zoneChanges }
    if let page = try await script?(token) { return page }
    let page = try await base.zoneChanges(
      zone,
      after: token,
      limit: limit,
      keys: keys,
      includesDeleted: includesDeleted
    )
    let hold = state.withLock { $0.hold }
    await hold?(page)
    return page
  }

  func modify(_ zone: String, _ batch: CloudBatch) async throws -> [CloudOutcome] {
    note("modify \(batch.operations.count)")
    let script = state.withLock { $0.modify }
    if let outcomes = try await script?(batch) { return outcomes }
    return try await base.modify(zone, batch)
  }

  func lookup(_ zone: String, _ names: [String], keys: [String]) async throws -> CloudLookup {
    note(keys.isEmpty ? "lookup of tags" : "lookup")
    let script = state.withLock { $0.lookup }
    if let found = try await script?(names) { return found }
    return try await base.lookup(zone, names, keys: keys)
  }

  /// What happened to a listener for notifications.
  enum ListenerEvent: Hashable, Sendable {
    case began, ended
  }

  /// Keeps listeners from now on, until they are cancelled; returns what happens to them.
  func keepListening() -> AsyncStream<ListenerEvent> {
    let (events, continuation) = AsyncStream.makeStream(of: ListenerEvent.self)
    state.withLock { $0.listeners = continuation }
    return events
  }

  /// Ends immediately, as if notifications were turned off, unless listeners are kept.
  func notifications() -> AsyncThrowingStream<Void, any Error> {
    note("notifications")
    let listeners = state.withLock { $0.listeners }
    return AsyncThrowingStream { continuation in
      guard let listeners else { return continuation.finish() }
      listeners.yield(.began)
      continuation.onTermination = { _ in listeners.yield(.ended) }
    }
  }
}

/// A store and its mirror without a container, on a scripted cloud.
final class ScriptedDevice: Sendable {
  let cloud: ScriptedCloud
  let mirror: StoreMirror
  /// The faults between the device and the cloud.
  let faults = FaultPlan()
  private let coordinator: NSPersistentStoreCoordinator

  /// The store is the file of the device's name, unless another one is given.
  ///
  /// No device polls in the time of a test, unless it asks for an interval.
  init(
    _ name: String,
    in world: World,
    file: String? = nil,
    effects: Effects = .live,
    limits: ExportBatcher.Limits = .init(),
    pageLimit: Int = 200,
    pollInterval: Double = 86_400,
    isStarted: Bool = true,
    retries: RetryPolicy = .never,
    refusing call: String? = nil,
    with failure: CloudFailure? = nil
  ) async throws {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: world.model)
    try coordinator.addPersistentStore(
      type: .sqlite,
      at: world.folder.appendingPathComponent(file ?? "\(name).sqlite"),
      options: [
        NSMigratePersistentStoresAutomaticallyOption: true,
        NSInferMappingModelAutomaticallyOption: true,
        NSPersistentHistoryTrackingKey: true,
        NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
      ]
    )
    guard let store = coordinator.sqliteStore() else { throw CocoaError(.fileNoSuchFile) }
    let container = try await world.cloud.container(device: name, faults: faults, retries: retries)
    let cloud = ScriptedCloud(container)
    if let call { cloud.refuse(call, with: failure) }
    mirror = try StoreMirror(
      store: store,
      cloud: cloud,
      options: StoreMirror.Options(
        containerIdentifier: TestCloud.defaultContainer,
        limits: limits,
        pageLimit: pageLimit,
        pollInterval: pollInterval
      ),
      effects: effects
    )
    self.cloud = cloud
    self.coordinator = coordinator
    if isStarted { mirror.start() }
  }

  /// Runs the body with a world and a device that has synced.
  static func with(_ body: (World, ScriptedDevice) async throws -> Void) async throws {
    let world = try await World()
    let device = try await ScriptedDevice("phone", in: world)
    try await device.sync()
    do {
      try await body(world, device)
    } catch {
      try await device.quit()
      throw error
    }
    try await device.quit()
  }

  func save(_ body: (NSManagedObjectContext) throws -> Void) throws {
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      try body(context)
      if context.hasChanges { try context.save() }
    }
  }

  func titles() throws -> [String] {
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    return try context.performAndWait {
      try context.all("Post").map { $0.value(forKey: "title") as? String ?? "nil" }.sorted()
    }
  }

  func sync() async throws { try await mirror.waitUntilSynced() }

  var events: [EventMetadata] {
    get throws { try mirror.read { try $0.events() } }
  }

  func quit() async throws {
    await mirror.stopAndFinish()
    for store in coordinator.persistentStores { try coordinator.remove(store) }
  }
}
