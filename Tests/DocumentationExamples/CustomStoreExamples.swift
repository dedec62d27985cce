import CoreData
import Foundation
import Testing

// example: NSAtomicStore
final class LinesStore: NSAtomicStore, @unchecked Sendable {
  override func load() throws {
    guard let url, let text = try? String(contentsOf: url, encoding: .utf8),
      let note = persistentStoreCoordinator?.managedObjectModel.entitiesByName["Note"]
    else { return }
    let nodes = text.split(separator: "\n").enumerated().map { number, line in
      let objectID = objectID(for: note, withReferenceObject: number + 1)
      let node = NSAtomicStoreCacheNode(objectID: objectID)
      node.setValue(String(line), forKey: "text")
      return node
    }
    addCacheNodes(Set(nodes))
  }

  override func save() throws {
    let lines = cacheNodes().compactMap { $0.value(forKey: "text") as? String }
    if let url { try Data(lines.joined(separator: "\n").utf8).write(to: url, options: .atomic) }
  }
}
// end

// example: NSIncrementalStore
final class GreetingStore: NSIncrementalStore, @unchecked Sendable {
  private let greetings = ["Good morning", "Good night"]

  override func execute(
    _ request: NSPersistentStoreRequest,
    with context: NSManagedObjectContext?
  ) throws -> Any {
    guard let fetch = request as? NSFetchRequest<any NSFetchRequestResult>,
      let note = fetch.entity, let context
    else { throw CocoaError(.featureUnsupported) }
    return greetings.indices.map { index in
      context.object(with: newObjectID(for: note, referenceObject: index))
    }
  }

  override func newValuesForObject(
    with objectID: NSManagedObjectID,
    with context: NSManagedObjectContext
  ) throws -> NSIncrementalStoreNode {
    let index = referenceObject(for: objectID) as? Int ?? 0
    let values = ["text": greetings[index]]
    return NSIncrementalStoreNode(objectID: objectID, withValues: values, version: 1)
  }
}
// end

@Suite("Examples: stores of an app's own")
struct CustomStoreExamples {
  private func context(
    _ storeClass: NSPersistentStore.Type,
    _ storeType: String,
    at url: URL
  ) throws -> NSManagedObjectContext {
    let text = NSAttributeDescription()
    text.name = "text"
    text.type = .string
    let note = NSEntityDescription()
    note.name = "Note"
    note.properties = [text]
    let model = NSManagedObjectModel()
    model.entities = [note]
    NSPersistentStoreCoordinator.registerStoreClass(storeClass, forStoreType: storeType)
    let container = NSPersistentContainer(name: "Notes", managedObjectModel: model)
    let description = NSPersistentStoreDescription(url: url)
    description.type = storeType
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container.newBackgroundContext()
  }

  private func texts(_ context: NSManagedObjectContext) throws -> [String] {
    try context.performAndWait {
      try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
        .compactMap { $0.value(forKey: "text") as? String }
    }
  }

  @Test("An atomic store reads and writes a text file")
  func atomic() async throws {
    try await Blog.withFolder { folder in
      let url = folder.appendingPathComponent("Notes.txt")
      try Data("Buy milk".utf8).write(to: url)
      let context = try context(LinesStore.self, "ExampleLines", at: url)
      #expect(try texts(context) == ["Buy milk"])
      try context.performAndWait {
        let note = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
        note.setValue("Call Ada", forKey: "text")
        try context.save()
      }
      let written = try String(contentsOf: url, encoding: .utf8)
      #expect(Set(written.split(separator: "\n")) == ["Buy milk", "Call Ada"])
    }
  }

  @Test("An incremental store returns the objects of a program's own values")
  func incremental() async throws {
    try await Blog.withFolder { folder in
      let url = folder.appendingPathComponent("Greetings")
      let context = try context(GreetingStore.self, "ExampleGreetings", at: url)
      #expect(try texts(context) == ["Good morning", "Good night"])
    }
  }
}
