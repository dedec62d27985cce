import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Values whose files are missing beside the store")
struct MissingFileTests {
  private static func image(_ seed: Int) -> Data {
    Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) })
  }

  /// Photos with an image in a file; the second version adds an attribute.
  private static func model(_ version: Int) -> NSManagedObjectModel {
    let photo = BlogModel.entity(
      "Photo",
      [
        BlogModel.attribute("title", .stringAttributeType),
        BlogModel.attribute("image", .binaryDataAttributeType) {
          $0.allowsExternalBinaryDataStorage = true
        },
      ]
    )
    if version == 2 {
      photo.properties += [BlogModel.attribute("place", .stringAttributeType)]
    }
    let model = NSManagedObjectModel()
    model.entities = [photo]
    return model
  }

  /// Two devices with one photo.
  private func withPhoto(
    _ body: (World, _ phone: TestDevice, _ pad: TestDevice) async throws -> Void
  ) async throws {
    try await World.with("phone", "pad", model: Self.model(1)) { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Photo", ["title": "a", "image": Self.image(1)]) }
      try await world.settle(phone, pad)
      try await body(world, phone, pad)
    }
  }

  /// Two devices with one photo; the first has quit, and the files beside its store are gone.
  private func withoutFiles(
    _ body: (World, _ phone: TestDevice, _ pad: TestDevice) async throws -> Void
  ) async throws {
    try await withPhoto { world, phone, pad in
      try await phone.quit()
      try removeFiles(of: phone)
      try await body(world, phone, pad)
    }
  }

  private func removeFiles(of device: TestDevice) throws {
    let name = device.storeURL.deletingPathExtension().lastPathComponent
    try FileManager.default.removeItem(
      at: device.storeURL.deletingLastPathComponent().appendingPathComponent(".\(name)_SUPPORT")
    )
  }

  private func images(_ device: TestDevice) throws -> [Data?] {
    try device.save { try $0.all("Photo").map { $0.value(forKey: "image") as? Data } }
  }

  private func expectImage(_ seed: Int, _ devices: TestDevice...) throws {
    // Compared outside the expectation, which would print all bytes.
    for device in devices {
      let isKept = try images(device) == [Self.image(seed)]
      #expect(isKept, "\(device.name)")
    }
  }

  @Test("The comparison for a new model removes no value, and the server's copy brings it back")
  func newModel() async throws {
    try await withoutFiles { world, _, pad in
      let phone = try await world.device("phone", model: Self.model(2))
      try await world.settle(phone, pad, phone)
      try expectImage(1, phone, pad)
      try await phone.quit()
    }
  }

  @Test("A zone that was lost brings back a value that no device has edited")
  func lostZone() async throws {
    try await withoutFiles { world, phone, pad in
      try await world.deleteZone()
      try await pad.sync()
      try phone.launch()
      try await world.settle(phone, pad, phone)
      try expectImage(1, phone, pad)
    }
  }

  @Test("A migration by objects that could not read the file of a value removes it nowhere")
  func migratedByObjects() async throws {
    try await withoutFiles { world, old, pad in
      // What such a migration writes for a value that reads as nil.
      try SQLiteConnection(path: old.storeURL.path).execute("UPDATE ZPHOTO SET ZIMAGE = NULL")
      let phone = try await world.device("phone", model: Self.model(2))
      try await world.settle(phone, pad, phone)
      try expectImage(1, phone, pad)
      try await phone.quit()
    }
  }

  @Test("The comparison after a gap in the history removes no value")
  func historyGap() async throws {
    try await withoutFiles { world, phone, pad in
      try phone.editElsewhere(Self.model(1)) { context in
        try context.first("Photo", "title", "a").setValue("b", forKey: "title")
        try context.save()
        try context.execute(
          NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        )
      }
      try phone.launch()
      try await world.settle(phone, pad, phone)
      try expectImage(1, phone, pad)
      let titles = try pad.save { try $0.all("Photo").map { $0.value(forKey: "title") as? String } }
      #expect(titles == ["b"])
    }
  }

  private func folder(of device: TestDevice) -> URL {
    let name = device.storeURL.deletingPathExtension().lastPathComponent
    return device.storeURL.deletingLastPathComponent().appendingPathComponent(".\(name)_SUPPORT")
  }

  /// The phone has an edit that was not sent, and is launched without the folder of its files.
  private func withUnsentEdit(
    _ edit: (NSManagedObjectContext) throws -> Void,
    _ body: (World, _ phone: TestDevice, _ pad: TestDevice, _ moved: URL) async throws -> Void
  ) async throws {
    try await withPhoto { world, phone, pad in
      phone.faults.isOnline = false
      try phone.save(edit)
      try await phone.quit()
      let moved = world.folder.appendingPathComponent("moved")
      try FileManager.default.moveItem(at: folder(of: phone), to: moved)
      phone.faults.isOnline = true
      try phone.launch()
      try await world.settle(phone, pad, phone)
      try await body(world, phone, pad, moved)
    }
  }

  private func bringBack(_ moved: URL, to phone: TestDevice) async throws {
    try await phone.quit()
    try? FileManager.default.removeItem(at: folder(of: phone))
    try FileManager.default.moveItem(at: moved, to: folder(of: phone))
    try phone.launch()
  }

  @Test(
    "An edit whose file is missing for a while is sent once it is back",
    arguments: [false, true]
  )
  func returnedFile(hasOtherEdit: Bool) async throws {
    try await withUnsentEdit { context in
      let photo = try context.first("Photo", "title", "a")
      photo.setValue(Self.image(2), forKey: "image")
      if hasOtherEdit { photo.setValue("b", forKey: "title") }
    } _: { world, phone, pad, moved in
      try expectImage(1, pad)
      try await bringBack(moved, to: phone)
      try await world.settle(phone, pad)
      try expectImage(2, phone, pad)
      let titles = try pad.save { try $0.all("Photo").map { $0.value(forKey: "title") as? String } }
      #expect(titles == [hasOtherEdit ? "b" : "a"])
    }
  }

  @Test("A new object's value whose file is missing for a while is sent once it is back")
  func returnedFileOfNewObject() async throws {
    try await withUnsentEdit { context in
      try context.all("Photo").forEach(context.delete)
      _ = context.make("Photo", ["title": "new", "image": Self.image(2)])
    } _: { world, phone, pad, moved in
      try await bringBack(moved, to: phone)
      try await world.settle(phone, pad)
      try expectImage(2, phone, pad)
    }
  }

  @Test("Another device's edit replaces one whose file is lost")
  func lostEdit() async throws {
    try await withUnsentEdit {
      try $0.first("Photo", "title", "a").setValue(Self.image(2), forKey: "image")
    } _: { world, phone, pad, _ in
      try pad.save {
        try $0.first("Photo", "title", "a").setValue(Self.image(3), forKey: "image")
      }
      try await world.settle(pad, phone)
      try expectImage(3, phone, pad)
    }
  }

  @Test("A value that the app sets to nil is removed on all devices")
  func removed() async throws {
    try await withPhoto { world, phone, pad in
      try phone.save { try $0.first("Photo", "title", "a").setValue(nil, forKey: "image") }
      try await world.settle(phone, pad)
      for device in [phone, pad] {
        let images = try images(device)
        #expect(images == [nil])
      }
    }
  }
}
