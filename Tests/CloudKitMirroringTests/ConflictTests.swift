import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite struct ConflictTests {
  private func edit(_ device: TestDevice, _ values: [String: Any?]) throws {
    try device.save { context in
      let post = try #require(try context.all("Post").first)
      for (key, value) in values { post.setValue(value, forKey: key) }
    }
  }

  private func value(_ device: TestDevice, _ key: String) throws -> String? {
    try device.save { context in try context.all("Post").first?.value(forKey: key) as? String }
  }

  @Test("Offline edits of different properties are all kept, whichever device syncs first")
  func propertyByProperty() async throws {
    for phoneFirst in [true, false] {
      try await World.with("phone", "pad") { world, devices in
        let (phone, pad) = (devices[0], devices[1])
        try phone.save { _ = $0.make("Post", ["title": "old", "content": "old", "views": 1]) }
        try await world.settle(phone, pad)
        phone.faults.isOnline = false
        pad.faults.isOnline = false
        try edit(phone, ["title": "phone", "views": 2])
        try edit(pad, ["content": "pad"])
        for device in phoneFirst ? [phone, pad] : [pad, phone] {
          device.faults.isOnline = true
          try await device.sync()
        }
        try await world.settle(phone, pad)
        #expect(try phone.snapshot() == pad.snapshot())
        #expect(try value(phone, "title") == "phone")
        #expect(try value(pad, "content") == "pad")
      }
    }
  }

  @Test("R1: concurrent edits of one property converge to one value, in both orders")
  func sameProperty() async throws {
    for phoneFirst in [true, false] {
      try await World.with("phone", "pad") { world, devices in
        let (phone, pad) = (devices[0], devices[1])
        try phone.save { _ = $0.make("Post", ["title": "old"]) }
        try await world.settle(phone, pad)
        phone.faults.isOnline = false
        pad.faults.isOnline = false
        try edit(phone, ["title": "phone"])
        try edit(pad, ["title": "pad"])
        let order = phoneFirst ? [phone, pad] : [pad, phone]
        for device in order {
          device.faults.isOnline = true
          try await device.sync()
        }
        try await world.settle(phone, pad)
        // The last exporter wins.
        #expect(try value(phone, "title") == order[1].name)
        #expect(try value(pad, "title") == order[1].name)
      }
    }
  }

  @Test("A deletion wins against an edit, in both orders, and the edit can be restored")
  func deletionAndEdit() async throws {
    for deleteFirst in [true, false] {
      try await World.with("phone", "pad") { world, devices in
        let (phone, pad) = (devices[0], devices[1])
        try phone.save { _ = $0.make("Post", ["title": "old"]) }
        try await world.settle(phone, pad)
        phone.faults.isOnline = false
        pad.faults.isOnline = false
        try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
        try edit(pad, ["title": "edited"])
        for device in deleteFirst ? [phone, pad] : [pad, phone] {
          device.faults.isOnline = true
          try await device.sync()
        }
        try await world.settle(phone, pad)
        #expect(try phone.snapshot().isEmpty)
        #expect(try pad.snapshot().isEmpty)
        let kept = try (phone.container.storeMirrors + pad.container.storeMirrors).flatMap {
          try $0.read { try $0.recoveredEdits() }
        }
        #expect(kept.contains { $0.fields["CD_title"] == .string("edited") })
      }
    }
  }

  @Test("Two devices that set different partners of one object converge to one pair, on both sides")
  func oneToOne() async throws {
    for phoneFirst in [true, false] {
      try await World.with("phone", "pad") { world, devices in
        let (phone, pad) = (devices[0], devices[1])
        try phone.save { context in
          _ = context.make("Attachment", ["name": "a"])
          _ = context.make("ImageData", ["data": Data([1])])
          _ = context.make("ImageData", ["data": Data([2])])
        }
        try await world.settle(phone, pad)
        phone.faults.isOnline = false
        pad.faults.isOnline = false
        for (device, byte) in [(phone, UInt8(1)), (pad, 2)] {
          try device.save { context in
            let attachment = try context.first("Attachment", "name", "a")
            let data = try context.all("ImageData").first {
              $0.value(forKey: "data") as? Data == Data([byte])
            }
            attachment.setValue(data, forKey: "imageData")
          }
        }
        for device in phoneFirst ? [phone, pad] : [pad, phone] {
          device.faults.isOnline = true
          try await device.sync()
        }
        try await world.settle(phone, pad)
        let snapshot = try phone.snapshot()
        #expect(try pad.snapshot() == snapshot)
        let pairs = snapshot.compactMap { name, fields in fields["CD_imageData"].map { (name, $0) }
        }
        #expect(pairs.count == 1)
        let backs = snapshot.compactMap { name, fields in fields["CD_attachment"].map { (name, $0) }
        }
        #expect(backs.count == 1)
        #expect(pairs.first.map { "\($0.1)" } == backs.first.map { "string(\"\($0.0)\")" })
      }
    }
  }

  @Test("An edge created on both devices is one record, and is deleted when either removes it")
  func edgeTwice() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { context in
        _ = context.make("Post", ["title": "p"])
        _ = context.make("Tag", ["name": "t"])
      }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      pad.faults.isOnline = false
      for device in [phone, pad] {
        try device.save { context in
          let tag = try context.first("Tag", "name", "t")
          try context.first("Post", "title", "p").setValue(NSSet(object: tag), forKey: "tags")
        }
      }
      phone.faults.isOnline = true
      pad.faults.isOnline = true
      try await world.settle(phone, pad)
      #expect(try phone.snapshot() == pad.snapshot())
      try phone.save { try $0.first("Post", "title", "p").setValue(NSSet(), forKey: "tags") }
      try await world.settle(phone, pad)
      #expect(try phone.snapshot() == pad.snapshot())
      #expect(try pad.snapshot().values.allSatisfy { $0["tags"] == nil })
      // The same again.
      try pad.save { context in
        let tag = try context.first("Tag", "name", "t")
        try context.first("Post", "title", "p").setValue(NSSet(object: tag), forKey: "tags")
      }
      try await world.settle(phone, pad)
      #expect(try phone.snapshot() == pad.snapshot())
      #expect(try phone.snapshot().values.contains { $0["tags"] != nil })
    }
  }

  @Test("An attachment of a post that another device deletes is deleted everywhere")
  func childOfTheDeleted() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "p"]) }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      pad.faults.isOnline = false
      try phone.save { context in for post in try context.all("Post") { context.delete(post) } }
      try pad.save { context in
        let post = try context.first("Post", "title", "p")
        context.make("Attachment", ["name": "late"]).setValue(post, forKey: "post")
      }
      phone.faults.isOnline = true
      pad.faults.isOnline = true
      try await world.settle(pad, phone)
      #expect(try phone.snapshot() == pad.snapshot())
      let kept = try pad.container.storeMirrors[0].read { try $0.recoveredEdits() }
      let late = try #require(kept.first { $0.entityName == "Attachment" })
      #expect(late.fields["CD_name"] == .string("late"))
    }
  }

  @Test("R5: two attributes saved in two transactions before one export both arrive")
  func twoSaves() async throws {
    try await World.with("phone", "pad") { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      try phone.save { _ = $0.make("Post", ["title": "old"]) }
      try await world.settle(phone, pad)
      phone.faults.isOnline = false
      try edit(phone, ["title": "new"])
      try edit(phone, ["content": "more"])
      phone.faults.isOnline = true
      try await world.settle(phone, pad)
      #expect(try value(pad, "title") == "new")
      #expect(try value(pad, "content") == "more")
    }
  }

  @Test("R9: a second device that already has data merges, and no value is replaced")
  func secondDeviceWithData() async throws {
    try await World.with("phone") { world, devices in
      let phone = devices[0]
      try phone.save { _ = $0.make("Post", ["title": "phone"]) }
      try await phone.sync()
      let pad = try await world.device("pad")
      pad.faults.isOnline = false
      try pad.save { _ = $0.make("Post", ["title": "pad"]) }
      pad.faults.isOnline = true
      try await world.settle(pad, phone)
      #expect(try phone.snapshot() == pad.snapshot())
      #expect(try phone.snapshot().count == 2)
      try await pad.quit()
    }
  }
}
