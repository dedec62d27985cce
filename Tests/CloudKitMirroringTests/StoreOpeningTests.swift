import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Openings of a store, from which record names follow")
struct StoreOpeningTests {
  private func openings(_ device: TestDevice) throws -> [String] {
    let mirror = try #require(device.container.storeMirrors.first)
    let text = try mirror.read { try $0.text(.openings) } ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  /// A device that never reaches the server.
  private func offlineDevice(_ world: World) async throws -> TestDevice {
    let device = try await TestDevice(
      name: "phone",
      model: world.model,
      folder: world.folder,
      cloud: world.cloud
    )
    device.faults.isOnline = false
    try device.launch()
    return device
  }

  private func relaunch(_ device: TestDevice) async throws {
    try await device.quit()
    try device.launch()
  }

  @Test("An opening names what a small save inserted, and leaves a large one to the export")
  func largeSave() async throws {
    let world = try await World()
    var phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    func namedAtOpening(saving count: Int) async throws -> Int64 {
      let before = try phone.mirror.read { try $0.recordCount() }
      await phone.mirror.stopAndFinish()
      try phone.save { context in
        for number in 0..<count { _ = context.make("Tag", ["name": "\(number)"]) }
      }
      try await phone.quit()
      phone = try await ScriptedDevice("phone", in: world, isStarted: false)
      let named = try phone.mirror.read { try $0.recordCount() } - before
      phone.mirror.start()
      try await phone.sync()
      #expect(try phone.mirror.read { try $0.recordCount() } == before + Int64(count))
      return named
    }
    #expect(try await namedAtOpening(saving: 10) == 10)
    #expect(try await namedAtOpening(saving: 1_200) == 0)
    try await phone.quit()
  }

  @Test("A launch without a save before it reads no objects that were never sent")
  func idleLaunchReadsNothing() async throws {
    let world = try await World()
    let phone = try await offlineDevice(world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    let mirror = try #require(phone.container.storeMirrors.first)
    while try mirror.write(MirrorAuthor.setup, { try $0.scan(limit: 10) }) {}
    func base() throws -> MirrorValue? {
      let mirror = try #require(phone.container.storeMirrors.first)
      return try mirror.read { try $0.record(entity: "Post", key: 1)?.base?["CD_title"] }
    }
    try await relaunch(phone)
    #expect(try base() == .string("a"))
    // What a launch would replace if it read the object.
    let launched = try #require(phone.container.storeMirrors.first)
    try launched.write(MirrorAuthor.setup) { session in
      var record = try #require(try session.metadata.record(entity: "Post", key: 1))
      record.base?["CD_title"] = .string("marked")
      try session.metadata.update(record)
    }
    try await relaunch(phone)
    #expect(try base() == .string("marked"))
    try phone.save { _ = $0.make("Post", ["title": "b"]) }
    try await relaunch(phone)
    #expect(try base() == .string("a"))
    try await phone.quit()
  }

  @Test("Launches without a save add nothing while no user signs in")
  func idleLaunches() async throws {
    let world = try await World()
    let phone = try await offlineDevice(world)
    for _ in 0..<3 { try await relaunch(phone) }
    #expect(try openings(phone).count == 1)
    try await phone.quit()
  }

  @Test("Launches during the first scan keep the openings of rows that it has not named yet")
  func launchesDuringScan() async throws {
    let world = try await World()
    let phone = try await offlineDevice(world)
    try phone.save { context in
      for title in ["a", "b", "c"] { _ = context.make("Post", ["title": title]) }
    }
    let first = try #require(try openings(phone).first)
    let mirror = try #require(phone.container.storeMirrors.first)
    #expect(try mirror.write(MirrorAuthor.setup) { try $0.scan(limit: 1) })
    for title in ["d", "e", "f"] {
      try await relaunch(phone)
      try phone.save { _ = $0.make("Post", ["title": title]) }
    }
    try await relaunch(phone)
    #expect(try openings(phone).first == first)
    try await phone.quit()
  }

  @Test("A scan removes the index by which it finds the insertions of rows without names")
  func index() async throws {
    let world = try await World()
    let phone = try await offlineDevice(world)
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    func hasIndex() throws -> Bool {
      try SQLiteConnection(path: phone.storeURL.path)
        .scalar("SELECT 1 FROM sqlite_master WHERE name = 'WSMIRROR_INSERTION'") != nil
    }
    let mirror = try #require(phone.container.storeMirrors.first)
    while try mirror.write(MirrorAuthor.setup, { try $0.scan(limit: 1) }) {
      let names = try mirror.read { try $0.record(entity: "Post", key: 1)?.name }
      if names != nil { #expect(try hasIndex()) }
    }
    #expect(try mirror.read { try $0.record(entity: "Post", key: 1) } != nil)
    #expect(try !hasIndex())
    try await phone.quit()
  }
}

extension MirrorMetadata {
  fileprivate func recordCount() throws -> Int64 {
    guard case .integer(let count) = try connection.scalar("SELECT COUNT(*) FROM WSMIRROR_RECORD")
    else { return 0 }
    return count
  }
}
