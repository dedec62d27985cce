import CloudKitMirroring
import CloudKitTesting
import OpenCloudKit
import OpenCoreData
import Testing

@Suite("Requests with batches that the client repeats, and replies of something on the way")
struct RepeatedRequestTests {
  /// The first attempt is executed and its reply lost; the second one, of the same call, gets this status.
  ///
  /// Nothing is read, and no other batch taken, until the test says otherwise.
  private func saveRepeatedly(
    _ phone: ScriptedDevice,
    status: Int,
    _ body: (NSManagedObjectContext) throws -> Void
  ) async throws {
    phone.cloud.onModify { [cloud = phone.cloud, faults = phone.faults] _ in
      faults.add(.loseReply, to: "records/modify")
      faults.add(.fail(status: status), to: "records/modify")
      faults.add(.loseRequest, to: "changes", count: .max)
      cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
      return nil
    }
    try phone.save(body)
    // It has sent the batch, and fails if it reads after that.
    _ = try? await phone.mirror.syncNow()
  }

  private func repeating(_ name: String, in world: World) async throws -> ScriptedDevice {
    let retries = RetryPolicy(attempts: 3, firstDelay: 0, longestDelay: 0)
    return try await ScriptedDevice(name, in: world, retries: retries)
  }

  @Test(
    "A value that is set back stays, where the client repeated an executed batch and it was refused"
  )
  func setBack() async throws {
    let world = try await World()
    let phone = try await repeating("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("Post", ["title": "before"]) }
    try await phone.settle(with: pad)
    try await saveRepeatedly(phone, status: 413) {
      try $0.first("Post", "title", "before").setValue("after", forKey: "title")
    }
    try phone.save { try $0.first("Post", "title", "after").setValue("before", forKey: "title") }
    phone.acceptAll()
    try await phone.settle(with: pad)
    #expect(try phone.titles() == ["before"])
    #expect(try pad.titles() == ["before"])
    try await phone.quit()
    try await pad.quit()
  }

  @Test("A page with a status of refusal parks no change", arguments: [400, 403, 404, 409])
  func page(status: Int) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    phone.faults.add(.fail(status: status), to: "records/modify", count: .max)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    #expect(try phone.mirror.read { try $0.openBatch() } != nil)
    #expect(try phone.mirror.status().parked == [])
    phone.acceptAll()
    try await phone.sync()
    #expect(try phone.mirror.read { try $0.openBatch() } == nil)
    try await phone.quit()
  }
}
