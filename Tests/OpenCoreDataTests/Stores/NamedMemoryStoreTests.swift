import Foundation
import OpenCoreData
import Testing

@Suite("SQLite stores at and below /dev/null")
struct NamedMemoryStoreTests {
  private static let places = ["/dev/null", "/dev/null/Notes.sqlite", "/dev/null/folder/Notes"]
  private let request = NSFetchRequest<NSManagedObject>(entityName: "Note")

  private func model() -> NSManagedObjectModel {
    let title = NSAttributeDescription()
    title.name = "title"
    title.attributeType = .stringAttributeType
    let rank = NSAttributeDescription()
    rank.name = "rank"
    rank.attributeType = .integer64AttributeType
    rank.isOptional = true
    let photo = NSAttributeDescription()
    photo.name = "photo"
    photo.attributeType = .binaryDataAttributeType
    photo.allowsExternalBinaryDataStorage = true
    photo.isOptional = true
    let note = NSEntityDescription()
    note.name = "Note"
    note.properties = [title, rank, photo]
    note.uniquenessConstraints = [["title"]]
    let model = NSManagedObjectModel()
    model.entities = [note]
    return model
  }

  private func container(at path: String) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "Notes", managedObjectModel: model())
    let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: path))
    description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  private func insert(_ title: String, _ context: NSManagedObjectContext) -> NSManagedObject {
    let note = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
    note.setValue(title, forKey: "title")
    return note
  }

  private func titles(_ context: NSManagedObjectContext) throws -> [String] {
    try context.fetch(request).compactMap { $0.value(forKey: "title") as? String }.sorted()
  }

  /// CareKit and the tests of many packages name their stores in memory so.
  @Test("A container opens a store there, whose URL it keeps", arguments: places)
  func opening(path: String) throws {
    let container = try container(at: path)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      _ = insert("milk", context)
      try context.save()
      try #expect(context.count(for: request) == 1)
    }
    let store = try #require(container.persistentStoreCoordinator.persistentStores.first)
    #expect(store.url?.path == path)
    #expect(store.type == NSSQLiteStoreType)
    #expect(store.metadata[NSStoreTypeKey] as? String == NSSQLiteStoreType)
    #expect(store.metadata[NSStoreUUIDKey] as? String == store.identifier)
    #expect(!store.isReadOnly)
  }

  @Test("Two coordinators share nothing, at one name or at two", arguments: ["A", "B"])
  func apart(name: String) throws {
    let containers = [try container(at: "/dev/null/A"), try container(at: "/dev/null/\(name)")]
    let first = containers[0].newBackgroundContext()
    try first.performAndWait {
      _ = insert("milk", first)
      try first.save()
    }
    let second = containers[1].newBackgroundContext()
    try #expect(second.performAndWait { try second.count(for: request) } == 0)
  }

  @Test("History has each transaction, and its tokens continue", arguments: places)
  func history(path: String) throws {
    let container = try container(at: path)
    let context = container.newBackgroundContext()
    let coordinator = container.persistentStoreCoordinator
    try context.performAndWait {
      let note = insert("milk", context)
      try context.save()
      let token = try #require(coordinator.currentPersistentHistoryToken(fromStores: nil))
      note.setValue("tea", forKey: "title")
      try context.save()
      let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
      let transactions =
        (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
      #expect(transactions.compactMap { $0.changes?.map(\.changeType) } == [[.update]])
    }
  }

  @Test("Unique values conflict, and a merge policy merges them", arguments: places)
  func uniqueness(path: String) throws {
    let container = try container(at: path)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      _ = insert("milk", context)
      try context.save()
      insert("milk", context).setValue(2, forKey: "rank")
      #expect(errorCode { try context.save() } == NSManagedObjectConstraintMergeError)
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      let notes = try context.fetch(request)
      #expect(notes.compactMap { $0.value(forKey: "rank") as? Int } == [2])
    }
  }

  @Test("Batch requests and aggregates work", arguments: places)
  func batches(path: String) throws {
    let container = try container(at: path)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let rows = (1...5).map { ["title": "note \($0)", "rank": $0] as [String: Any] }
      try context.execute(NSBatchInsertRequest(entityName: "Note", objects: rows))
      let update = NSBatchUpdateRequest(entityName: "Note")
      update.predicate = NSPredicate(format: "rank > 3")
      update.propertiesToUpdate = ["rank": 10]
      try context.execute(update)
      let low = NSFetchRequest<any NSFetchRequestResult>(entityName: "Note")
      low.predicate = NSPredicate(format: "rank == 1")
      try context.execute(NSBatchDeleteRequest(fetchRequest: low))
      try #expect(titles(context) == ["note 2", "note 3", "note 4", "note 5"])
      let sum = NSExpressionDescription()
      sum.name = "sum"
      sum.expression = NSExpression(format: "@sum.rank")
      sum.expressionResultType = .integer64AttributeType
      let sums = NSFetchRequest<NSDictionary>(entityName: "Note")
      sums.resultType = .dictionaryResultType
      sums.propertiesToFetch = [sum]
      try #expect(context.fetch(sums).first?["sum"] as? Int == 25)
    }
  }

  @Test("Large values stay in memory", arguments: places)
  func largeValues(path: String) throws {
    let container = try container(at: path)
    let context = container.newBackgroundContext()
    let photo = Data(repeating: 7, count: 300_000)
    try context.performAndWait {
      insert("milk", context).setValue(photo, forKey: "photo")
      try context.save()
      context.reset()
      try #expect(context.fetch(request).first?.value(forKey: "photo") as? Data == photo)
    }
    #expect(!FileManager.default.fileExists(atPath: "/dev/.null_SUPPORT"))
  }

  @Test("Destroying the store removes it from its coordinator, and has no file to delete")
  func destroying() throws {
    let container = try container(at: "/dev/null/Notes.sqlite")
    let coordinator = container.persistentStoreCoordinator
    let url = URL(fileURLWithPath: "/dev/null/Notes.sqlite")
    try coordinator.destroyPersistentStore(at: url, type: .sqlite)
    #expect(coordinator.persistentStores.isEmpty)
    try coordinator.destroyPersistentStore(at: url, type: .sqlite)
    try coordinator.addPersistentStore(type: .sqlite, at: url)
    let context = container.newBackgroundContext()
    try #expect(context.performAndWait { try context.count(for: request) } == 0)
  }

  @Test("Metadata and models of stores in memory are asked of their coordinators alone")
  func metadata() throws {
    let container = try container(at: "/dev/null/Notes.sqlite")
    let coordinator = container.persistentStoreCoordinator
    let store = try #require(coordinator.persistentStores.first)
    let url = try #require(store.url)
    coordinator.setMetadata(["color": "red"], for: store)
    #expect(coordinator.metadata(for: store)["color"] as? String == "red")
    for path in Self.places {
      let code = errorCode {
        _ = try NSPersistentStoreCoordinator.metadataForPersistentStore(
          type: .sqlite,
          at: URL(fileURLWithPath: path)
        )
      }
      #expect(code == CocoaError.fileReadNoSuchFile.rawValue)
    }
    let code = errorCode {
      try coordinator.replacePersistentStore(
        at: URL(fileURLWithPath: "/dev/null/Copy.sqlite"),
        withPersistentStoreFrom: url,
        type: .sqlite
      )
    }
    #expect(code == CocoaError.fileReadNoSuchFile.rawValue)
    #expect(coordinator.persistentStores == [store])
  }

  @Test("A store moves into memory and back to a file, with its large values")
  func moving() throws {
    let folder = try StoreFolder()
    let container = try container(at: "/dev/null/A.sqlite")
    let coordinator = container.persistentStoreCoordinator
    let context = container.newBackgroundContext()
    let photo = Data(repeating: 7, count: 300_000)
    try context.performAndWait {
      insert("milk", context).setValue(photo, forKey: "photo")
      try context.save()
    }
    let file = folder.url.appendingPathComponent("Notes.sqlite")
    for url in [file, URL(fileURLWithPath: "/dev/null/B.sqlite")] {
      let store = try #require(coordinator.persistentStores.first)
      try coordinator.migratePersistentStore(store, to: url, type: .sqlite)
      #expect(coordinator.persistentStores.map(\.url) == [url])
      let reader = container.newBackgroundContext()
      try reader.performAndWait {
        try #expect(reader.fetch(request).first?.value(forKey: "photo") as? Data == photo)
      }
    }
  }
}
