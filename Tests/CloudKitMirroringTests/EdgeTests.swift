import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite struct EdgeTests {
  let relationship = EdgeRelationship(
    .init(entityName: "Tag", relationship: "posts"),
    .init(entityName: "Post", relationship: "tags")
  )

  @Test("An edge is written as on Apple's page")
  func fields() {
    let edge = Edge(
      relationship: relationship,
      firstRecord: "CD_Post_UUID",
      secondRecord: "CD_Tag_UUID"
    )
    #expect(
      edge.fields.values == [
        "CD_entityNames": .string("Post:Tag"),
        "CD_recordNames": .string("CD_Post_UUID:CD_Tag_UUID"),
        "CD_relationships": .string("tags:posts"),
      ]
    )
    #expect(Edge(fields: edge.fields) == edge)
  }

  @Test("Semicolons and another order are read too, other formats are refused")
  func reading() {
    let swapped = Edge(
      fields: FieldBag([
        "CD_entityNames": .string("Tag;Post"), "CD_recordNames": .string("T;P"),
        "CD_relationships": .string("posts;tags"),
      ])
    )
    #expect(swapped == Edge(relationship: relationship, firstRecord: "P", secondRecord: "T"))
    for names in ["P", "P:", ":T", "P:T:U", ""] {
      let fields = FieldBag([
        "CD_entityNames": .string("Post:Tag"), "CD_recordNames": .string(names),
        "CD_relationships": .string("tags:posts"),
      ])
      #expect(Edge(fields: fields) == nil, "\(names)")
    }
  }

  @Test("The order of an edge ignores case, and within one entity uses the relationship's name")
  func order() {
    let within = EdgeRelationship(
      .init(entityName: "Person", relationship: "followers"),
      .init(entityName: "Person", relationship: "Following")
    )
    #expect(within.first.relationship == "followers")
    let across = EdgeRelationship(
      .init(entityName: "beta", relationship: "a"),
      .init(entityName: "Alpha", relationship: "z")
    )
    #expect(across.first.entityName == "Alpha")
    #expect(!within.isSymmetric)
  }

  @Test("Both devices give an edge the same name, and other edges other names")
  func names() throws {
    let edge = Edge(relationship: relationship, firstRecord: "P", secondRecord: "T")
    let name = edge.recordName(zone: "z")
    #expect(name == edge.recordName(zone: "z"))
    let uuid = try #require(UUID(uuidString: name))
    #expect(uuid.uuid.6 >> 4 == 5)
    let other = Edge(relationship: relationship, firstRecord: "T", secondRecord: "P")
    #expect(other.recordName(zone: "z") != name)
    #expect(edge.recordName(zone: "y") != name)
  }

  @Test("UUIDs of version 5 equal those of the RFC")
  func nameBased() {
    let dns = UUID(
      uuid: (
        0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0, 0xc0, 0x4f, 0xd4, 0x30, 0xc8
      )
    )
    #expect(
      NameBasedUUID.make(namespace: dns, name: "www.example.com").uuidString
        == "2ED6657D-E927-568B-95E1-2665A8AEA6A2"
    )
  }

  @Test("A relationship that is its own inverse has one edge for both directions")
  func symmetric() {
    let side = EdgeRelationship.Side(entityName: "Person", relationship: "friends")
    let friends = EdgeRelationship(side, side)
    #expect(friends.isSymmetric)
    #expect(
      Edge(relationship: friends, firstRecord: "B", secondRecord: "A")
        == Edge(relationship: friends, firstRecord: "A", secondRecord: "B")
    )
  }

  @Test("A link that was removed and is made again offline stays after a launch")
  func madeAgainOffline() async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    func setTags(_ isLinked: Bool) throws {
      try phone.save { context in
        let tags = isLinked ? try context.all("Tag") : []
        try context.first("Post", "title", "a").setValue(NSSet(array: tags), forKey: "tags")
      }
    }
    try phone.save { context in
      _ = (context.make("Post", ["title": "a"]), context.make("Tag", ["name": "t"]))
    }
    try setTags(true)
    try await world.settle(phone, pad)
    try setTags(false)
    // One round: the feed with the tombstone of this device's own deletion is not read after it.
    try await phone.sync()
    try await phone.relaunchOffline()
    try setTags(true)
    try await phone.relaunchOffline()
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    for device in [phone, pad] {
      let tags = try device.save { context in
        (try context.all("Post").first?.value(forKey: "tags") as? NSSet)?.count
      }
      #expect(tags == 1)
    }
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A link that one device made and removed offline can be made by another device later")
  func madeElsewhereLater() async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    func setTags(_ isLinked: Bool, on device: TestDevice) throws {
      try device.save { context in
        let tags = isLinked ? try context.all("Tag") : []
        try context.first("Post", "title", "a").setValue(NSSet(array: tags), forKey: "tags")
      }
    }
    func tags(_ device: TestDevice) throws -> Int? {
      try device.save { context in
        (try context.all("Post").first?.value(forKey: "tags") as? NSSet)?.count
      }
    }
    try phone.save { context in
      _ = (context.make("Post", ["title": "a"]), context.make("Tag", ["name": "t"]))
    }
    try await world.settle(phone, pad)
    try await phone.relaunchOffline()
    try setTags(true, on: phone)
    // Links of before a launch may have been sent by another copy of the store.
    try await phone.relaunchOffline()
    try setTags(false, on: phone)
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    for device in [phone, pad] { #expect(try tags(device) == 0) }
    // The removal was found after the import of its round, and no further page had changes.
    try await world.settle(phone, pad)
    let mirror = try #require(phone.container.storeMirrors.first)
    #expect(try mirror.read { try $0.newestUnsentEdge() } == 0)
    try setTags(true, on: pad)
    try await world.settle(pad, phone)
    for device in [phone, pad] { #expect(try tags(device) == 1) }
    for device in [phone, pad] { try await device.quit() }
  }
}
