import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing

@Suite("Nil in attributes with defaults")
struct DefaultValueTests {
  private static func model() -> NSManagedObjectModel {
    let note = BlogModel.entity(
      "Note",
      [
        BlogModel.attribute("title", .stringAttributeType),
        BlogModel.attribute("rating", .integer64AttributeType) {
          $0.isOptional = true
          $0.defaultValue = 0
        },
        BlogModel.attribute("comment", .stringAttributeType) {
          $0.isOptional = true
          $0.defaultValue = "none"
        },
      ]
    )
    let model = NSManagedObjectModel()
    model.entities = [note]
    return model
  }

  private func values(_ device: TestDevice) throws -> [String] {
    try device.save { context in
      try context.all("Note").flatMap { note in
        ["rating", "comment"].map { key in note.value(forKey: key).map { "\($0)" } ?? "nil" }
      }
    }
  }

  @Test("An optional attribute with a default that is set to nil is nil on all devices")
  func removal() async throws {
    let world = try await World(model: Self.model())
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try phone.save { _ = $0.make("Note", ["title": "a", "rating": 5, "comment": "good"]) }
    try await world.settle(phone, pad)
    #expect(try values(pad) == ["5", "good"])
    try phone.save { context in
      for key in ["rating", "comment"] {
        try context.first("Note", "title", "a").setValue(nil, forKey: key)
      }
    }
    try await world.settle(phone, pad)
    for device in [phone, pad] { #expect(try values(device) == ["nil", "nil"], "\(device.name)") }
    // The device that was sent the nil is the first to make the zone again.
    try await world.deleteZone()
    try await world.settle(pad, phone)
    for device in [phone, pad] { #expect(try values(device) == ["nil", "nil"], "\(device.name)") }
    for device in [phone, pad] { try await device.quit() }
  }
}
