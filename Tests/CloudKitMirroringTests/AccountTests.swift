import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Accounts with which a store cannot be mirrored")
struct AccountTests {
  private func reason(of phone: ScriptedDevice) async throws -> String {
    phone.mirror.accountMayHaveChanged()
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    let error = try #require(try phone.mirror.status().lastError) as NSError
    return error.localizedFailureReason ?? ""
  }

  @Test(
    "A refused token is reported with its container, and not as a missing account"
  )
  func refusedToken() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    phone.cloud.setAccount(.none(reason: "The API token is not known."))
    let reason = try await reason(of: phone)
    #expect(reason.contains("The API token is not known."))
    #expect(reason.contains(TestCloud.defaultContainer))
    try await phone.quit()
  }

  @Test("A store loaded with another container is distinguished from another user's store")
  func otherContainer() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    try phone.mirror.write(MirrorAuthor.setup) { session in
      try session.metadata.setMeta(.userRecordName, .text("_former"))
      try session.metadata.setMeta(.containerIdentifier, .text("iCloud.former"))
    }
    let reason = try await reason(of: phone)
    #expect(reason.contains("iCloud.former"))
    #expect(reason.contains(TestCloud.defaultContainer))
    try await phone.quit()
  }

  /// Syncs a device until it listens, and returns what happens to its listeners from then on.
  private func listen(
    _ device: ScriptedDevice
  ) async throws -> AsyncStream<ScriptedCloud.ListenerEvent>.Iterator {
    try await device.sync()
    var events = device.cloud.keepListening().makeAsyncIterator()
    try await device.sync()
    #expect(await events.next() == .began)
    return events
  }

  @Test("A listener whose channel belongs to a former user is replaced when the account changes")
  func listener() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    var events = try await listen(phone)
    phone.mirror.accountMayHaveChanged()
    try await phone.sync()
    // The next set-up does not wait for the end of the former listener.
    let next = [await events.next(), await events.next()]
    #expect(next.contains(.began))
    #expect(next.contains(.ended))
    try await phone.quit()
  }

  @Test("No listener is started while no user is signed in")
  func noListenerWithoutUser() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    var events = try await listen(phone)
    phone.cloud.setAccount(.none(reason: "Signed out."))
    phone.mirror.accountMayHaveChanged()
    #expect(await events.next() == .ended)
    phone.cloud.forgetCalls()
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    #expect(!phone.cloud.calls.contains("notifications"))
    phone.cloud.setAccount(nil)
    phone.mirror.accountMayHaveChanged()
    try await phone.sync()
    #expect(await events.next() == .began)
    try await phone.quit()
  }

  @Test(
    "Work begun for one user writes nothing to the next user's database, also without an event"
  )
  func anotherUser() async throws {
    let world = try await World()
    let container = try await world.cloud.container(for: "ada", device: "phone")
    let database = CloudKitDatabase(container: container, scope: .private)
    _ = try await database.account()
    try await database.saveZone(MirrorNames.zone)
    _ = try await world.cloud.container(for: "bob", device: "other")
    let token = try await world.cloud.service.signIn(
      userName: "bob",
      container: TestCloud.defaultContainer
    )
    try container.setWebAuthToken(token)
    let batch = CloudBatch(
      device: "d",
      sequence: 1,
      operations: [CloudOperation(.create, name: "r", recordType: "CD_Post")]
    )
    for body in [
      { _ = try await database.modify(MirrorNames.zone, batch) },
      { try await database.saveZone(MirrorNames.zone) },
    ] {
      let failure = await #expect(throws: CloudFailure.self) { try await body() }
      guard case .accountChanged? = failure else {
        Issue.record("\(String(describing: failure))")
        continue
      }
    }
    let bobs = CloudKitDatabase(container: container, scope: .private)
    _ = try await bobs.account()
    #expect(try await bobs.databaseChanges(after: nil).changedZones.isEmpty)
  }

  @Test("After a request that may have been another user's, the account is checked before the next")
  func askedAgain() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    phone.cloud.onModify { _ in throw CloudFailure.accountChanged(reason: "test") }
    phone.cloud.forgetCalls()
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    await #expect(throws: CloudFailure.self) { try await phone.mirror.syncNow() }
    phone.cloud.onModify(nil)
    try await phone.sync()
    let calls = phone.cloud.calls.drop { !$0.hasPrefix("modify") }
    let next = calls.dropFirst().first { $0 == "account" || $0.hasPrefix("modify") }
    #expect(next == "account")
    #expect(calls.contains { $0.hasPrefix("modify") })
    try await phone.quit()
  }

  @Test("An open batch is not sent to a user who was found while a missing zone was handled")
  func anotherUserWhileAZoneIsMissing() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    let cloud = phone.cloud
    cloud.onModify { _ in
      cloud.setAccount(.available(userRecordName: "_other"))
      throw CloudFailure.zoneMissing
    }
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    #expect(cloud.calls.contains { $0.hasPrefix("modify") })
    cloud.onModify { _ in throw CloudFailure.unreachable(reason: "test") }
    cloud.forgetCalls()
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    #expect(cloud.calls.contains("account"))
    #expect(!cloud.calls.contains { $0.hasPrefix("modify") })
    cloud.setAccount(nil)
    cloud.onModify(nil)
    try await phone.sync()
    #expect(try phone.mirror.read { try $0.openBatch() } == nil)
    try await phone.quit()
  }
}
