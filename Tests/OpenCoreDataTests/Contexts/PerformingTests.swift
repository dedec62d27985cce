import Effects
import Foundation
import OpenCoreData
import Synchronization
import Testing

@Suite("perform and performAndWait")
struct PerformingTests {
  struct Refusal: Error {}

  @Test("Blocks run on the lane, one at a time, and their results or errors are returned")
  func asynchronous() async throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    let count = try await context.perform {
      let reader = Reader(context: context)
      reader.name = "Ada"
      try context.save()
      return try context.count(for: NSFetchRequest<Reader>(entityName: "Reader"))
    }
    #expect(count == 1)
    await #expect(throws: Refusal.self) {
      try await context.perform { throw Refusal() }
    }
    let plain = await context.perform(schedule: .enqueued) { 7 }
    #expect(plain == 7)
  }

  @Test("performAndWait may be nested, and rethrows")
  func nested() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    let value = context.performAndWait { context.performAndWait { 5 } }
    #expect(value == 5)
    #expect(throws: Refusal.self) { try context.performAndWait { throw Refusal() } }
  }

  @Test("The changes of a turn are posted when its block ends")
  func turns() async throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    let notes = NoteCollector(context)
    await context.perform {
      let reader = Reader(context: context)
      reader.age = 3
      #expect(reader.changedValuesForCurrentEvent()["age"] as? Int == 18)
      #expect(notes.names.isEmpty)
    }
    #expect(notes.names == ["ObjectsDidChange"])
    await context.perform {
      #expect(context.insertedObjects.first?.changedValuesForCurrentEvent().isEmpty == true)
    }
  }

  /// The block is a part of the event: an app that has called it can still begin to observe.
  @Test("On the main thread the changes of a main-queue context are posted at the event's end")
  @MainActor
  func mainThread() async throws {
    let library = try Library(inMemory: true)
    let context = library.container.viewContext
    let notes = NoteCollector(context)
    let reader = context.performAndWait { Reader(context: context) }
    #expect(notes.names.isEmpty)
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    #expect(notes.names == ["ObjectsDidChange"])
    try context.performAndWait {
      reader.name = "Ada"
      try context.save()
    }
    context.performAndWait { context.delete(reader) }
    let deleted = NoteCollector(context)
    #expect(reader.isDeleted)
    try context.performAndWait { try context.save() }
    #expect(deleted.names == ["ObjectsDidChange", "WillSave", "DidSave", "DidSaveObjectIDs"])
  }

  @Test("Background tasks have contexts of their own; the view context is of the main queue")
  func container() async throws {
    let library = try Library(inMemory: true)
    let name = try await library.container.performBackgroundTask { context in
      let reader = Reader(context: context)
      reader.name = "Ada"
      try context.save()
      return reader.name
    }
    #expect(name == "Ada")
    let view = library.container.viewContext
    #expect(view.concurrencyType == .mainQueueConcurrencyType)
    let count = try await view.perform {
      try view.fetch(NSFetchRequest<Reader>(entityName: "Reader")).count
    }
    #expect(count == 1)
  }

  @Test("A fetch request can run itself inside a context's block")
  func execute() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      _ = Reader(context: context)
      try #expect(NSFetchRequest<Reader>(entityName: "Reader").execute().count == 1)
    }
  }

  @Test("Blocks of a private context do not run on Swift's cooperative pool")
  func beyondThePool() throws {
    var effects = Effects.live
    let pool = CountingSpawner()
    effects.tasks = pool
    let coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: LibraryModel.make(),
      effects: effects
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    let done = DispatchSemaphore(value: 0)
    context.perform { done.signal() }
    done.wait()
    #expect(pool.count == 0)
  }
}

/// Counts the tasks spawned on the pool; waiting work runs as in an app.
private final class CountingSpawner: TaskSpawner {
  private let spawned = Mutex(0)

  var count: Int { spawned.withLock { $0 } }

  func spawn(_ operation: @escaping @Sendable () async -> Void) -> SpawnedTask {
    spawned.withLock { $0 += 1 }
    return Effects.live.tasks.spawn(operation)
  }

  func waiting(_ label: String) -> any TaskSpawner { Effects.live.tasks.waiting(label) }
}
