import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("The files of batches beside stores")
struct BatchFileTests {
  @Test("A store that is opened leaves the files of a store whose name has another extension")
  func extensions() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world, file: "A.sqlite")
    try await phone.sync()
    phone.cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: 0) }
    try phone.save { _ = $0.make("ImageData", ["data": Data(count: 1_000_000)]) }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    let open = try #require(try phone.mirror.read { try $0.openBatch() })
    let files = try CloudBatch(encoded: open.payload).files.map(phone.mirror.context.assets.path)
    #expect(files.count == 1)
    let other = try await ScriptedDevice("pad", in: world, file: "A.db")
    for file in files { #expect(FileManager.default.fileExists(atPath: file)) }
    phone.cloud.onModify(nil)
    // A round that began before ends with the former refusal.
    _ = try? await phone.mirror.syncNow()
    try await phone.sync()
    try await other.sync()
    #expect(try phone.mirror.snapshot() == other.mirror.snapshot())
    try await other.quit()
    try await phone.quit()
  }

  @Test("A store that is opened removes the files that an earlier launch of it left")
  func leftFiles() async throws {
    let world = try await World()
    var phone = try await ScriptedDevice("phone", in: world)
    let assets = phone.mirror.context.assets
    let left = assets.path(try assets.write(Data(count: 10)))
    try await phone.sync()
    try await phone.quit()
    phone = try await ScriptedDevice("phone", in: world)
    #expect(!FileManager.default.fileExists(atPath: left))
    try await phone.quit()
  }
}
