import CloudKitMirroring
import CloudKitTesting
import Effects
import Foundation
import OpenCoreData
import Testing

/// Random saves on three devices, with random faults and restarts between them: in the end all
/// devices agree, no change is pending, and every link is valid.
@Suite struct RandomWorldTests {
  /// `WATERSHED_SEEDS` sets more seeds than a quick run has time for.
  private static let seedCount =
    ProcessInfo.processInfo.environment["WATERSHED_SEEDS"].flatMap { UInt64($0) } ?? 12

  private static let verbs = [
    "records/modify", "changes/zone", "changes/database", "assets/upload", "records/lookup",
  ]

  @Test("Three devices under random saves, faults and restarts converge", arguments: 1...seedCount)
  func converge(seed: UInt64) async throws {
    let random = SeededRandomness(seed: seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    try await World.with("phone", "pad", "watch") { world, devices in
      for round in 0..<30 {
        let device = devices[below(devices.count)]
        switch below(8) {
        case 0: device.faults.isOnline.toggle()
        case 1:
          let faults: [FaultPlan.Fault] = [.loseRequest, .loseReply, .fail(status: 503)]
          device.faults.add(faults[below(3)], to: Self.verbs[below(Self.verbs.count)])
        case 2:
          try await device.quit()
          try device.launch()
        case 3: _ = try? await device.container.syncNow()
        default:
          try device.save { context in
            for _ in 0...below(4) {
              try Self.change(context, "\(round) \(random.next() % 1000)", below)
            }
          }
        }
      }
      for device in devices {
        device.faults.isOnline = true
        device.faults.clear()
      }
      // A pause after a failure may not have ended yet: the first attempts can fail.
      for device in devices { _ = try? await device.container.syncNow() }
      for _ in 0..<4 {
        for device in devices { try await device.sync() }
      }
      let snapshot = try devices[0].snapshot()
      for device in devices.dropFirst() {
        let other = try device.snapshot()
        #expect(other == snapshot, "seed \(seed): \(Self.difference(snapshot, other))")
      }
      for device in devices {
        let status = try #require(try device.container.mirroringStatus().first)
        #expect(status.pendingCount == 0, "seed \(seed)")
        #expect(status.parked.isEmpty, "seed \(seed): \(status.parked)")
      }
      for (name, fields) in snapshot {
        guard let partner = fields["CD_imageData"] else { continue }
        let data = snapshot.first { "string(\"\($0.key)\")" == partner }
        #expect(data?.value["CD_attachment"] == "string(\"\(name)\")", "seed \(seed)")
      }
    }
  }

  private static func change(
    _ context: NSManagedObjectContext,
    _ text: String,
    _ below: (Int) -> Int
  ) throws {
    func some(_ entity: String) throws -> NSManagedObject? {
      let all = try context.all(entity).filter { !$0.isDeleted }
      return all.isEmpty ? nil : all[below(all.count)]
    }
    switch below(11) {
    case 0, 1: _ = context.make(["Post", "ImagePost", "VideoPost"][below(3)], ["title": text])
    case 2: _ = context.make("Tag", ["name": text])
    case 3: context.make("Attachment", ["name": text]).setValue(try some("Post"), forKey: "post")
    case 4:
      context.make("ImageData", ["data": Data(text.utf8)])
        .setValue(try some("Attachment"), forKey: "attachment")
    case 5: try some("Post")?.setValue(text, forKey: "title")
    case 6: try some("Post")?.setValue(below(2) == 0 ? nil : text, forKey: "content")
    case 7: try some("Attachment")?.setValue(try some("Post"), forKey: "post")
    case 8: try some("Attachment")?.setValue(try some("ImageData"), forKey: "imageData")
    case 9:
      guard let post = try some("Post"), let tag = try some("Tag") else { return }
      let tags = post.mutableSetValue(forKey: "tags")
      if tags.contains(tag) { tags.remove(tag) } else { tags.add(tag) }
    default:
      let entity = ["Post", "Tag", "Attachment", "ImageData"][below(4)]
      if let object = try some(entity) { context.delete(object) }
    }
  }

  private static func difference(
    _ one: [String: [String: String]],
    _ other: [String: [String: String]]
  ) -> String {
    Set(one.keys).union(other.keys).sorted().filter { one[$0] != other[$0] }
      .map { "\($0): \(one[$0].map { "\($0)" } ?? "-") / \(other[$0].map { "\($0)" } ?? "-")" }
      .joined(separator: "\n")
  }
}
