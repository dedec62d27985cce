import Dispatch
import Effects
import Foundation
import OpenCoreData
import Synchronization
import Testing

/// The rows of each fetch are read before the context's next changes, and delivered after them.
@Suite("Asynchronous fetches that a save overtakes")
struct OvertakenFetchTests {
  private let tasks = WatchedTasks()
  private let container: NSPersistentContainer
  private let context: NSManagedObjectContext

  init() throws {
    var effects = Effects.live
    effects.tasks = tasks
    container = NSPersistentContainer(
      name: "World",
      managedObjectModel: FetchWorld.model(),
      effects: effects
    )
    let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    context = container.newBackgroundContext()
    try context.performAndWait {
      let post = WorldPost(context: context)
      post.title = "old"
      try context.save()
      context.reset()
    }
  }

  /// Reads the rows of a fetch, runs the body on the context's lane, and returns what is delivered
  /// afterwards.
  private func fetch(
    _ request: NSFetchRequest<WorldPost>,
    overtakenBy body: @escaping @Sendable (WorldPost) throws -> Void
  ) async throws -> [WorldPost] {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    nonisolated(unsafe) var end: NSAsynchronousFetchResult<WorldPost>?
    let (context, tasks) = (context, tasks)
    nonisolated(unsafe) let request = request
    // The lane has a thread of its own, on which the block may wait.
    try await context.perform {
      let post = try #require(try context.fetch(FetchWorld.request()).first)
      #expect(post.title == "old")
      let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request) { result in
        end = result
        continuation.finish()
      }
      tasks.isWatching = true
      _ = try context.execute(asynchronous)
      tasks.waitForEnd()
      try body(post)
    }
    for await _ in stream {}
    if let error = end?.operationError { throw error }
    return try #require(end?.finalResult)
  }

  @Test("A row that the context saved since it was read is not put over the newer one")
  func ownSave() async throws {
    let request = FetchWorld.request()
    request.shouldRefreshRefetchedObjects = true
    let context = context
    let posts = try await fetch(request) { post in
      post.title = "new"
      try context.save()
    }
    try await context.perform {
      #expect(posts.map(\.title) == ["new"])
      posts.first?.title = "newest"
      try context.save()
    }
  }

  @Test("An object that the context deleted and saved since is not delivered")
  func ownDeletion() async throws {
    let context = context
    let posts = try await fetch(FetchWorld.request()) { post in
      context.delete(post)
      try context.save()
    }
    #expect(posts.isEmpty)
  }

  @Test(
    "A row that the context read again since is not put over the newer one",
    arguments: [false, true]
  )
  func otherSave(isFault: Bool) async throws {
    let request = FetchWorld.request()
    request.shouldRefreshRefetchedObjects = true
    request.returnsObjectsAsFaults = false
    let (context, other) = (context, container.newBackgroundContext())
    let posts = try await fetch(request) { post in
      try other.performAndWait {
        try other.fetch(FetchWorld.request()).first?.title = "theirs"
        try other.save()
      }
      context.refresh(post, mergeChanges: false)
      if !isFault { #expect(post.title == "theirs") }
    }
    await context.perform {
      #expect(posts.map(\.isFault) == [false])
      #expect(posts.map(\.title) == ["theirs"])
    }
  }
}

/// Runs tasks on a thread of its own, and says when the first one that is watched has ended.
private final class WatchedTasks: TaskSpawner {
  private let thread = Effects.live.tasks.waiting("Overtaken fetches")
  private let watching = Mutex(false)
  private let ended = DispatchSemaphore(value: 0)

  var isWatching: Bool {
    get { watching.withLock { $0 } }
    set { watching.withLock { $0 = newValue } }
  }

  /// Blocks a thread that is not of the concurrent pool.
  func waitForEnd() { ended.wait() }

  func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask {
    guard isWatching else { return thread.spawn(operation) }
    isWatching = false
    return thread.spawn { [ended] in
      await operation()
      ended.signal()
    }
  }

  /// The fetch reads beside the pool; contexts have lanes of their own.
  func waiting(_ label: String) -> any TaskSpawner {
    label == "asynchronous fetch" ? self : Effects.live.tasks.waiting(label)
  }
}
