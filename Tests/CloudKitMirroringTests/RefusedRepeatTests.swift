import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Synchronization
import Testing
import WatershedSQLite

@Suite("Batches that were executed without a reply, and are refused when they are repeated")
struct RefusedRepeatTests {
  private static let refusals: [CloudFailure] = [
    .tooLarge, .refused(reason: "The schema has changed."), .overQuota(reason: "It is full."),
  ]

  private func settle(_ phone: ScriptedDevice, _ pad: TestDevice) async throws {
    // A refused change makes the first rounds fail.
    for _ in 0..<3 { _ = try? await phone.mirror.syncNow() }
    try await phone.settle(with: pad)
  }

  @Test("An edit back to the former value stays", arguments: refusals, [1, 2])
  func setBack(failure: CloudFailure, times: Int) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { context in
      _ = context.make("Post", ["title": "before"])
      _ = context.make("Post", ["title": "other"])
    }
    try await settle(phone, pad)
    try await phone.saveWithoutReply { context in
      try context.first("Post", "title", "before").setValue("after", forKey: "title")
      try context.first("Post", "title", "other").setValue("other 2", forKey: "title")
    }
    try phone.save { try $0.first("Post", "title", "after").setValue("before", forKey: "title") }
    phone.refuseBatches(failure, times: times)
    try await settle(phone, pad)
    #expect(try phone.titles() == ["before", "other 2"])
    #expect(try pad.titles() == ["before", "other 2"])
    try await phone.quit()
    try await pad.quit()
  }

  @Test("Where the server has executed none of the batch, no fields or files are looked up")
  func tagsAlone() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("ImageData", ["data": Data(count: 1_000_000)]) }
    try await settle(phone, pad)
    phone.cloud.onModify { _ in throw CloudFailure.busy(reason: "Not now.", retryAfter: nil) }
    try phone.save { try $0.all("ImageData").first?.setValue(Data(count: 900_000), forKey: "data") }
    await #expect(throws: (any Error).self) { try await phone.mirror.syncNow() }
    phone.cloud.forgetCalls()
    phone.refuseBatches(.overQuota(reason: "It is full."))
    try await settle(phone, pad)
    #expect(phone.cloud.calls.contains("lookup of tags"))
    #expect(!phone.cloud.calls.contains("lookup"))
    #expect(try pad.snapshot() == phone.mirror.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("An edit of an object whose creation had no reply stays", arguments: refusals)
  func editedCreation(failure: CloudFailure) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try await settle(phone, pad)
    try await phone.saveWithoutReply { context in
      _ = context.make("Post", ["title": "v1"])
      _ = context.make("Post", ["title": "w1"])
    }
    try phone.save { try $0.first("Post", "title", "v1").setValue("v2", forKey: "title") }
    phone.refuseBatches(failure)
    try await settle(phone, pad)
    #expect(try phone.titles() == ["v2", "w1"])
    #expect(try pad.titles() == ["v2", "w1"])
    try await phone.quit()
    try await pad.quit()
  }

  private func removeAssets(in world: World, of file: String) throws {
    try FileManager.default.removeItem(at: world.folder.appendingPathComponent(file + "_ckAssets"))
  }

  @Test("An edit back to the former value stays where a file of the batch is gone")
  func missingFile() async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try phone.save { _ = $0.make("Post", ["title": "before"]) }
    try await settle(phone, pad)
    try await phone.saveWithoutReply { context in
      try context.first("Post", "title", "before").setValue("after", forKey: "title")
      _ = context.make("ImageData", ["data": Data(count: 1_000_000)])
    }
    try removeAssets(in: world, of: "phone")
    try phone.save { try $0.first("Post", "title", "after").setValue("before", forKey: "title") }
    phone.acceptAll()
    try await settle(phone, pad)
    #expect(try phone.titles() == ["before"])
    #expect(try pad.titles() == ["before"])
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("A backup without the files of its open batch brings no older value back")
  func backupWithoutFiles() async throws {
    let world = try await World()
    var phone = try await ScriptedDevice("phone", in: world)
    let pad = try await world.device("pad")
    try await settle(phone, pad)
    try await phone.saveWithoutReply { context in
      _ = context.make("Post", ["title": "v1"])
      _ = context.make("ImageData", ["data": Data(count: 1_000_000)])
    }
    let backup = try StoreBackup(of: world.folder.appendingPathComponent("phone.sqlite"))
    phone.acceptAll()
    try await settle(phone, pad)
    try phone.save { try $0.first("Post", "title", "v1").setValue("v2", forKey: "title") }
    try await settle(phone, pad)
    try await phone.quit()
    try backup.restore()
    try removeAssets(in: world, of: "phone")
    phone = try await ScriptedDevice("phone", in: world)
    try await settle(phone, pad)
    #expect(try phone.titles() == ["v2"])
    #expect(try pad.titles() == ["v2"])
    try await phone.quit()
    try await pad.quit()
  }
}
