import CloudKitMirroring
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

/// Two devices with the model of posts: saved on one, imported on the other.
struct PostsDemo {
  let world: DemoWorld
  let values: SampleValues
  var reporter: DemoReporter { world.reporter }
  var phone: DemoDevice { world.phone }
  var laptop: DemoDevice { world.laptop }

  init(world: DemoWorld, seed: UInt64) {
    self.world = world
    values = SampleValues(random: SeededRandomness(seed: seed))
  }

  func run() async throws {
    try await saveOnOne()
    try await showRecords()
    try await editBoth()
    try await delete()
    try await growAndShrink()
  }

  // MARK: Saved on one device, imported on the other

  private func saveOnOne() async throws {
    reporter.chapter("1 · Saved on the phone, imported on the laptop")
    let start = reporter.elapsed
    let counts = try await phone.perform { context in
      try insertPosts(into: context)
    }
    reporter.report(
      "phone",
      "saved",
      counts.text,
      milliseconds: reporter.elapsed - start,
      count: counts.total
    )
    let saved = reporter.elapsed
    try await world.until("the posts have arrived on the laptop") {
      let tags = try await laptop.count("Tag")
      let posts = try await laptop.count("Post")
      let images = try await laptop.count("ImageData")
      guard tags == counts.tags, posts == counts.posts, images == counts.attachments else {
        return false
      }
      return try await world.differences().isEmpty
    }
    reporter.report(
      "laptop",
      "sees",
      "all of it: \(counts.text)",
      milliseconds: reporter.elapsed - saved,
      count: counts.total
    )
  }

  private struct Counts: Sendable {
    var posts = 0
    var attachments = 0
    var tags = 0
    var total: Int { posts + 2 * attachments + tags }
    var text: String {
      "\(posts) posts, \(attachments) attachments with their image data, \(tags) tags"
    }
  }

  private func insertPosts(into context: NSManagedObjectContext) throws -> Counts {
    var counts = Counts()
    let tags = ["weather", "water", "swift"].map { name in
      let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
      tag.setValue("\(name) \(values.word())", forKey: "name")
      tag.setValue(values.random.uuid(), forKey: "uuid")
      tag.setValue(
        NSString(string: "#\(String(values.next() % 0xFFFFFF, radix: 16))"),
        forKey: "color"
      )
      counts.tags += 1
      return tag
    }
    for (index, entity) in ["Post", "ImagePost", "VideoPost"].enumerated() {
      let post = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
      post.setValue("\(entity) about \(values.word())", forKey: "title")
      post.setValue("It began with \(values.word()) and \(values.word()).", forKey: "content")
      if entity == "ImagePost" { post.setValue(values.random.bytes(64), forKey: "imageData") }
      if entity == "VideoPost" { post.setValue(values.random.bytes(96), forKey: "videoData") }
      post.setValue(Set([tags[index], tags[(index + 1) % 3]]), forKey: "tags")
      counts.posts += 1
      for _ in 0...(index % 2) {
        let attachment = NSEntityDescription.insertNewObject(
          forEntityName: "Attachment",
          into: context
        )
        attachment.setValue(values.random.uuid(), forKey: "uuid")
        attachment.setValue(values.random.bytes(32), forKey: "thumbnail")
        attachment.setValue(post, forKey: "post")
        let image = NSEntityDescription.insertNewObject(forEntityName: "ImageData", into: context)
        image.setValue(values.random.bytes(4096), forKey: "data")
        attachment.setValue(image, forKey: "imageData")
        counts.attachments += 1
      }
    }
    try context.save()
    return counts
  }

  // MARK: The records

  private func showRecords() async throws {
    reporter.chapter("2 · The records in between, as the server keeps them")
    for entity in ["ImagePost", "Attachment", "ImageData", "Tag"] {
      guard let id = try await laptop.objectID(entity),
        let record = laptop.container.record(for: id)
      else { continue }
      reporter.report(
        "server",
        "record",
        entity,
        lines: "\(record)".components(separatedBy: "\n")
      )
    }
    for record in try await world.edgeRecords(limit: 1) {
      reporter.report(
        "server",
        "record",
        "CDMR, one edge between a post and a tag",
        lines: "\(record)".components(separatedBy: "\n")
      )
    }
  }

  // MARK: Edits on both sides while one is offline

