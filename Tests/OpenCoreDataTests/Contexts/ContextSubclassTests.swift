import Foundation
import OpenCoreData
import Testing

/// A context that runs asynchronous blocks immediately and can refuse to save, as a test double.
private final class DoubleContext: NSManagedObjectContext, @unchecked Sendable {
  var failure: (any Error)?
  private(set) var calls: [String] = []

  override func perform(_ block: @escaping () -> Void) {
    calls.append("perform")
    performAndWait(block)
  }

  override func save() throws {
    calls.append("save")
    if let failure { throw failure }
    try super.save()
  }

  override var hasChanges: Bool {
    calls.append("hasChanges")
    return super.hasChanges
  }

  override func delete(_ object: NSManagedObject) {
    calls.append("delete")
    super.delete(object)
  }

  override func object(with objectID: NSManagedObjectID) -> NSManagedObject {
    calls.append("object")
    return super.object(with: objectID)
  }

  override func execute(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
    calls.append("execute")
    return try super.execute(request)
  }

  override func reset() {
    calls.append("reset")
    super.reset()
  }
}

@Suite("Subclasses of contexts")
struct ContextSubclassTests {
  private func context() throws -> DoubleContext {
    let container = try ItemModel.container()
    let context = DoubleContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = container.persistentStoreCoordinator
    return context
  }

  @Test("perform(_:) can be overridden to run its block at once")
  func performing() throws {
    let context = try context()
    var ran = false
    context.perform { ran = true }
    #expect(ran)
    #expect(context.calls == ["perform"])
  }

  @Test("A save that a subclass refuses keeps the changes")
  func failingSave() throws {
    let context = try context()
    try context.performAndWait {
      ItemModel.insert(code: "a", into: context)
      context.failure = CocoaError(.fileWriteOutOfSpace)
      #expect(throws: CocoaError.self) { try context.save() }
      #expect(context.insertedObjects.count == 1)
      context.failure = nil
      try context.save()
      #expect(context.insertedObjects.isEmpty)
    }
  }

  @Test("Requests to a context call the methods of its subclass")
  func requests() throws {
    let context = try context()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      #expect(context.object(with: item.objectID) === item)
      context.delete(item)
      _ = try context.execute(
        NSBatchDeleteRequest(fetchRequest: NSFetchRequest(entityName: "Box"))
      )
      context.reset()
    }
    let expected = ["save", "object", "delete", "execute", "reset"]
    #expect(context.calls.filter(expected.contains) == expected)
  }
}
