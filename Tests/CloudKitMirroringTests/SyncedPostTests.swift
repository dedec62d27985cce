import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

/// The names of the records of a synced post.
struct SyncedPostNames {
  var post: String
  var attachment: String
  var edge: String
}

/// Tests that drive the session of a stopped mirror, whose store has a synced post.
protocol SyncedPostTests {}

extension SyncedPostTests {
  /// A stopped mirror of a store with a synced post, which has an attachment and a tag.
  func with(
    _ body: (_ phone: ScriptedDevice, _ names: SyncedPostNames) throws -> Void
  ) async throws {
    let world = try await World()
    let phone = try await ScriptedDevice("phone", in: world)
    try phone.save { context in
      let tag = context.make("Tag", ["name": "t"])
      let post = context.make("Post", ["title": "a"])
      post.setValue(NSSet(object: tag), forKey: "tags")
      context.make("Attachment", ["name": "file"]).setValue(post, forKey: "post")
    }
    try await phone.sync()
    await phone.mirror.stopAndFinish()
    let names = try phone.mirror.read { metadata in
      let post = try #require(try metadata.record(entity: "Post", key: 1))
      let attachment = try #require(try metadata.record(entity: "Attachment", key: 1))
      let edge = try #require(try metadata.edges(touching: post.name).first)
      return SyncedPostNames(post: post.name, attachment: attachment.name, edge: edge.name)
    }
    try body(phone, names)
    try await phone.quit()
  }

  /// The record that another device has sent for an object of this store.
  func sent(
    _ record: RecordMetadata,
    _ changes: [String: MirrorValue] = [:]
  ) throws -> CloudRecord {
    var fields = try #require(record.base)
    for (key, value) in changes { fields.values[key] = value }
    return CloudRecord(
      name: record.name,
      recordType: record.recordType,
      tag: "other",
      fields: fields
    )
  }

  func tagCount(_ phone: ScriptedDevice) throws -> Int {
    var count = 0
    try phone.save { context in
      count = (try context.all("Post").first?.value(forKey: "tags") as? NSSet)?.count ?? 0
    }
    return count
  }
}
