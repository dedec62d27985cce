import Foundation
import OpenCoreData
import Testing

@Suite("Custom atomic stores: NSAtomicStore")
struct AtomicStoreTests {
  let folder: ScratchFolder
  let url: URL

  init() throws {
    NSPersistentStoreCoordinator.registerStoreClass(
      JSONAtomicStore.self,
      forStoreType: JSONAtomicStore.storeType
    )
    folder = try ScratchFolder()
    url = folder.file("catalog.json")
  }

  private func open() throws -> (NSManagedObjectContext, JSONAtomicStore) {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    let store = try coordinator.addPersistentStore(
      ofType: JSONAtomicStore.storeType,
      configurationName: nil,
      at: url,
      options: nil
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    return (context, try #require(store as? JSONAtomicStore))
  }

  @discardableResult
  private func fill(_ context: NSManagedObjectContext) throws -> NSManagedObject {
    let author = NSEntityDescription.insertNewObject(forEntityName: "Author", into: context)
    author.setValue("Italo", forKey: "name")
    for (index, title) in ["Cosmicomics", "Marcovaldo", "Palomar"].enumerated() {
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: context)
      work.setValue(title, forKey: "title")
      work.setValue(100 * (index + 1), forKey: "pages")
      work.setValue(author, forKey: "writer")
    }
    try context.save()
    return author
  }

  @Test("Saved objects are read when the file is opened again")
  func roundTrip() throws {
    let (context, store) = try open()
    let identifier = store.identifier
    let uri = try context.performAndWait { try fill(context).objectID.uriRepresentation() }
    let (second, again) = try open()
    #expect(again.identifier == identifier)
    #expect(again.calls == ["load"])
    try second.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      request.predicate = NSPredicate(format: "pages > 100 AND writer.name == %@", "Italo")
      request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: false)]
      let works = try second.fetch(request)
      #expect(works.map { $0.value(forKey: "title") as? String } == ["Palomar", "Marcovaldo"])
      #expect(works.first?.value(forKey: "pages") as? Int == 300)
      let author = try #require(works.first?.value(forKey: "writer") as? NSManagedObject)
      #expect((author.value(forKey: "works") as? Set<NSManagedObject>)?.count == 3)
      #expect(author.objectID.uriRepresentation() == uri)
    }
  }

  @Test("The store is called in order: references, new nodes, updated nodes, removed nodes, save")
  func calls() throws {
    let (context, store) = try open()
    try context.performAndWait {
      let author = try fill(context)
      #expect(store.calls.first == "load")
      #expect(store.calls.filter { $0 == "newReferenceObject" }.count == 4)
      #expect(store.calls.filter { $0 == "newCacheNode" }.count == 4)
      #expect(store.calls.last == "save")
      store.calls = []
      author.setValue(1923, forKey: "born")
      try context.save()
      #expect(store.calls == ["updateCacheNode", "save"])
      store.calls = []
      context.delete(author)
      try context.save()
      #expect(store.calls == ["willRemoveCacheNodes 4", "save"])
      #expect(store.cacheNodes().isEmpty)
    }
  }

  @Test("SUBQUERY, counts and objects in predicates work on cache nodes")
  func predicates() throws {
    let (context, _) = try open()
    try context.performAndWait {
      let author = try fill(context)
      let authors = NSFetchRequest<NSManagedObject>(entityName: "Author")
      authors.predicate = NSPredicate(format: "SUBQUERY(works, $w, $w.pages >= 200).@count == 2")
      #expect(try context.fetch(authors) == [author])
      authors.predicate = NSPredicate(
        format: "works.@count == 3 AND ANY works.title BEGINSWITH 'P'"
      )
      #expect(try context.count(for: authors) == 1)
      let works = NSFetchRequest<NSManagedObject>(entityName: "Work")
      works.predicate = NSPredicate(format: "writer == %@", author)
      #expect(try context.count(for: works) == 3)
      works.predicate = NSPredicate(format: "SELF IN %@", [author.objectID])
      #expect(try context.count(for: works) == 0)
      works.predicate = NSPredicate { object, _ in
        (object as? NSAtomicStoreCacheNode)?.value(forKey: "title") as? String == "Palomar"
      }
      #expect(try context.count(for: works) == 1)
    }
  }

  @Test("Dictionaries with sums and groups are computed in memory")
  func dictionaries() throws {
    let (context, _) = try open()
    try context.performAndWait {
      try fill(context)
      let sum = NSExpressionDescription()
      sum.name = "total"
      sum.expression = NSExpression(
        forFunction: "sum:",
        arguments: [NSExpression(forKeyPath: "pages")]
      )
      sum.expressionResultType = .integer64AttributeType
      let request = NSFetchRequest<NSDictionary>(entityName: "Work")
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = [sum]
      #expect(try context.fetch(request).map { $0["total"] as? Int } == [600])
      request.propertiesToFetch = ["title", "pages"]
      request.sortDescriptors = [NSSortDescriptor(key: "pages", ascending: true)]
      request.fetchLimit = 2
      let rows = try context.fetch(request)
      #expect(rows.map { $0["title"] as? String } == ["Cosmicomics", "Marcovaldo"])
      #expect(rows.first?["pages"] as? Int == 100)
    }
  }

  @Test("An error of save() is thrown, and nodes and file are unchanged")
  func failingSave() throws {
    let (context, store) = try open()
    try context.performAndWait {
      let author = try fill(context)
      let before = try Data(contentsOf: url)
      store.fails = true
      author.setValue("Nobody", forKey: "name")
      let fresh = NSEntityDescription.insertNewObject(forEntityName: "Author", into: context)
      fresh.setValue("Elsa", forKey: "name")
      #expect(throws: JSONAtomicStore.DiskFull.self) { try context.save() }
      #expect(try Data(contentsOf: url) == before)
      #expect(store.cacheNodes().count == 4)
      let node = try #require(store.cacheNode(for: author.objectID))
      #expect(node.value(forKey: "name") as? String == "Italo")
      #expect(context.hasChanges)
      store.fails = false
      try context.save()
      #expect(store.cacheNodes().count == 5)
    }
  }

  @Test("Two contexts that change one object are in conflict")
  func conflicts() throws {
    let (context, store) = try open()
    let author = try context.performAndWait { try fill(context) }
    let other = NSManagedObjectContext(.privateQueue)
    other.persistentStoreCoordinator = context.persistentStoreCoordinator
    try other.performAndWait {
      let same = try other.existingObject(with: author.objectID)
      same.setValue("Other", forKey: "name")
      try other.save()
    }
    try context.performAndWait {
      author.setValue(1923, forKey: "born")
      let error = #expect(throws: NSError.self) { try context.save() }
      #expect(error?.code == NSManagedObjectMergeError)
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      let node = try #require(store.cacheNode(for: author.objectID))
      #expect(node.value(forKey: "name") as? String == "Other")
      #expect(node.value(forKey: "born") as? Int == 1923)
    }
  }

  @Test("Metadata are read and written without opening the store")
  func metadata() throws {
    let (context, store) = try open()
    try context.performAndWait { _ = try fill(context) }
    let type = NSPersistentStore.StoreType(rawValue: JSONAtomicStore.storeType)
    var metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: url)
    #expect(metadata[NSStoreUUIDKey] as? String == store.identifier)
    metadata["shelf"] = "Italian"
    try NSPersistentStoreCoordinator.setMetadata(metadata, type: type, at: url)
    let (_, again) = try open()
    #expect(again.metadata["shelf"] as? String == "Italian")
  }

  @Test("A zero-length file reserves the path of a new store")
  func reservedPlace() throws {
    try Data().write(to: url)
    let (context, store) = try open()
    #expect(store.cacheNodes().isEmpty)
    try context.performAndWait { _ = try fill(context) }
    #expect(try Data(contentsOf: url).count > 0)
  }
}
