import Foundation
import OpenCoreData
import Testing

/// Of a fetch with a batch size that finds very many objects, batches left behind let go of what
/// they loaded.
@Suite("Walking very many objects in batches")
struct LargeBatchTests {
  private static let count = 9000

  private func container() throws -> NSPersistentContainer {
    let container = try FetchWorld.container()
    let context = container.newBackgroundContext()
    try context.performAndWait {
      var number: Int64 = 0
      let request = NSBatchInsertRequest(entityName: "Post") { (object: NSManagedObject) -> Bool in
        guard number < Self.count else { return true }
        object.setValue("post \(number)", forKey: "title")
        object.setValue(number, forKey: "views")
        number += 1
        return false
      }
      try context.execute(request)
    }
    return container
  }

  private func posts(_ context: NSManagedObjectContext) throws -> [WorldPost] {
    let request = NSFetchRequest<WorldPost>(entityName: "Post")
    request.sortDescriptors = [NSSortDescriptor(key: "views", ascending: true)]
    request.fetchBatchSize = 100
    return try context.fetch(request)
  }

  @Test("Objects that nobody else holds are faults again two batches later, and read the same")
  func fading() throws {
    let context = try container().newBackgroundContext()
    try context.performAndWait {
      let posts = try self.posts(context)
      #expect(posts.count == Self.count)
      var loaded = 0
      for (number, post) in posts.enumerated() {
        #expect(post.views == Int64(number))
        if number % 1000 == 999 { loaded = max(loaded, posts.count { !$0.isFault }) }
      }
      #expect((1...200).contains(loaded))
      #expect(posts[0].isFault)
      for number in [0, 8999, 4000, 17] { #expect(posts[number].title == "post \(number)") }
    }
  }

  @Test("Objects that somebody holds or changed stay as they are")
  func staying() throws {
    let context = try container().newBackgroundContext()
    try context.performAndWait {
      let posts = try self.posts(context)
      let held = posts[3]
      #expect(held.title == "post 3")
      posts[4].title = "changed"
      let identifier = posts[5].objectID
      #expect(posts[5].title == "post 5")
      for post in posts.dropFirst(100) { _ = post.views }
      #expect(!held.isFault)
      #expect(posts[4].hasChanges && posts[4].title == "changed")
      #expect(posts[5].objectID === identifier)
      #expect(posts[6].isFault)
      #expect(context.object(with: identifier) === posts[5])
      try context.save()
      #expect(context.updatedObjects.isEmpty)
      #expect(posts.count { $0.title == "changed" } == 1)
    }
  }

  @Test("Identifiers may be asked for on other threads while a walk goes on")
  func identifiers() async throws {
    let context = try container().newBackgroundContext()
    let posts = LaneBox(try context.performAndWait { try self.posts(context) })
    await withTaskGroup(of: Int.self) { group in
      group.addTask { Set(posts.value.map(\.objectID)).count }
      group.addTask { Set(posts.value.reversed().map(\.objectID)).count }
      group.addTask {
        context.performAndWait { posts.value.reduce(0) { $0 + ($1.views >= 0 ? 1 : 0) } }
      }
      for await count in group { #expect(count == Self.count) }
    }
  }
}

/// Objects that are used on their context's lane, but for their identifiers.
private struct LaneBox: @unchecked Sendable {
  let value: [WorldPost]

  init(_ value: [WorldPost]) {
    self.value = value
  }
}
