import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing

@Suite struct RoundTripTests {
  @Test("Objects of every entity and links of every kind are imported by the other device")
  func everything() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let post = context.make("ImagePost", ["title": "Moon", "caption": "Full", "views": 3])
        let video = context.make("VideoPost", ["title": "Tide", "length": 1.5])
        let attachment = context.make("Attachment", ["name": "moon.png"])
        attachment.setValue(post, forKey: "post")
        let data = context.make("ImageData", ["data": Data([1, 2, 3])])
        data.setValue(attachment, forKey: "attachment")
        let tag = context.make("Tag", ["name": "night", "uuid": UUID()])
        tag.mutableSetValue(forKey: "posts").add(post)
        tag.mutableSetValue(forKey: "posts").add(video)
      }
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      #expect(try pad.snapshot().count == 5)
      try pad.save { context in
        let tag = try context.first("Tag", "name", "night")
        #expect((tag.value(forKey: "posts") as? NSSet)?.count == 2)
        let post = try context.first("Post", "title", "Moon")
        #expect(post.entity.name == "ImagePost")
        let attachment = try #require((post.value(forKey: "attachments") as? NSSet)?.anyObject())
        let data = try #require((attachment as? NSManagedObject)?.value(forKey: "imageData"))
        #expect((data as? NSManagedObject)?.value(forKey: "data") as? Data == Data([1, 2, 3]))
      }
    }
  }

  @Test("Edits, moved links, removed edges and deletions are exchanged in both directions")
  func changes() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let tags = ["a", "b"].map { context.make("Tag", ["name": $0]) }
        for title in ["one", "two"] {
          let post = context.make("Post", ["title": title])
          post.setValue(NSSet(array: tags), forKey: "tags")
          context.make("Attachment", ["name": title]).setValue(post, forKey: "post")
        }
      }
      try await world.settle(phone, pad)
      try pad.save { context in
        let one = try context.first("Post", "title", "one")
        let two = try context.first("Post", "title", "two")
        one.setValue("eins", forKey: "title")
        one.setValue(NSSet(), forKey: "tags")
        try context.first("Attachment", "name", "one").setValue(two, forKey: "post")
        try context.delete(context.first("Tag", "name", "b"))
      }
      try await world.settle(pad, phone)
      #expect(try pad.snapshot() == phone.snapshot())
      try phone.save { context in
        let two = try context.first("Post", "title", "two")
        #expect((two.value(forKey: "attachments") as? NSSet)?.count == 2)
        #expect((two.value(forKey: "tags") as? NSSet)?.count == 1)
        #expect(try context.all("Tag").count == 1)
        // Its attachments are deleted by its delete rule.
        context.delete(two)
      }
      try await world.settle(phone, pad)
      #expect(try pad.snapshot() == phone.snapshot())
      try pad.save { context in
        let attachments = try context.all("Attachment")
        let posts = try context.all("Post")
        #expect(attachments.isEmpty)
        #expect(posts.count == 1)
      }
    }
  }

  @Test("A text too large for a record moves into its file, and back")
  func assets() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      let long = String(repeating: "water ", count: 150_000)
      try phone.save { _ = $0.make("Post", ["title": "long", "content": long]) }
      try await world.settle(phone, pad)
      try pad.save { context in
        let post = try context.first("Post", "title", "long")
        #expect(post.value(forKey: "content") as? String == long)
        let record = try #require(pad.container.record(for: post.objectID))
        #expect(record["CD_content"] == nil)
        #expect(record["CD_content_ckAsset"] is CKAsset)
        post.setValue("short", forKey: "content")
      }
      try await world.settle(pad, phone)
      try phone.save { context in
        let post = try context.first("Post", "title", "long")
        #expect(post.value(forKey: "content") as? String == "short")
        let record = try #require(phone.container.record(for: post.objectID))
        #expect(record["CD_content"] as? String == "short")
        #expect(record["CD_content_ckAsset"] == nil)
      }
      #expect(try pad.snapshot() == phone.snapshot())
    }
  }

  @Test("Imported changes are not exported again, and an idle device sends no requests")
  func noEcho() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        for number in 0..<20 { _ = context.make("Post", ["title": "\(number)"]) }
      }
      try await world.settle(phone, pad)
      pad.faults.forgetRequests()
      try await pad.sync()
      try await pad.sync()
      #expect(!pad.faults.requests.contains("records/modify"))
    }
  }

  @Test("More objects than a request can have arrive completely, with their links")
  func manyObjects() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        let tags = (0..<5).map { context.make("Tag", ["name": "t\($0)"]) }
        for number in 0..<330 {
          let post = context.make("Post", ["title": "\(number)", "views": number])
          post.setValue(NSSet(object: tags[number % 5]), forKey: "tags")
        }
      }
      try await world.settle(phone, pad)
      #expect(try pad.snapshot().count == 335)
      #expect(try pad.snapshot() == phone.snapshot())
      // R7: a new device exports nothing of what it imports.
      let watch = try await world.device("watch")
      try await watch.sync()
      #expect(try watch.snapshot() == phone.snapshot())
      #expect(!watch.faults.requests.contains("records/modify"))
      try await watch.quit()
    }
  }

  @Test("Objects have records and record identifiers")
  func records() async throws {
    try await World.with("phone") { _, devices in
      let phone = devices[0]
      let (post, tag) = try phone.save { context in
        let post = context.make("VideoPost", ["title": "Tide", "content": "Low"])
        let tag = context.make("Tag", ["name": "sea"])
        try context.save()
        return (post.objectID, tag.objectID)
      }
      try await phone.sync()
      let record = try #require(phone.container.record(for: post))
      #expect(record.recordType == "CD_Post")
      #expect(record["CD_entityName"] as? String == "VideoPost")
      #expect(record["CD_title"] as? String == "Tide")
      #expect(record.recordID.zoneID.zoneName == "com.apple.coredata.cloudkit.zone")
      #expect(record.recordChangeTag != nil)
      #expect(
        UUID(uuidString: record.recordID.recordName)?.uuidString == record.recordID.recordName
      )
      #expect(phone.container.recordID(for: post) == record.recordID)
      #expect(phone.container.records(for: [post, tag]).count == 2)
      #expect(NSPersistentCloudKitContainer.recordIDs(for: [post, tag]).count == 2)
    }
  }

  @Test("A save wakes the export, and a push wakes the other device, automatically")
  func byThemselves() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try await world.settle(phone, pad)
      let mirror = try #require(pad.container.storeMirrors.first)
      let events = mirror.journal.events()
      try phone.save { _ = $0.make("Post", ["title": "rain"]) }
      for await event in events where event.step == .pageApplied && event.inserted == 1 { break }
      #expect(try pad.save { context in try context.all("Post").count } == 1)
    }
  }
}
