import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("CKSyncEngine")
struct SyncEngineTests {
  /// A device with notes and an engine, which syncs explicitly unless it is created to sync
  /// automatically.
  private struct Device {
    let notes = SyncedNotes()
    let engine: CKSyncEngine

    init(
      _ container: CKContainer,
      state: CKSyncEngine.State.Serialization? = nil,
      automatically: Bool = false
    ) {
      var configuration = CKSyncEngine.Configuration(
        database: container.privateCloudDatabase,
        stateSerialization: state,
        delegate: notes
      )
      configuration.automaticallySync = automatically
      engine = CKSyncEngine(configuration)
    }

    func makeZone() {
      engine.state.add(
        pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: SyncedNotes.zoneID))]
      )
    }

    /// The delegate's events except state updates, whose time is not deterministic.
    var log: [String] { notes.log.filter { $0 != "state" } }
  }

  private func twoDevices() async throws -> (Device, Device, RealService) {
    let service = try await RealService()
    let one = Device(try await service.device("one"))
    let two = Device(try await service.device("two"))
    one.makeZone()
    try await one.engine.sendChanges()
    return (one, two, service)
  }

  @Test("A change of one device reaches another in the documented order of events")
  func events() async throws {
    let service = try await RealService()
    let one = Device(try await service.device("one"))
    let two = Device(try await service.device("two"))
    one.makeZone()
    one.notes.write("a", "first", on: one.engine)
    try await one.engine.sendChanges()
    #expect(
      one.log == [
        "account", "will send (manual)", "sent zones +1 -0 !0", "sent records +1 -0 !0", "did send",
      ]
    )
    #expect(one.engine.state.pendingRecordZoneChanges.isEmpty)
    #expect(one.engine.state.pendingDatabaseChanges.isEmpty)
    #expect(one.notes.record("a")?.recordChangeTag != nil)

    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["a": "first"])
    #expect(
      two.log == [
        "account", "will fetch (manual)", "zones +1 -0", "will fetch notes", "records +1 -0",
        "did fetch notes", "did fetch",
      ]
    )
    two.notes.clearLog()
    try await two.engine.fetchChanges()
    #expect(two.log == ["will fetch (manual)", "did fetch"])
  }

  @Test("Hundreds of records are sent in several batches")
  func hundreds() async throws {
    let (one, two, _) = try await twoDevices()
    one.notes.clearLog()
    for number in 0..<444 { one.notes.write("\(number)", "text \(number)", on: one.engine) }
    try await one.engine.sendChanges()
    #expect(
      one.log == [
        "will send (manual)", "sent records +200 -0 !0", "sent records +200 -0 !0",
        "sent records +44 -0 !0", "did send",
      ]
    )
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == one.notes.texts)
    #expect(two.engine.state.zoneIDsWithUnfetchedServerChanges.isEmpty)
  }

  @Test("Deletions reach the other device, and a deleted zone deletes its records")
  func deletes() async throws {
    let (one, two, _) = try await twoDevices()
    one.notes.write("a", "1", on: one.engine)
    one.notes.write("b", "2", on: one.engine)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    one.notes.remove("a", on: one.engine)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["b": "2"])
    one.notes.write("c", "doomed", on: one.engine)
    one.engine.state.add(pendingDatabaseChanges: [.deleteZone(SyncedNotes.zoneID)])
    try await one.engine.sendChanges()
    #expect(one.engine.state.pendingRecordZoneChanges.isEmpty)
    try await two.engine.fetchChanges()
    #expect(two.notes.texts.isEmpty)
  }

  @Test("The delegate resolves a conflict, and the change is sent with the next send")
  func conflict() async throws {
    let (one, two, _) = try await twoDevices()
    one.notes.write("a", "old", on: one.engine)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    one.notes.write("a", "one's", on: one.engine)
    one.notes.write("b", "innocent", on: one.engine)
    two.notes.write("a", "two's", on: two.engine)
    try await two.engine.sendChanges()
    let error = try #require(
      await #expect(throws: CKError.self) { try await one.engine.sendChanges() }
    )
    #expect(error.code == .partialFailure)
    let partial = error.partialErrorsByItemID?[SyncedNotes.recordID("a")] as? CKError
    #expect(partial?.code == .serverRecordChanged)
    #expect(
      one.engine.state.pendingRecordZoneChanges == [.saveRecord(SyncedNotes.recordID("a"))]
    )
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["a": "one's", "b": "innocent"])
  }

  @Test("A missing zone can be created again by the delegate, and its record is sent next")
  func zoneNotFound() async throws {
    let (one, two, _) = try await twoDevices()
    one.notes.write("a", "old", on: one.engine)
    try await one.engine.sendChanges()
    try await one.engine.database.deleteRecordZone(withID: SyncedNotes.zoneID)
    one.notes.write("a", "new", on: one.engine)
    await #expect(throws: CKError.self) { try await one.engine.sendChanges() }
    #expect(one.notes.record("a") == nil)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["a": "new"])
  }

  @Test("A missing record fails with unknownItem, and the delegate can create it again")
  func unknownItem() async throws {
    let (one, two, _) = try await twoDevices()
    one.notes.write("a", "old", on: one.engine)
    try await one.engine.sendChanges()
    try await one.engine.database.deleteRecord(withID: SyncedNotes.recordID("a"))
    one.notes.write("a", "new", on: one.engine)
    await #expect(throws: CKError.self) { try await one.engine.sendChanges() }
    #expect(one.notes.record("a") == nil)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["a": "new"])
  }

  @Test("A record edited while it is being sent is sent again")
  func writtenMeanwhile() async throws {
    let (one, two, _) = try await twoDevices()
    one.notes.write("a", "early", on: one.engine)
    let notes = one.notes
    one.notes.change { contents in
      contents.meanwhile = { engine in notes.write("a", "late", on: engine) }
    }
    try await one.engine.sendChanges()
    #expect(one.engine.state.pendingRecordZoneChanges.isEmpty)
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["a": "late"])
  }

  @Test("An engine continues from its last state, with its pending changes")
  func restart() async throws {
    let (one, two, service) = try await twoDevices()
    one.notes.write("a", "1", on: one.engine)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges()
    let state = try #require(two.notes.serialization)
    let archive = try JSONEncoder().encode(state)
    let kept = try JSONDecoder().decode(CKSyncEngine.State.Serialization.self, from: archive)
    let again = Device(try await service.device("two"), state: kept)
    try await again.engine.fetchChanges()
    // No account change is reported, and no record is fetched twice.
    #expect(again.log == ["will fetch (manual)", "did fetch"])
  }

  @Test("A pending change survives its engine through the stored state")
  func pendingRestart() async throws {
    let (one, two, service) = try await twoDevices()
    one.notes.write("a", "1", on: one.engine)
    // The next operation reports the state first.
    try await one.engine.fetchChanges()
    let kept = try #require(one.notes.serialization)
    let again = Device(try await service.device("one"), state: kept)
    #expect(
      again.engine.state.pendingRecordZoneChanges == [.saveRecord(SyncedNotes.recordID("a"))]
    )
    again.notes.change { $0.texts = ["a": "1"] }
    try await again.engine.sendChanges()
    try await two.engine.fetchChanges()
    #expect(two.notes.texts == ["a": "1"])
  }

  @Test("Only changes in the scope are sent and fetched")
  func scopes() async throws {
    let (one, two, _) = try await twoDevices()
    let other = CKRecordZone.ID(zoneName: "other")
    one.notes.write("a", "1", on: one.engine)
    one.notes.write("b", "2", on: one.engine)
    one.engine.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: other))])
    try await one.engine.sendChanges(.init(scope: .recordIDs([SyncedNotes.recordID("b")])))
    #expect(
      one.engine.state.pendingRecordZoneChanges == [.saveRecord(SyncedNotes.recordID("a"))]
    )
    #expect(one.engine.state.pendingDatabaseChanges.count == 1)
    try await one.engine.sendChanges()
    try await two.engine.fetchChanges(.init(scope: .zoneIDs([other])))
    #expect(two.notes.texts.isEmpty)
    #expect(two.engine.state.zoneIDsWithUnfetchedServerChanges == [SyncedNotes.zoneID])
    try await two.engine.fetchChanges()
    #expect(two.notes.texts.count == 2)
  }

  @Test("Prioritized zones are fetched first")
  func priorities() async throws {
    let (one, two, _) = try await twoDevices()
    let zones = ["x", "y", "z"].map { CKRecordZone(zoneName: $0) }
    one.engine.state.add(pendingDatabaseChanges: zones.map { .saveZone($0) })
    try await one.engine.sendChanges()
    two.notes.change { $0.prioritized = [zones[2].zoneID, zones[0].zoneID] }
    try await two.engine.fetchChanges()
    let fetched = two.log.filter { $0.hasPrefix("did fetch ") }
    #expect(Array(fetched.prefix(2)) == ["did fetch z", "did fetch x"])
    #expect(fetched.count == 4)
  }

  @Test("An atomic batch with one invalid record saves no record of its zone")
  func atomicity() async throws {
    let (one, two, _) = try await twoDevices()
    two.notes.write("a", "two's", on: two.engine)
    try await two.engine.sendChanges()
    one.notes.change { $0.isAtomic = true }
    one.notes.write("a", "one's", on: one.engine)
    one.notes.write("b", "innocent", on: one.engine)
    let error = await #expect(throws: CKError.self) { try await one.engine.sendChanges() }
    let errors = error?.partialErrorsByItemID?.values.compactMap { ($0 as? CKError)?.code } ?? []
    #expect(Set(errors) == [.serverRecordChanged, .batchRequestFailed])
  }

  @Test("The delegate is asked for untracked changes until it has no more")
  func untracked() async throws {
    let (one, _, _) = try await twoDevices()
    one.engine.state.hasPendingUntrackedChanges = true
    try await one.engine.sendChanges()
    #expect(!one.engine.state.hasPendingUntrackedChanges)
  }

  // MARK: Accounts

  @Test("Without an account the engine does not sync and keeps its pending changes")
  func noAccount() async throws {
    let service = try await RealService()
    let device = Device(try await service.device("one", of: nil))
    device.notes.write("a", "1", on: device.engine)
    let error = await #expect(throws: CKError.self) { try await device.engine.sendChanges() }
    #expect(error?.code == .notAuthenticated)
    #expect(device.engine.state.pendingRecordZoneChanges.count == 1)
    #expect(device.log.isEmpty)
  }

  @Test(
    "Signing in, switching and signing out are reported, and the previous user's state is reset"
  )
  func accounts() async throws {
    let service = try await RealService()
    let container = try await service.device("one")
    let ada = try await container.userRecordID()
    let bobs = try await service.device("bob's", of: "bob")
    let bob = try await bobs.userRecordID()
    let device = Device(container)
    try await device.engine.fetchChanges()
    #expect(device.notes.accountChanges == [.signIn(currentUser: ada)])
    device.notes.write("a", "1", on: device.engine)
    try container.setWebAuthToken(try bobs.client().webAuthToken)
    try await device.engine.fetchChanges()
    #expect(
      device.notes.accountChanges.last == .switchAccounts(previousUser: ada, currentUser: bob)
    )
    #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
    try container.setWebAuthToken(nil)
    await #expect(throws: CKError.self) { try await device.engine.fetchChanges() }
    #expect(device.notes.accountChanges.last == .signOut(previousUser: bob))
    #expect(device.notes.accountChanges.count == 3)
  }

  // MARK: Automatic syncing

  @Test("Engines that sync automatically exchange changes without calls of the app")
  func automatic() async throws {
    let service = try await RealService()
    let one = Device(try await service.device("one"), automatically: true)
    let two = Device(try await service.device("two"), automatically: true)
    one.makeZone()
    one.notes.write("a", "first", on: one.engine)
    await two.notes.wait { $0.texts == ["a": "first"] }
    two.notes.write("a", "second", on: two.engine)
    await one.notes.wait { $0.texts == ["a": "second"] }
    #expect(one.log.contains("will send (scheduled)"))
    #expect(two.log.contains("will fetch (scheduled)"))
    let subscriptions = try await one.engine.database.allSubscriptions()
    #expect(subscriptions.map(\.subscriptionType) == [.database])
  }

  @Test("A subscription that a restored service lost is created again")
  func lostSubscription() async throws {
    let service = try await RealService()
    let device = Device(try await service.device("one"), automatically: true)
    await device.notes.wait { $0.log.contains("did fetch") }
    let database = device.engine.database
    for subscription in try await database.allSubscriptions() {
      _ = try await database.deleteSubscription(withID: subscription.subscriptionID)
    }
    let (created, continuation) = AsyncStream<Void>.makeStream()
    service.intercept { request in
      if request.path.contains("subscriptions/modify") { continuation.yield() }
      return nil
    }
    try await service.service.beginNewIncarnation()
    try await device.engine.fetchChanges()
    // Ends with the request for a subscription.
    for await _ in created { break }
  }

  @Test("An engine checks after a launch whether the service has its subscription")
  func subscriptionAtLaunch() async throws {
    let service = try await RealService()
    let container = try await service.device("one")
    var state = SyncEngineState()
    state.subscriptionID = "lost"
    state.user = try await container.userRecordID().recordName
    let archive = try JSONEncoder().encode(state)
    let kept = try JSONDecoder().decode(CKSyncEngine.State.Serialization.self, from: archive)
    let device = Device(container, state: kept, automatically: true)
    await device.notes.wait { $0.log.contains("did fetch") }
    #expect(try await container.privateCloudDatabase.allSubscriptions().count == 1)
  }

  @Test("An engine that starts without a user syncs after a sign-in")
  func laterSignIn() async throws {
    let service = try await RealService()
    let container = try await service.device("one", of: nil)
    let person = try await service.device("other")
    let device = Device(container, automatically: true)
    device.makeZone()
    device.notes.write("a", "kept", on: device.engine)
    try container.setWebAuthToken(try person.client().webAuthToken)
    await device.notes.wait { $0.records["a"]?.recordChangeTag != nil }
    #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
  }

  @Test("A change that fails while the service is unreachable is sent when it is reachable again")
  func away() async throws {
    let service = try await RealService()
    let device = Device(try await service.device("one"))
    device.makeZone()
    try await device.engine.sendChanges()
    device.notes.write("a", "1", on: device.engine)
    service.isAway = true
    let error = await #expect(throws: CKError.self) { try await device.engine.sendChanges() }
    #expect(error?.code == .networkUnavailable)
    #expect(device.log.suffix(2) == ["sent records +0 -0 !1", "did send"])
    #expect(device.engine.state.pendingRecordZoneChanges.count == 1)
    await #expect(throws: CKError.self) { try await device.engine.fetchChanges() }
    service.isAway = false
    try await device.engine.sendChanges()
    #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
  }

  // MARK: Cancelling

  @Test("A delegate that syncs inside an event handler gets an error instead of a deadlock")
  func reentrance() async throws {
    final class Eager: CKSyncEngineDelegate {
      let error = Mutex<CKError?>(nil)
      func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
        guard case .willFetchChanges = event else { return }
        do {
          try await syncEngine.sendChanges()
        } catch {
          self.error.withLock { $0 = error as? CKError }
        }
        await syncEngine.cancelOperations()
      }
      func nextRecordZoneChangeBatch(
        _ context: CKSyncEngine.SendChangesContext,
        syncEngine: CKSyncEngine
      ) async -> CKSyncEngine.RecordZoneChangeBatch? { nil }
    }
    let service = try await RealService()
    let eager = Eager()
    var configuration = CKSyncEngine.Configuration(
      database: try await service.device("one").privateCloudDatabase,
      stateSerialization: nil,
      delegate: eager
    )
    configuration.automaticallySync = false
    let engine = CKSyncEngine(configuration)
    let error = await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(error?.code == .operationCancelled)
    #expect(eager.error.withLock { $0?.code } == .invalidArguments)
    // After a cancelled operation the next one runs.
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
  }
}
