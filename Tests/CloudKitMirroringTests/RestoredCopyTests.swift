import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

/// A store that is restored from a backup from before its objects were sent.
@Suite("A backup from before the first upload")
struct RestoredCopyTests {
  /// What the history of the store has of the objects' insertions.
  enum Insertion: CaseIterable {
    /// They were saved after the store had been mirrored.
    case mirrored
    /// They were saved before it was mirrored.
    case older
    /// They were saved before it was mirrored, and the history was deleted.
    case unknown
  }

  private static func save(
    at url: URL,
    _ world: World,
    _ body: (NSManagedObjectContext) throws -> Void
  ) throws {
    try editStore(at: url, world.model) { context in
      try body(context)
      try context.save()
    }
  }

  private static func copy(_ source: URL, to target: URL) throws {
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: target.path + suffix)
      if FileManager.default.fileExists(atPath: source.path + suffix) {
        try FileManager.default.copyItem(atPath: source.path + suffix, toPath: target.path + suffix)
      }
    }
  }

  /// Runs the body with a device whose store is then replaced with the backup, and with another device
  /// that has what the first one had sent before.
  private func with(
    _ insertion: Insertion,
    beforeRestoring: (World, TestDevice, TestDevice) async throws -> Void = { _, _, _ in },
    inCopy: (World, URL) throws -> Void = { _, _ in },
    _ body: (World, TestDevice, TestDevice) async throws -> Void
  ) async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    let url = world.folder.appendingPathComponent("phone.sqlite")
    let backup = world.folder.appendingPathComponent("backup.sqlite")
    if insertion == .mirrored {
      let phone = try await world.device("phone")
      try await phone.sync()
      try await phone.quit()
    }
    try Self.save(at: url, world) { context in
      let tag = context.make("Tag", ["name": "t"])
      let post = context.make("Post", ["title": "a", "content": "old"])
      post.setValue(NSSet(object: tag), forKey: "tags")
      context.make("Attachment", ["name": "file"]).setValue(post, forKey: "post")
    }
    if insertion == .unknown {
      try SQLiteConnection(path: url.path).execute("DELETE FROM ACHANGE; DELETE FROM ATRANSACTION;")
    }
    try Self.copy(url, to: backup)
    var phone = try await world.device("phone")
    try await world.settle(phone, pad)
    #expect(try pad.titles() == ["a"])
    try await beforeRestoring(world, phone, pad)
    try await phone.quit()
    try Self.copy(backup, to: url)
    try inCopy(world, url)
    phone = try await world.device("phone")
    try await world.settle(phone, pad)
    try await body(world, phone, pad)
    #expect(try phone.snapshot() == pad.snapshot())
    let status = try #require(try phone.container.mirroringStatus().first)
    #expect(status.pendingCount == 0)
    for device in [phone, pad] { try await device.quit() }
  }

  @Test(
    "The objects and links of a restored copy are those that the original sent",
    arguments: Insertion.allCases
  )
  func same(insertion: Insertion) async throws {
    try await with(insertion) { _, phone, pad in
      for device in [phone, pad] {
        #expect(try device.titles() == ["a"])
        let counts = try device.save { context in
          try ["Tag", "Attachment"].map { try context.all($0).count }
        }
        #expect(counts == [1, 1])
        let tags = try device.save { context in
          (try context.all("Post").first?.value(forKey: "tags") as? NSSet)?.count
        }
        #expect(tags == 1)
      }
    }
  }

  @Test("Edits made after the copy survive its first import", arguments: Insertion.allCases)
  func edited(insertion: Insertion) async throws {
    try await with(
      insertion,
      beforeRestoring: { world, phone, pad in
        try pad.save { try $0.first("Post", "title", "a").setValue("new", forKey: "content") }
        try await world.settle(pad, phone)
      }
    ) { _, phone, pad in
      for device in [phone, pad] {
        #expect(try device.titles() == ["a"])
        let contents = try device.save { context in
          try context.all("Post").map { $0.value(forKey: "content") as? String }
        }
        #expect(contents == ["new"])
      }
    }
  }

  @Test(
    "A deletion made after the copy is applied, and the object is kept for recovery",
    arguments: Insertion.allCases
  )
  func deleted(insertion: Insertion) async throws {
    try await with(
      insertion,
      beforeRestoring: { world, phone, pad in
        try pad.save { context in context.delete(try context.first("Post", "title", "a")) }
        try await world.settle(pad, phone)
      }
    ) { _, phone, pad in
      let found = try phone.titles() + pad.titles()
      #expect(found.isEmpty)
      let entries = try phone.container.recoveryEntries()
      #expect(entries.contains { $0.entityName == "Post" })
    }
  }

  /// A model that adds an attribute with a default, and renames an attribute and an entity.
  private static func newerModel() throws -> NSManagedObjectModel {
    let model = BlogModel.make()
    let post = try #require(model.entitiesByName["Post"])
    let priority = BlogModel.attribute("priority", .integer64AttributeType) {
      $0.isOptional = false
      $0.defaultValue = 0
    }
    post.properties.append(priority)
    let attachment = try #require(model.entitiesByName["Attachment"])
    attachment.attributesByName["name"]?.renamingIdentifier = "name"
    attachment.attributesByName["name"]?.name = "label"
    let tag = try #require(model.entitiesByName["Tag"])
    tag.renamingIdentifier = "Tag"
    tag.name = "Label"
    return model
  }

  @Test(
    "A restored copy's objects are those that were sent also under a newer version of the model",
    arguments: Insertion.allCases
  )
  func newerVersion(insertion: Insertion) async throws {
    let world = try await World()
    let url = world.folder.appendingPathComponent("phone.sqlite")
    let backup = world.folder.appendingPathComponent("backup.sqlite")
    var phone = try await world.device("phone")
    if insertion == .mirrored { try await phone.sync() }
    try await phone.quit()
    if insertion != .mirrored { try FileManager.default.removeItem(at: url) }
    try Self.save(at: url, world) { context in
      let post = context.make("Post", ["title": "a", "content": "old"])
      post.setValue(NSSet(object: context.make("Tag", ["name": "t"])), forKey: "tags")
      context.make("Attachment", ["name": "file"]).setValue(post, forKey: "post")
    }
    if insertion == .unknown {
      try SQLiteConnection(path: url.path).execute("DELETE FROM ACHANGE; DELETE FROM ATRANSACTION;")
    }
    try Self.copy(url, to: backup)
    phone = try await world.device("phone")
    try await phone.sync()
    try await phone.quit()
    try Self.copy(backup, to: url)
    phone = try await world.device("phone", model: Self.newerModel())
    try await phone.sync()
    let counts = try phone.save { context in
      try ["Post", "Label", "Attachment"].map { try context.all($0).count }
    }
    #expect(counts == [1, 1, 1])
    let status = try #require(try phone.container.mirroringStatus().first)
    #expect(status.parked.isEmpty)
    try await phone.quit()
  }

  @Test("An object that is made in a restored copy is not one that was made in the original")
  func others() async throws {
    try await with(
      .mirrored,
      beforeRestoring: { world, phone, pad in
        try phone.save { _ = $0.make("Post", ["title": "original"]) }
        try await world.settle(phone, pad)
      },
      inCopy: { world, url in
        // A process without mirroring gives the same key, in a transaction of the same number.
        try Self.save(at: url, world) { _ = $0.make("Post", ["title": "copy"]) }
      }
    ) { _, phone, pad in
      for device in [phone, pad] {
        let found = try device.titles()
        #expect(found == ["a", "copy", "original"])
      }
    }
  }
}
