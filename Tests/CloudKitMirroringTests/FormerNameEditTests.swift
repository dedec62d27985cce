import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Edits of an attribute that the newer of two versions of an app renames")
struct FormerNameEditTests {
  private static func model(_ version: Int) -> NSManagedObjectModel {
    let name = BlogModel.attribute(version == 1 ? "title" : "headline", .stringAttributeType) {
      if version == 2 { $0.renamingIdentifier = "title" }
    }
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity("Post", [name, BlogModel.attribute("note", .stringAttributeType)])
    ]
    return model
  }

  /// Devices with the newer version, `phone` and `watch`, and one with the former version.
  private struct Devices {
    let world: World
    let phone: ScriptedDevice
    let watch: ScriptedDevice
    let pad: TestDevice

    init() async throws {
      world = try await World(model: FormerNameEditTests.model(2))
      pad = try await world.device("pad", model: FormerNameEditTests.model(1))
      try pad.save { context in
        _ = context.make("Post", ["title": "a", "note": "a"])
      }
      try await pad.sync()
      phone = try await ScriptedDevice("phone", in: world)
      watch = try await ScriptedDevice("watch", in: world)
      try await settle()
    }

    func settle() async throws {
      for _ in 0..<3 {
        for device in [phone, watch] { try await device.sync() }
        try await pad.sync()
      }
    }

    func edit(_ device: ScriptedDevice, _ property: String, _ value: String) throws {
      try device.save { try $0.all("Post").first?.setValue(value, forKey: property) }
    }

    func editPad(_ property: String, _ value: String) throws {
      try pad.save { try $0.all("Post").first?.setValue(value, forKey: property) }
    }

    /// The phone takes an edit by the former version, and has still to send it under the present name.
    func takeFormerEdit() async throws {
      try editPad("title", "b")
      try await pad.sync()
      try await phone.importOnly()
      #expect(try values() == ["b", "a", "b"])
    }

    func values(_ property: String = "headline") throws -> [String] {
      var values: [String] = []
      func read(_ name: String, _ context: NSManagedObjectContext) throws {
        values.append(try context.all("Post").first?.value(forKey: name) as? String ?? "nil")
      }
      for device in [phone, watch] { try device.save { try read(property, $0) } }
      try pad.save { try read(property == "headline" ? "title" : property, $0) }
      return values
    }

    func quit() async throws {
      for device in [phone, watch] { try await device.quit() }
      try await pad.quit()
    }
  }

  @Test(
    "The edit of a former version that a device has taken is no edit of the device's own",
    arguments: [false, true]
  )
  func takenEdit(isEditedAgain: Bool) async throws {
    let all = try await Devices()
    try await all.takeFormerEdit()
    try await all.watch.sync()
    try all.edit(all.watch, "headline", "c")
    try await all.watch.sync()
    if isEditedAgain {
      try await all.pad.sync()
      try all.editPad("title", "d")
      try await all.pad.sync()
    }
    all.phone.acceptAll()
    try await all.settle()
    let last = isEditedAgain ? "d" : "c"
    #expect(try all.values() == [last, last, last])
    try await all.quit()
  }

  @Test(
    "The last of two edits that a device has not read, one by either version, is taken",
    arguments: [false, true]
  )
  func bothEdited(hasTakenEarlier: Bool) async throws {
    let all = try await Devices()
    if hasTakenEarlier { try await all.takeFormerEdit() }
    try await all.watch.sync()
    try all.edit(all.watch, "headline", "c")
    try await all.watch.sync()
    try await all.pad.sync()
    try all.editPad("title", "d")
    try await all.pad.sync()
    // The watch, which has read both, is away.
    _ = try? await all.phone.mirror.syncNow()
    #expect(try all.values() == ["d", "c", "d"])
    all.phone.acceptAll()
    try await all.settle()
    #expect(try all.values() == ["d", "d", "d"])
    try await all.quit()
  }

  @Test("A value that was taken from a former field stays where another property is edited")
  func otherEdit() async throws {
    let all = try await Devices()
    try all.editPad("title", "b")
    try await all.pad.sync()
    try await all.phone.importOnly()
    try all.editPad("note", "c")
    try await all.pad.sync()
    try await all.phone.importOnly()
    #expect(try all.values() == ["b", "a", "b"])
    try all.edit(all.phone, "note", "d")
    all.phone.acceptAll()
    try await all.settle()
    #expect(try all.values() == ["b", "b", "b"])
    #expect(try all.values("note") == ["d", "d", "d"])
    try await all.quit()
  }

  @Test(
    "A value that is set back after a former version's edit is kept where another device's replaces it"
  )
  func setBack() async throws {
    let all = try await Devices()
    try all.editPad("title", "b")
    try await all.pad.sync()
    // It has still to send the value under the present name.
    try await all.phone.importOnly()
    try all.edit(all.phone, "headline", "a")
    try await all.watch.sync()
    try all.edit(all.watch, "headline", "c")
    try await all.watch.sync()
    all.phone.acceptAll()
    try await all.settle()
    let values = try all.values()
    #expect(Set(values).count == 1)
    let kept = try all.phone.mirror.read { try $0.recoveredEdits() }
    #expect(values[0] == "a" || kept.contains { $0.fields["CD_headline"] == .string("a") })
    try await all.quit()
  }

  @Test("The same value from a former version is no sign that a batch arrived")
  func sameValue() async throws {
    let all = try await Devices()
    all.phone.cloud.onModify { _ in throw CloudFailure.unreachable(reason: "No connection.") }
    try all.edit(all.phone, "headline", "b")
    await #expect(throws: CloudFailure.self) { try await all.phone.mirror.syncNow() }
    try all.editPad("title", "b")
    try await all.pad.sync()
    all.phone.acceptAll()
    // Without the watch, which would send the value under the present name.
    for _ in 0..<3 {
      _ = try? await all.phone.mirror.syncNow()
      try await all.phone.sync()
      try await all.pad.sync()
    }
    #expect(try all.values() == ["b", "a", "b"])
    try await all.settle()
    #expect(try all.values() == ["b", "b", "b"])
    try await all.quit()
  }

  @Test("An edit by a former version after a batch without a reply is taken")
  func editAfterBatch() async throws {
    let all = try await Devices()
    try await all.phone.saveWithoutReply { context in
      try context.all("Post").first?.setValue("b", forKey: "headline")
    }
    try await all.pad.sync()
    try all.editPad("title", "c")
    try await all.pad.sync()
    // The batch is open while the record is imported, and is refused when it is repeated.
    try await all.phone.importOnly()
    all.phone.refuseBatches(.tooLarge)
    try await all.settle()
    #expect(try all.values() == ["c", "c", "c"])
    try await all.quit()
  }
}
