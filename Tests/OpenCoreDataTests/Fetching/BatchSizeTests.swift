import Foundation
import OpenCoreData
import Testing

@Suite("Fetching in batches")
struct BatchSizeTests {
  @Test("A batch size returns faults, and firing the first reads the rows of its batch")
  func batches() throws {
    let container = try FetchWorld.container(posts: 10)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let request = FetchWorld.request()
      request.fetchBatchSize = 4
      let posts = try context.fetch(request)
      #expect(posts.count == 10)
      #expect(posts.allSatisfy { $0.isFault && !$0.hasLoadedRow })
      #expect(posts[5].title == "post 05")
      #expect(posts.map(\.hasLoadedRow) == (0..<10).map { (4..<8).contains($0) })
      #expect(posts.map(\.title) == (0..<10).map { "post 0\($0)" })
    }
  }

  @Test("Relationships are prefetched with each batch")
  func prefetching() throws {
    let container = try FetchWorld.container(posts: 6)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let request = FetchWorld.request()
      request.fetchBatchSize = 3
      request.relationshipKeyPathsForPrefetching = ["tags"]
      let posts = try context.fetch(request)
      _ = posts[0].title
      #expect(
        posts.map { !$0.hasFault(forRelationshipNamed: "tags") }
          == [true, true, true, false, false, false]
      )
    }
  }

  @Test("Unsaved objects are in the batches too")
  func pendingChanges() throws {
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      WorldPost(context: context).title = "new"
      let request = FetchWorld.request()
      request.fetchBatchSize = 2
      try #expect(context.fetch(request).map(\.title) == ["new", "post 00", "post 01", "post 02"])
      try #expect(
        context.objects(matching: request).map(\.title)
          == ["new", "post 00", "post 01", "post 02"]
      )
    }
  }

  @Test("A batched collection retains few objects, and keeps changes in them")
  func collection() throws {
    let container = try FetchWorld.container(posts: 25)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let posts = try context.objects(matching: FetchWorld.request(), batchSize: 5)
      #expect(posts.count == 25)
      #expect(posts.batchSize == 5)
      #expect(context.registeredObjects.isEmpty)
      for (number, post) in posts.enumerated() {
        #expect(post.views == Int64(number))
        if number == 3 { post.title = "changed" }
      }
      context.processPendingChanges()
      #expect(context.registeredObjects.count == 11)
      #expect(posts[3].title == "changed")
      #expect(posts.last?.views == 24)
      #expect(posts.reversed().map(\.views) == (0..<25).reversed().map(Int64.init))
      #expect(posts.objectIDs.count == 25)
      try context.save()
    }
  }

  @Test("Batches come as an asynchronous sequence, and stop when the task is cancelled")
  func sequence() async throws {
    let container = try FetchWorld.container(posts: 7)
    let context = container.newBackgroundContext()
    var sizes: [Int] = []
    for try await batch in context.batches(matching: FetchWorld.request(), size: 3) {
      sizes.append(await context.perform { batch.filter { !$0.title.isEmpty }.count })
    }
    #expect(sizes == [3, 3, 1])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      for try await _ in context.batches(matching: FetchWorld.request(), size: 3) {}
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}

extension NSManagedObject {
  /// Whether the row has been read, even if the object is still a fault.
  fileprivate var hasLoadedRow: Bool { !isFault || isPrefetched }
}
