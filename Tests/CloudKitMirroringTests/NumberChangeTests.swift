import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Numbers in a new version of the model")
struct NumberChangeTests {
  /// Posts with a number that is an integer in one version of the model and a double in the other.
  private static func counted(_ type: NSAttributeType) -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity(
        "Post",
        [BlogModel.attribute("title", .stringAttributeType), BlogModel.attribute("count", type)]
      )
    ]
    return model
  }

  private func numbers(_ device: TestDevice) throws -> [String: Double] {
    try device.save { context in
      let pairs = try context.all("Post").map { post in
        (
          post.value(forKey: "title") as? String ?? "",
          (post.value(forKey: "count") as? NSNumber)?.doubleValue ?? .nan
        )
      }
      return Dictionary(uniqueKeysWithValues: pairs)
    }
  }

  @Test(
    "A number whose type a migration changed is sent in the type that the server's field has",
    arguments: [
      (NSAttributeType.integer64AttributeType, NSAttributeType.doubleAttributeType),
      (.doubleAttributeType, .integer64AttributeType),
    ]
  )
  func numberTypes(before: NSAttributeType, after: NSAttributeType) async throws {
    let world = try await World(model: Self.counted(before))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try old.save { _ = $0.make("Post", ["title": "a", "count": 1]) }
    try await world.settle(old, pad)
    try await old.quit()
    let phone = try await world.device("phone", model: Self.counted(after))
    let new = try await world.device("new", model: Self.counted(after))
    try await world.settle(phone, new)
    try phone.save { context in
      try context.first("Post", "title", "a").setValue(2, forKey: "count")
      _ = context.make("Post", ["title": "b", "count": 3])
    }
    try new.save { _ = $0.make("Post", ["title": "c", "count": 4]) }
    try await world.settle(phone, new, pad, phone)
    for device in [phone, pad, new] {
      #expect(try numbers(device) == ["a": 2, "b": 3, "c": 4])
    }
    for device in [phone, pad, new] { try await device.quit() }
  }

  @Test("A number that the server's field cannot hold parks its record only")
  func numberThatDoesNotFit() async throws {
    let world = try await World(model: Self.counted(.integer64AttributeType))
    let old = try await world.device("phone")
    try old.save { _ = $0.make("Post", ["title": "a", "count": 1]) }
    try await world.settle(old)
    try await old.quit()
    let phone = try await world.device("phone", model: Self.counted(.doubleAttributeType))
    try phone.save { context in
      _ = context.make("Post", ["title": "half", "count": 0.5])
      _ = context.make("Post", ["title": "b", "count": 3])
    }
    try await world.settle(phone)
    let parked = try phone.container.mirroringStatus().flatMap(\.parked)
    #expect(parked.count == 1)
    #expect(parked.first?.reason.contains("CD_count") == true)
    let pad = try await world.device("pad", model: Self.counted(.doubleAttributeType))
    try await world.settle(pad)
    #expect(try numbers(pad) == ["a": 1, "b": 3])
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("A number that is renamed and retyped at once is sent; the former field gets what fits it")
  func renamedAndRetyped() async throws {
    let world = try await World(model: Self.counted(.integer64AttributeType))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    try old.save { context in
      for title in ["a", "b"] { _ = context.make("Post", ["title": title, "count": 1]) }
    }
    try await world.settle(old, pad)
    try await old.quit()
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity(
        "Post",
        [
          BlogModel.attribute("title", .stringAttributeType),
          BlogModel.attribute("amount", .doubleAttributeType) { $0.renamingIdentifier = "count" },
        ]
      )
    ]
    let phone = try await world.device("phone", model: model)
    try await world.settle(phone)
    try phone.save { context in
      try context.first("Post", "title", "a").setValue(2, forKey: "amount")
      try context.first("Post", "title", "b").setValue(0.5, forKey: "amount")
    }
    try await world.settle(phone, pad)
    #expect(try phone.container.mirroringStatus().flatMap(\.parked).isEmpty)
    #expect(try numbers(pad) == ["a": 2, "b": 1])
    let fresh = try await world.device("fresh", model: model)
    try await fresh.sync()
    #expect(try fresh.snapshot() == phone.snapshot())
    // The former field could not hold 0.5: that it is as before shows no later edit.
    try await pad.quit()
    let updated = try await world.device("pad", model: model)
    try await world.settle(updated, phone)
    for device in [updated, phone] {
      let amounts = try device.save { context in
        try context.all("Post").map { $0.value(forKey: "amount") as? Double ?? -1 }.sorted()
      }
      #expect(amounts == [0.5, 2])
    }
    for device in [phone, updated, fresh] { try await device.quit() }
  }

  @Test("A field that a copy has with the type of its attribute is sent in that type again")
  func usualTypeAgain() throws {
    let mapping = ModelMapping(model: Self.counted(.doubleAttributeType), configuration: nil)
    let entity = try #require(mapping.entity(named: "Post"))
    var kinds = FieldKinds(of: FieldBag(["CD_count": .integer(1)]), entity)
    let values = ["CD_count": MirrorValue.double(3)]
    #expect(
      kinds.adapted(values, entity, recordType: entity.recordType) == ["CD_count": .integer(3)]
    )
    kinds.add(FieldKinds(of: FieldBag(["CD_count": .double(0.5)]), entity))
    #expect(kinds.adapted(values, entity, recordType: entity.recordType) == values)
  }
}
