import Foundation
import OpenCoreData
import Testing

/// A fetch with a batch size that finds very many objects releases the values of earlier batches.
@Suite("Iterating over very many objects in batches")
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

  @Test("Unretained objects become faults two batches later, and can be read again")
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

  @Test("Retained or changed objects keep their values")
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

  @Test("Identifiers may be read on other threads during the iteration")
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

/// Objects that are used on their context's lane, except for their identifiers.
private struct LaneBox: @unchecked Sendable {
  let value: [WorldPost]

  init(_ value: [WorldPost]) {
    self.value = value
  }
}
