import Foundation
import OpenCoreData
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Each test runs in a process of its own, as the launch argument is read once.
@Suite("Using contexts off their queue, with -com.apple.CoreData.ConcurrencyDebug 1")
struct ConcurrencyDebugTests {
  private static func enable() {
    setenv("com.apple.CoreData.ConcurrencyDebug", "1", 1)
  }

  private static let sentence = "__Multithreading_Violation_AllThatIsLeftToUsIsHonor__"

  @Test("With the check, using a context on its queue works")
  func onQueue() async {
    await #expect(processExitsWith: .success) {
      Self.enable()
      let container = try ItemModel.container()
      let context = container.newBackgroundContext()
      let child = NSManagedObjectContext(.privateQueue)
      child.parent = context
      try await context.perform {
        let item = ItemModel.insert(code: "a", into: context)
        item.setValue(ItemModel.insert("Box", into: context), forKey: "box")
        try context.save()
        context.refreshAllObjects()
        _ = item.value(forKeyPath: "box.items")
      }
      try child.performAndWait {
        let item = try #require(
          try child.fetch(NSFetchRequest<NSManagedObject>(entityName: "Item")).first
        )
        item.setValue("b", forKey: "code")
        try child.save()
      }
      try await context.perform { try context.save() }
    }
  }

  @Test("Using a private context outside perform stops the program")
  func context() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Self.enable()
      let context = try ItemModel.container().newBackgroundContext()
      ItemModel.insert(into: context)
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("CoreData: annotation: Core Data multi-threading assertions enabled."))
    #expect(text.contains(Self.sentence))
  }

  @Test("Reading an object outside perform stops the program")
  func reading() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Self.enable()
      let context = try ItemModel.container().newBackgroundContext()
      let item = context.performAndWait { ItemModel.insert(code: "a", into: context) }
      _ = item.objectID
      FileHandle.standardError.write(Data("reading".utf8))
      _ = item.value(forKey: "code")
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("reading"))
    #expect(text.contains(Self.sentence))
  }

  @Test("Changing a relationship, or fetching on another context's queue, stops the program")
  func others() async {
    await #expect(processExitsWith: .failure) {
      Self.enable()
      let context = try ItemModel.container().newBackgroundContext()
      let box = context.performAndWait { ItemModel.insert("Box", into: context) }
      box.mutableSetValue(forKey: "items").removeAllObjects()
    }
    await #expect(processExitsWith: .failure) {
      Self.enable()
      let container = try ItemModel.container()
      let context = container.newBackgroundContext()
      try container.newBackgroundContext().performAndWait {
        _ = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Item"))
      }
    }
  }

  @Test("Without the argument nothing is checked")
  func unchecked() throws {
    let context = try ItemModel.container().newBackgroundContext()
    let item = ItemModel.insert(code: "a", into: context)
    try context.save()
    #expect(item.value(forKey: "code") as? String == "a")
  }
}
