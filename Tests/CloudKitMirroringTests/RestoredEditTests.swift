import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Edits that a restored backup has and had not sent")
struct RestoredEditTests {
  private func contents(_ device: TestDevice) throws -> Set<String> {
    try device.save { context in
      Set(try context.all("Post").map { $0.value(forKey: "content") as? String ?? "nil" })
    }
  }

  private func setContents(_ device: TestDevice, _ content: String) throws {
    try device.save { context in
      for post in try context.all("Post") { post.setValue(content, forKey: "content") }
    }
  }

  /// A device whose store is replaced with a backup, after its contents were sent and another device
  /// has edited them.
  private func with(
    beforeBackup: (World, _ phone: TestDevice, _ pad: TestDevice) async throws -> Void,
    _ body: (_ phone: TestDevice, _ pad: TestDevice) throws -> Void
  ) async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try await world.settle(phone, pad)
    try await beforeBackup(world, phone, pad)
    let backup = try StoreBackup(of: phone)
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    try setContents(pad, "new")
    try await world.settle(pad, phone)
    #expect(try contents(phone) == ["new"])
    try await phone.quit()
    try backup.restore()
    try phone.launch()
    try await world.settle(phone, pad)
    try body(phone, pad)
    #expect(try phone.snapshot() == pad.snapshot())
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A new object that was edited in a later launch has the values of others since")
  func laterLaunch() async throws {
    try await with { _, phone, _ in
      try await phone.relaunchOffline()
      try phone.save { _ = $0.make("Post", ["title": "a", "content": "old"]) }
      try await phone.relaunchOffline()
      try setContents(phone, "unsent")
    } _: { phone, pad in
      for device in [phone, pad] { try #expect(contents(device) == ["new"]) }
    }
  }

  @Test(
    "New objects have the values of others since, also if an opening cannot name them all",
    arguments: [(1001, 1), (1, 1001)]
  )
  func manyObjects(objects: Int, saves: Int) async throws {
    try await with { _, phone, _ in
      try await phone.relaunchOffline()
      try phone.save { context in
        for number in 1...objects {
          _ = context.make("Post", ["title": "\(number)", "content": "old"])
        }
        _ = context.make("Tag", ["name": "t"])
      }
      let context = phone.container.newBackgroundContext()
      try context.performAndWait {
        let tag = try context.first("Tag", "name", "t")
        for number in 1..<saves {
          tag.setValue("\(number)", forKey: "name")
          try context.save()
        }
      }
    } _: { phone, pad in
      for device in [phone, pad] { try #expect(contents(device) == ["new"]) }
    }
  }

  @Test("An edit in a copy stays, if the server has what an earlier launch of the copy began with")
  func editBetweenLaunches() async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try await world.settle(phone, pad)
    try await phone.relaunchOffline()
    try phone.save { _ = $0.make("Post", ["title": "a", "content": "sent"]) }
    let backup = try StoreBackup(of: phone)
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    try await phone.quit()
    try backup.restore()
    phone.faults.isOnline = false
    try phone.launch()
    for content in ["edited", "edited again"] {
      try setContents(phone, content)
      try await phone.relaunchOffline()
    }
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    for device in [phone, pad] { try #expect(contents(device) == ["edited again"]) }
    for device in [phone, pad] { try await device.quit() }
  }

  /// Two devices with a post and a tag, and a backup of the phone with their link, which was not sent yet.
  private func linkedPostWithBackup() async throws -> (
    world: World, phone: TestDevice, pad: TestDevice, backup: StoreBackup
  ) {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { context in
      _ = context.make("Post", ["title": "p"])
      _ = context.make("Tag", ["name": "t"])
    }
    try await world.settle(phone, pad)
    try await phone.relaunchOffline()
    try phone.save { context in
      let tag = try context.first("Tag", "name", "t")
      try context.first("Post", "title", "p").mutableSetValue(forKey: "tags").add(tag)
    }
    let backup = try StoreBackup(of: phone)
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    return (world, phone, pad, backup)
  }

  @Test("A link that was removed since a backup stays removed, and can be restored")
  func removedLink() async throws {
    func tags(_ device: TestDevice) throws -> Int {
      try device.save { try $0.all("Post").first?.mutableSetValue(forKey: "tags").count ?? -1 }
    }
    let (world, phone, pad, backup) = try await linkedPostWithBackup()
    #expect(try tags(pad) == 1)
    try pad.save { context in
      try context.first("Post", "title", "p").mutableSetValue(forKey: "tags").removeAllObjects()
    }
    try await world.settle(pad, phone)
    try await phone.quit()
    try backup.restore()
    try phone.launch()
    try await world.settle(phone, pad)
    for device in [phone, pad] { #expect(try tags(device) == 0) }
    let entry = try #require(try phone.container.recoveryEntries().first)
    _ = try phone.container.restore(entry)
    try await world.settle(phone, pad)
    for device in [phone, pad] { #expect(try tags(device) == 1) }
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A link that a copy of the store removes before its first import stays removed")
  func linkRemovedInCopy() async throws {
    let (world, phone, pad, backup) = try await linkedPostWithBackup()
    try await phone.quit()
    try backup.restore()
    phone.faults.isOnline = false
    try phone.launch()
    try phone.save { context in
      try context.first("Post", "title", "p").mutableSetValue(forKey: "tags").removeAllObjects()
    }
    try await phone.relaunchOffline()
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    for device in [phone, pad] {
      let tags = try device.save {
        try $0.all("Post").first?.mutableSetValue(forKey: "tags").count
      }
      #expect(tags == 0)
    }
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("An unsent edit of an object that was sent before keeps the value that it replaces")
  func unsentEdit() async throws {
    try await with { world, phone, pad in
      try phone.save { _ = $0.make("Post", ["title": "a", "content": "old"]) }
      try await world.settle(phone, pad)
      try await phone.relaunchOffline()
      try setContents(phone, "unsent")
    } _: { phone, pad in
      #expect(try contents(pad) == ["unsent"])
      let mirror = try #require(phone.container.storeMirrors.first)
      let kept = try mirror.read { try $0.recoveredEdits() }
      #expect(kept.map { $0.fields["CD_content"] } == [.string("new")])
    }
  }
}
