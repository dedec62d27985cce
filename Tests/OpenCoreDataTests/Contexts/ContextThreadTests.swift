import Foundation
import OpenCoreData
import Testing

/// Run with the thread sanitizer, these tests check that contexts have no data races.
@Suite("Contexts on many threads")
struct ContextThreadTests {
  private let request = NSFetchRequest<NSManagedObject>(entityName: "Item")

  @Test("Many contexts of one coordinator insert, change, fetch and merge at the same time")
  func many() async throws {
    let folder = try StoreFolder()
    let container = try ItemModel.container(at: folder.url.appendingPathComponent("a.sqlite"))
    let viewer = container.newBackgroundContext()
    viewer.automaticallyMergesChangesFromParent = true
    let contexts = (0..<6).map { _ in
      let context = container.newBackgroundContext()
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      context.automaticallyMergesChangesFromParent = true
      return context
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, context) in contexts.enumerated() {
        group.addTask {
          for round in 0..<8 {
            try await context.perform {
              ItemModel.insert(code: "\(number)-\(round)", into: context)
              let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
              for object in try context.fetch(request).prefix(3) {
                object.setValue(number, forKey: "count")
              }
              try context.save()
            }
          }
        }
        group.addTask {
          for _ in 0..<8 {
            viewer.performAndWait {
              for object in viewer.registeredObjects { _ = object.value(forKey: "code") }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    try await viewer.perform {
      try #expect(viewer.count(for: NSFetchRequest<NSManagedObject>(entityName: "Item")) == 48)
    }
  }

  @Test("Children of one parent save into it at the same time")
  func children() async throws {
    let container = try ItemModel.container()
    let parent = container.newBackgroundContext()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<6 {
        group.addTask {
          let child = NSManagedObjectContext(.privateQueue)
          child.parent = parent
          for round in 0..<5 {
            try await child.perform {
              ItemModel.insert(code: "\(number)-\(round)", into: child)
              try child.save()
            }
            try parent.performAndWait { try parent.save() }
          }
        }
      }
      try await group.waitForAll()
    }
    try await parent.perform { try #expect(ItemModel.items(parent).count == 30) }
  }

  @Test("A main-queue context can be used from the main actor and from any thread")
  @MainActor
  func mainQueue() async throws {
    let container = try ItemModel.container()
    let view = container.viewContext
    view.performAndWait { _ = ItemModel.insert(code: "a", into: view) }
    ItemModel.insert(code: "b", into: view)
    try view.save()
    try await Task.detached {
      try view.performAndWait {
        ItemModel.insert(code: "c", into: view)
        try view.save()
      }
    }.value
    let count = try await view.perform {
      try view.count(for: NSFetchRequest<NSManagedObject>(entityName: "Item"))
    }
    #expect(count == 3)
  }

  @Test("A turn of the main queue ends with processing pending changes")
  @MainActor
  func mainTurn() async throws {
    let view = try ItemModel.container().viewContext
    let notes = NoteCollector(view)
    ItemModel.insert(code: "a", into: view)
    #expect(notes.names.isEmpty)
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    #expect(notes.names == ["ObjectsDidChange"])
  }

  @Test("Awaited blocks run immediately on the context's own queue, or after those already queued")
  func schedules() async throws {
    let context = try ItemModel.container().newBackgroundContext()
    final class Order: @unchecked Sendable {
      var all: [String] = []
    }
    let order = Order()
    func queue(_ name: String) { context.perform { order.all.append(name) } }
    queue("queued")
    await context.perform(schedule: .enqueued) { order.all.append("enqueued") }
    await context.perform(schedule: .immediate) { order.all.append("immediate") }
    #expect(order.all == ["queued", "enqueued", "immediate"])
    context.performAndWait {
      queue("later")
      context.performAndWait { order.all.append("nested") }
      order.all.append("outer")
    }
    context.performAndWait {}
    #expect(order.all.suffix(3) == ["nested", "outer", "later"])
  }
}