  private func editBoth() async throws {
    reporter.chapter("3 · The laptop goes offline; both sides edit; both sync again")
    laptop.link.isOnline = false
    reporter.report("laptop", "offline", "the network is down; saves continue")
    let word = values.word()
    try await edit(on: laptop, entity: "ImagePost", "title", "A title from the laptop: \(word)")
    try await edit(on: laptop, entity: "VideoPost", "content", "Both wrote this: laptop, \(word)")
    try await laptop.perform { context in
      let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
      tag.setValue("written offline", forKey: "name")
      let request = NSFetchRequest<NSManagedObject>(entityName: "ImagePost")
      if let post = try context.fetch(request).first {
        post.mutableSetValue(forKey: "tags").add(tag)
      }
      try context.save()
    }
    reporter.report("laptop", "saved", "a tag \"written offline\", put on the image post")
    try await edit(on: phone, entity: "ImagePost", "content", "A content from the phone: \(word)")
    try await edit(on: phone, entity: "VideoPost", "content", "Both wrote this: phone, \(word)")
    try await world.until("the phone has sent its edits") { try await phone.isSettled() }

    laptop.link.isOnline = true
    let back = reporter.elapsed
    reporter.report("laptop", "online", "the network is back")
    try await world.converge("both devices agree")
    reporter.report(
      "demo",
      "converged",
      "both devices agree",
      milliseconds: reporter.elapsed - back
    )
    let image = try await phone.texts("ImagePost", ["title", "content"])
    let video = try await phone.texts("VideoPost", ["content"])
    reporter.report(
      "demo",
      "merged",
      "different properties: both edits are kept",
      lines: image
    )
    reporter.report("demo", "merged", "the same property: one edit won, on both", lines: video)
  }

  private func edit(
    on device: DemoDevice,
    entity: String,
    _ key: String,
    _ value: String
  ) async throws {
    try await device.perform { context in
      let request = NSFetchRequest<NSManagedObject>(entityName: entity)
      guard let object = try context.fetch(request).first else {
        throw DemoFailure("There is no \(entity) on the \(device.name).")
      }
      object.setValue(value, forKey: key)
      try context.save()
    }
    reporter.report(device.name, "saved", "\(entity).\(key) = \(value)")
  }

  // MARK: A delete

  private func delete() async throws {
    reporter.chapter("4 · A post is deleted; its attachments go with it")
    let start = reporter.elapsed
    try await phone.perform { context in
      let request = NSFetchRequest<NSManagedObject>(entityName: "VideoPost")
      for post in try context.fetch(request) { context.delete(post) }
      try context.save()
    }
    reporter.report("phone", "deleted", "the video post")
    try await world.until("the video post is deleted on the laptop") {
      guard try await laptop.count("VideoPost") == 0 else { return false }
      return try await world.differences().isEmpty
    }
    reporter.report(
      "laptop",
      "sees",
      "no video post any more",
      milliseconds: reporter.elapsed - start
    )
  }

  // MARK: A text that outgrows a record

  private func growAndShrink() async throws {
    reporter.chapter("5 · A text too large for a record moves into its asset, and back")
    let long = String(repeating: "All the rain of a year, one drop at a time. ", count: 20_000)
    for (text, place) in [(long, "CD_content_ckAsset"), ("Short again.", "CD_content")] {
      let start = reporter.elapsed
      try await phone.perform { context in
        let request = NSFetchRequest<NSManagedObject>(entityName: "ImagePost")
        try context.fetch(request).first?.setValue(text, forKey: "content")
        try context.save()
      }
      reporter.report("phone", "saved", "a content of \(text.utf8.count) bytes")
      try await world.until("the text has arrived on the laptop") {
        try await laptop.texts("ImagePost", ["content"]).first?.hasSuffix(text) ?? false
      }
      reporter.report(
        "laptop",
        "sees",
        "the same \(text.utf8.count) bytes",
        milliseconds: reporter.elapsed - start
      )
      guard let id = try await laptop.objectID("ImagePost"),
        let record = laptop.container.record(for: id)
      else { continue }
      let keys = record.allKeys().filter { $0.hasPrefix("CD_content") }.sorted()
      reporter.report("server", "record", "carries it in \(keys.joined(separator: ", "))")
      guard keys == [place] else {
        throw DemoFailure("The text should travel in \(place); it is in \(keys).")
      }
    }
  }
}
