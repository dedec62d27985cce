import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("Asynchronous fetches")
struct AsynchronousFetchTests {
  /// Executes the fetch and waits for its end.
  private func finished<T>(
    _ request: NSFetchRequest<T>,
    in context: NSManagedObjectContext,
    before: (NSAsynchronousFetchResult<T>) -> Void = { _ in }
  ) async throws -> [T]? {
    nonisolated(unsafe) var end: NSAsynchronousFetchResult<T>?
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      context.performAndWait {
        let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request) { result in
          end = result
          continuation.resume()
        }
        do {
          let result = try context.execute(asynchronous) as? NSAsynchronousFetchResult<T>
          #expect(result?.finalResult == nil)
          #expect(result?.managedObjectContext === context)
          #expect(result?.fetchRequest === asynchronous)
          if let result { before(result) }
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
    if let error = end?.operationError { throw error }
    return end?.finalResult
  }

  @Test("The result is delivered later, on the context's queue, with the objects in order")
  func objects() async throws {
    let container = try FetchWorld.container(posts: 1200)
    let context = container.newBackgroundContext()
    let posts = try #require(try await finished(FetchWorld.request(), in: context))
    let titles = await context.perform { posts.map(\.title) }
    #expect(titles.count == 1200)
    #expect(titles == titles.sorted())
  }

  @Test("Unsaved objects are found too, and prefetching works")
  func pendingChanges() async throws {
    let container = try FetchWorld.container(posts: 2)
    let context = container.newBackgroundContext()
    context.performAndWait { WorldPost(context: context).title = "a new one" }
    let request = FetchWorld.request()
    request.relationshipKeyPathsForPrefetching = ["tags"]
    let posts = try #require(try await finished(request, in: context))
    await context.perform {
      #expect(posts.map(\.title) == ["a new one", "post 00", "post 01"])
      #expect(!posts[1].hasFault(forRelationshipNamed: "tags"))
    }
  }

  @Test("Identifiers, counts and dictionaries can be fetched asynchronously")
  func otherResults() async throws {
    let container = try FetchWorld.container(posts: 4)
    let context = container.newBackgroundContext()
    let counts = NSFetchRequest<NSNumber>(entityName: "Post")
    counts.resultType = .countResultType
    try await #expect(finished(counts, in: context) == [4])
    let identifiers = NSFetchRequest<NSManagedObjectID>(entityName: "Post")
    identifiers.resultType = .managedObjectIDResultType
    try await #expect(finished(identifiers, in: context)?.count == 4)
    let dictionaries = NSFetchRequest<NSDictionary>(entityName: "Post")
    dictionaries.resultType = .dictionaryResultType
    try await #expect(finished(dictionaries, in: context)?.count == 4)
  }

  @Test("A cancelled fetch ends with NSUserCancelledError and without a result")
  func cancellation() async throws {
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    let error = await #expect(throws: NSError.self) {
      _ = try await finished(FetchWorld.request(), in: context) { $0.cancel() }
    }
    #expect(error?.domain == NSCocoaErrorDomain)
    #expect(error?.code == 3072)
    await #expect(throws: NSError.self) {
      _ = try await finished(FetchWorld.request(), in: context) { $0.progress?.cancel() }
    }
  }

  @Test("The progress is a child of the current one and ends completed")
  func progress() async throws {
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    let whole = Progress(totalUnitCount: 1)
    nonisolated(unsafe) var own: Progress?
    let request = NSAsynchronousFetchRequest(fetchRequest: FetchWorld.request())
    #expect(request.estimatedResultCount == 0)
    request.estimatedResultCount = 10
    let stream = AsyncStream<Void>.makeStream()
    let waiting = NSAsynchronousFetchRequest(fetchRequest: FetchWorld.request()) { _ in
      stream.continuation.finish()
    }
    waiting.estimatedResultCount = 10
    try context.performAndWait {
      whole.becomeCurrent(withPendingUnitCount: 1)
      let result = try context.execute(waiting) as? NSPersistentStoreAsynchronousResult
      whole.resignCurrent()
      own = result?.progress
    }
    for await _ in stream.stream {}
    #expect(own?.completedUnitCount == 3)
    #expect(own?.totalUnitCount == 3)
    #expect(whole.fractionCompleted == 1)
  }

  /// On a thread of its own, because it keeps the lane until the rows were read.
  @Test("An asynchronous fetch does not overwrite values that its context saved meanwhile")
  func olderRows() async throws {
    let container = try FetchWorld.container(posts: 2)
    let context = container.newBackgroundContext()
    let request = FetchWorld.request()
    request.shouldRefreshRefetchedObjects = true
    let post = try #require(
      try context.performAndWait { try context.fetch(FetchWorld.request()).first }
    )
    nonisolated(unsafe) var end: NSAsynchronousFetchResult<WorldPost>?
    nonisolated(unsafe) let (kept, asked) = (post, request)
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      Thread.detachNewThread {
        context.performAndWait {
          do {
            _ = kept.title
            let asynchronous = NSAsynchronousFetchRequest(fetchRequest: asked) { result in
              end = result
              continuation.resume()
            }
            let result = try context.execute(asynchronous) as? NSPersistentStoreAsynchronousResult
            // The last of two rows is counted when the result is delivered.
            while result?.progress?.completedUnitCount != 1 { sched_yield() }
            kept.title = "new"
            try context.save()
          } catch {
            continuation.resume(throwing: error)
          }
        }
      }
    }
    let titles = await context.perform { end?.finalResult?.map(\.title) }
    #expect(titles == ["new", "post 01"])
    try await context.perform {
      #expect(kept.title == "new")
      kept.title = "newer"
      try context.save()
    }
  }
}
