import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Contents that a migration or another version of the app changes")
struct MigratedContentTests {
  private static func model(_ entities: NSEntityDescription...) -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    model.entities = entities
    return model
  }

  private func values(_ device: TestDevice, _ entity: String, _ key: String) throws -> [String] {
    try device.save { context in
      try context.all(entity).map { $0.value(forKey: key).map { "\($0)" } ?? "nil" }.sorted()
    }
  }

  // MARK: Entities that a mapping model renames

  /// Notes with labels; the second version calls notes papers and says nowhere that they are the same.
  private static func notes(_ version: Int) -> NSManagedObjectModel {
    let note = BlogModel.entity(
      version == 1 ? "Note" : "Paper",
      [BlogModel.attribute("title", .stringAttributeType)]
    )
    let label = BlogModel.entity("Label", [BlogModel.attribute("name", .stringAttributeType)])
    BlogModel.relate(
      (note, "labels", true, .nullifyDeleteRule),
      (label, "notes", true, .nullifyDeleteRule)
    )
    return model(note, label)
  }

  @Test("Links of an entity that a mapping model renamed stay, and later ones are exported")
  func renamedEnd() async throws {
    let world = try await World(model: Self.notes(1))
    let old = try await world.device("phone")
    try old.save { context in
      let label = context.make("Label", ["name": "l"])
      context.make("Note", ["title": "n"]).setValue(NSSet(object: label), forKey: "labels")
    }
    try await old.sync()
    try await old.quit()
    // The migration by objects: the link is in the store, and the metadata of records is renamed.
    let renaming = Self.notes(2)
    for entity in renaming.entities where entity.name == "Paper" {
      entity.renamingIdentifier = "Note"
    }
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: renaming)
    let store = try coordinator.addPersistentStore(
      type: .sqlite,
      at: old.storeURL,
      options: [
        NSPersistentHistoryTrackingKey: true, NSMigratePersistentStoresAutomaticallyOption: true,
        NSInferMappingModelAutomaticallyOption: true,
      ]
    )
    try coordinator.remove(store)
    try SQLiteConnection(path: old.storeURL.path).execute(
      """
      UPDATE WSMIRROR_EDGE SET FIRSTENTITY = REPLACE(FIRSTENTITY, 'Paper', 'Note'),
        SECONDENTITY = REPLACE(SECONDENTITY, 'Paper', 'Note');
      """
    )
    let phone = try await world.device("phone", model: Self.notes(2))
    try phone.save { context in
      let paper = context.make("Paper", ["title": "new"])
      paper.setValue(NSSet(array: try context.all("Label")), forKey: "labels")
    }
    try await phone.sync()
    let status = try #require(try phone.container.mirroringStatus().first)
    #expect(status.pendingCount == 0)
    let links = try phone.save { context in
      (try context.all("Label").first?.value(forKey: "notes") as? NSSet)?.count
    }
    #expect(links == 2)
    try await phone.quit()
  }

  // MARK: Lost files

  private static func photos(hasTitle: Bool) -> NSManagedObjectModel {
    let photo = BlogModel.attribute("photo", .binaryDataAttributeType) {
      $0.allowsExternalBinaryDataStorage = true
    }
    let title = BlogModel.attribute("title", .stringAttributeType)
    return model(BlogModel.entity("Picture", hasTitle ? [photo, title] : [photo]))
  }

  @Test("A store that lost the files of its large values removes them nowhere, and gets them back")
  func lostFiles() async throws {
    let world = try await World(model: Self.photos(hasTitle: false))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
    try old.save { _ = $0.make("Picture", ["photo": bytes]) }
    try await world.settle(old, pad)
    try await old.quit()
    let folder = old.storeURL.deletingLastPathComponent().appendingPathComponent(".phone_SUPPORT")
    #expect(FileManager.default.fileExists(atPath: folder.path))
    try FileManager.default.removeItem(at: folder)
    let phone = try await world.device("phone", model: Self.photos(hasTitle: true))
    try await world.settle(phone, pad, phone)
    for device in [phone, pad] {
      let photo = try device.save { try $0.all("Picture").first?.value(forKey: "photo") as? Data }
      #expect(photo == bytes)
      try await device.quit()
    }
  }

  // MARK: Removed values

  private static func items() -> NSManagedObjectModel {
    model(
      BlogModel.entity(
        "Item",
        [
          BlogModel.attribute("name", .stringAttributeType),
          BlogModel.attribute("rating", .integer64AttributeType) { $0.defaultValue = 3 },
        ]
      )
    )
  }

  @Test("An attribute with a default that is set to nil is nil on every device")
  func removedValue() async throws {
    try await World.with("phone", "pad", model: Self.items()) { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Item", ["name": "i", "rating": 5]) }
      try await world.settle(phone, pad)
      try phone.save { try $0.all("Item").first?.setValue(nil, forKey: "rating") }
      try await world.settle(phone, pad)
      for device in devices { #expect(try values(device, "Item", "rating") == ["nil"]) }
      try await world.deleteZone()
      try await world.settle(pad, phone)
      for device in devices { #expect(try values(device, "Item", "rating") == ["nil"]) }
    }
  }

  private static func colours(_ version: Int) -> NSManagedObjectModel {
    let note = BlogModel.entity("Note", [BlogModel.attribute("title", .stringAttributeType)])
    if version == 2 {
      note.properties += [BlogModel.attribute("colour", .stringAttributeType)]
    }
    return model(note)
  }

  @Test("A zone that an older version of the app makes again loses no value of the newer one")
  func zoneOfOlderVersion() async throws {
    let world = try await World(model: Self.colours(1))
    let phone = try await world.device("phone")
    let pad = try await world.device("pad", model: Self.colours(2))
    try pad.save { context in
      for number in 0..<3 {
        _ = context.make("Note", ["title": "note \(number)", "colour": "red"])
      }
    }
    try await world.settle(pad, phone)
    try await world.deleteZone()
    try await phone.sync()
    try await world.settle(phone, pad)
    #expect(try values(pad, "Note", "colour") == ["red", "red", "red"])
    #expect(try pad.container.recoveryEntries().isEmpty)
    let fresh = try await world.device("fresh", model: Self.colours(2))
    try await fresh.sync()
    #expect(try values(fresh, "Note", "colour") == ["red", "red", "red"])
    for device in [phone, pad, fresh] { try await device.quit() }
  }
}
