import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("How many bytes of files one write transaction of an import holds")
struct ImportSizeTests {
  private static let limits = ExportBatcher.Limits(fileBytes: 1_500_000)

  private func saveImages(_ pad: TestDevice) async throws {
    try pad.save { context in
      for number in 0..<5 {
        _ = context.make("ImageData", ["data": Data(repeating: UInt8(number), count: 1_000_000)])
      }
      for number in 0..<5 { _ = context.make("Post", ["title": "\(number)"]) }
    }
    try await pad.sync()
  }

  /// The most images that one transaction inserted, and the number of all images.
  private func insertions(_ phone: ScriptedDevice) throws -> [Int64] {
    try phone.mirror.read { metadata in
      try metadata.connection.query(
        """
        SELECT COUNT(*) FROM ACHANGE WHERE ZCHANGETYPE = 0 AND ZENTITY =
          (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'ImageData') GROUP BY ZTRANSACTIONID
        """
      ) { $0.int64(0) }
    }
  }

  @Test("A page's files are applied up to a limit at a time")
  func page() async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    try await saveImages(pad)
    let phone = try await ScriptedDevice("phone", in: world, limits: Self.limits)
    try await phone.sync()
    #expect(try insertions(phone) == [1, 1, 1, 1, 1])
    #expect(try phone.titles().count == 5)
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("The conflicts of a batch are merged with their files up to a limit at a time")
  func conflicts() async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    try pad.save { context in
      for number in 0..<5 {
        let content = String(repeating: "\(number)", count: 1_000_000)
        _ = context.make("Post", ["title": "\(number)", "content": content])
      }
    }
    try await pad.sync()
    let phone = try await ScriptedDevice("phone", in: world, limits: Self.limits)
    try await phone.sync()
    // The other edits arrive between the import and the batch.
    phone.cloud.onModify { [cloud = phone.cloud] _ in
      cloud.onModify(nil)
      try pad.save { context in
        for post in try context.all("Post") {
          let title = post.value(forKey: "title") as? String ?? ""
          post.setValue(title + " by the other", forKey: "title")
        }
      }
      try await pad.sync()
      return nil
    }
    let before = try phone.mirror.write(MirrorAuthor.setup) { try $0.rows.lastTransactionNumber() }
    try phone.save { context in
      for post in try context.all("Post") { post.setValue(7, forKey: "views") }
    }
    try await phone.settle(with: pad)
    let merged = try phone.mirror.read { metadata in
      try metadata.connection.query(
        "SELECT COUNT(*) FROM ACHANGE WHERE ZTRANSACTIONID > ? GROUP BY ZTRANSACTIONID",
        [.integer(before)]
      ) { $0.int64(0) }
    }
    #expect(merged == [5, 1, 1, 1, 1, 1])
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    #expect(try pad.titles() == (0..<5).map { "\($0) by the other" })
    try await phone.quit()
    try await pad.quit()
  }

  @Test("The files of records that are looked up are applied up to a limit at a time")
  func lookUp() async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    let phone = try await ScriptedDevice("phone", in: world, limits: Self.limits)
    try await phone.sync()
    let token = try phone.mirror.read { try $0.zone(MirrorNames.zone).token }
    try await saveImages(pad)
    let page = try await phone.cloud.zoneChanges(
      MirrorNames.zone,
      after: token,
      limit: 200,
      keys: [],
      includesDeleted: false
    )
    let names = page.records.map(\.name)
    #expect(names.count == 10)
    phone.cloud.onZoneChanges { asked in
      guard asked == token else { return nil }
      return CloudZoneChanges(
        records: [],
        unreadable: Dictionary(uniqueKeysWithValues: names.map { ($0, "A file is missing.") }),
        token: page.token
      )
    }
    try await phone.sync()
    #expect(try insertions(phone) == [1, 1, 1, 1, 1])
    #expect(try phone.mirror.read { try $0.unreadableCount() } == 0)
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    try await phone.quit()
    try await pad.quit()
  }

  @Test("The links to an object that is read after its members are set some at a time")
  func linksOfHub() async throws {
    let world = try await World()
    let pad = try await world.device("pad")
    try pad.save { context in
      let post = context.make("Post", ["title": "former"])
      for number in 0..<1100 {
        context.make("Attachment", ["name": "\(number)"]).setValue(post, forKey: "post")
      }
    }
    try await pad.sync()
    // The feed has each record at its last change.
    try pad.save { try $0.first("Post", "title", "former").setValue("post", forKey: "title") }
    try await pad.sync()
    let phone = try await ScriptedDevice("phone", in: world)
    try await phone.sync()
    let updates = try phone.mirror.read { metadata in
      try metadata.connection.query(
        "SELECT COUNT(*) FROM ACHANGE WHERE ZCHANGETYPE = 1 GROUP BY ZTRANSACTIONID"
      ) { $0.int64(0) }
    }
    #expect(updates.reduce(0, +) >= 1100)
    #expect(updates.allSatisfy { $0 <= 501 }, "\(updates)")
    #expect(try phone.mirror.read { try $0.parkedLinkCount() } == 0)
    #expect(try phone.mirror.snapshot() == pad.snapshot())
    try await phone.quit()
    try await pad.quit()
  }
}
