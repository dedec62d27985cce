import Foundation
import OpenCoreData
import Testing

@Suite("Custom incremental stores: NSIncrementalStore")
struct IncrementalStoreTests {
  let coordinator: NSPersistentStoreCoordinator
  let store: DictionaryIncrementalStore
  let context: NSManagedObjectContext

  init() throws {
    NSPersistentStoreCoordinator.registerStoreClass(
      DictionaryIncrementalStore.self,
      forStoreType: DictionaryIncrementalStore.storeType
    )
    coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    let added = try coordinator.addPersistentStore(
      ofType: DictionaryIncrementalStore.storeType,
      configurationName: nil,
      at: nil,
      options: nil
    )
    store = try #require(added as? DictionaryIncrementalStore)
    context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
  }

  private func makeContext() -> NSManagedObjectContext {
    let made = NSManagedObjectContext(.privateQueue)
    made.persistentStoreCoordinator = coordinator
    return made
  }

  @discardableResult
  private func fill() throws -> (NSManagedObject, [NSManagedObject]) {
    let author = NSEntityDescription.insertNewObject(forEntityName: "Author", into: context)
    author.setValue("Ursula", forKey: "name")
    author.setValue(1929, forKey: "born")
    let works = ["The Dispossessed", "Tehanu", "Lavinia"].enumerated().map { index, title in
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: context)
      work.setValue(title, forKey: "title")
      work.setValue((index + 1) * 100, forKey: "pages")
      work.setValue(author, forKey: "writer")
      return work
    }
    try context.save()
    return (author, works)
  }

  @Test("The store's type is registered, and its identifier is the one in its metadata")
  func opening() {
    #expect(
      NSPersistentStoreCoordinator.registeredStoreTypes[DictionaryIncrementalStore.storeType] != nil
    )
    #expect(store.calls == ["loadMetadata"])
    #expect(store.identifier == "dictionary-store")
    #expect(store.type == DictionaryIncrementalStore.storeType)
    #expect(store.metadata[NSStoreModelVersionHashesKey] != nil)
    #expect(coordinator.persistentStores == [store])
    #expect(store.persistentStoreCoordinator === coordinator)
  }

  @Test("Inserted objects get the store's identifiers and are in one save request")
  func inserting() throws {
    try context.performAndWait {
      let (author, works) = try fill()
      #expect(store.records.count == 4)
      #expect(!author.objectID.isTemporaryID)
      #expect(author.objectID.persistentStore === store)
      #expect(store.referenceObject(for: author.objectID) is String)
      let save = try #require(store.requests.last as? NSSaveChangesRequest)
      #expect(save.insertedObjects == Set([author] + works))
      #expect(save.updatedObjects?.isEmpty ?? true)
      #expect(save.deletedObjects?.isEmpty ?? true)
      #expect(!context.hasChanges)
    }
  }

  @Test("A fetch passes its predicate, order, limit and offset to the store")
  func fetching() throws {
    try context.performAndWait {
      try fill()
      let reader = makeContext()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      request.predicate = NSPredicate(format: "pages >= %d", 200)
      request.sortDescriptors = [NSSortDescriptor(key: "pages", ascending: false)]
      request.fetchLimit = 1
      let found = try reader.performAndWait { try reader.fetch(request) }
      let seen = try #require(store.requests.last as? NSFetchRequest<any NSFetchRequestResult>)
      #expect(seen.entityName == "Work")
      #expect(seen.predicate?.evaluate(with: ["pages": 200]) == true)
      #expect(seen.predicate?.evaluate(with: ["pages": 199]) == false)
      #expect(seen.sortDescriptors?.first?.key == "pages")
      #expect(seen.fetchLimit == 1)
      #expect(seen.resultType == .managedObjectResultType)
      reader.performAndWait {
        #expect(found.map { $0.value(forKey: "title") as? String } == ["Lavinia"])
      }
    }
  }

  @Test("Counts, identifiers and dictionaries are requested with their result types")
  func resultTypes() throws {
    try context.performAndWait {
      let (author, _) = try fill()
      #expect(try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Work")) == 3)
      let identifiers = NSFetchRequest<NSManagedObjectID>(entityName: "Author")
      identifiers.resultType = .managedObjectIDResultType
      #expect(try context.fetch(identifiers) == [author.objectID])
      let dictionaries = NSFetchRequest<NSDictionary>(entityName: "Work")
      dictionaries.resultType = .dictionaryResultType
      dictionaries.propertiesToFetch = ["title"]
      dictionaries.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
      let titles = try context.fetch(dictionaries).map { $0["title"] as? String }
      #expect(titles == ["Lavinia", "Tehanu", "The Dispossessed"])
    }
  }

  @Test("A fault's values are requested when it fires, and not before")
  func faulting() throws {
    try context.performAndWait { _ = try fill() }
    let reader = makeContext()
    try reader.performAndWait {
      store.calls = []
      let request = NSFetchRequest<NSManagedObject>(entityName: "Author")
      let author = try #require(try reader.fetch(request).first)
      #expect(author.isFault)
      #expect(store.calls.filter { $0.hasPrefix("newValues") }.isEmpty)
      #expect(author.value(forKey: "name") as? String == "Ursula")
      #expect(author.value(forKey: "born") as? Int == 1929)
      #expect(store.calls.filter { $0.hasPrefix("newValues") }.count == 1)
    }
  }

  @Test("Relationships are requested one by one, and their members are faults")
  func relationships() throws {
    try context.performAndWait { _ = try fill() }
    let reader = makeContext()
    try reader.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Author")
      let author = try #require(try reader.fetch(request).first)
      store.calls = []
      let works = try #require(author.value(forKey: "works") as? Set<NSManagedObject>)
      #expect(works.count == 3)
      #expect(store.calls.contains { $0.hasPrefix("newValue works") })
      #expect(works.allSatisfy { $0.isFault })
      let work = try #require(works.first)
      #expect(work.value(forKey: "writer") as? NSManagedObject === author)
    }
  }

  @Test("Updates and deletions are saved to the store; a cascade deletes the works too")
  func changing() throws {
    try context.performAndWait {
      let (author, works) = try fill()
      works[0].setValue("Always Coming Home", forKey: "title")
      works[1].setValue(nil, forKey: "writer")
      try context.save()
      let save = try #require(store.requests.last as? NSSaveChangesRequest)
      #expect(save.updatedObjects?.contains(works[0]) == true)
      #expect(
        store.records.values.contains { $0.values["title"] as? String == "Always Coming Home" }
      )
      context.delete(author)
      try context.save()
      #expect(store.records.count == 1)
      let last = try #require(store.requests.last as? NSSaveChangesRequest)
      #expect(last.deletedObjects == Set([author, works[0], works[2]]))
    }
  }

  @Test("An object that was never read can be deleted")
  func deletingFaults() throws {
    try context.performAndWait { _ = try fill() }
    let other = makeContext()
    try other.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      for work in try other.fetch(request) { other.delete(work) }
      try other.save()
      #expect(store.records.values.map(\.entity) == ["Author"])
    }
  }

  @Test("An error of the store is thrown unchanged, and no change is lost")
  func errors() throws {
    try context.performAndWait {
      try fill()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      let work = try #require(try context.fetch(request).first)
      store.fails = true
      #expect(throws: DictionaryIncrementalStore.Failure.offline) { try context.fetch(request) }
      work.setValue("Four Ways to Forgiveness", forKey: "title")
      #expect(throws: DictionaryIncrementalStore.Failure.offline) { try context.save() }
      #expect(context.updatedObjects == [work])
      store.fails = false
      try context.save()
      #expect(!context.hasChanges)
      let gone = store.newObjectID(for: work.entity, referenceObject: "r99")
      let error = #expect(throws: NSError.self) { try context.existingObject(with: gone) }
      #expect(error?.code == NSManagedObjectReferentialIntegrityError)
    }
  }

  @Test("Conflicts that the store reports fail the save, or are resolved by the merge policy")
  func conflicts() throws {
    try context.performAndWait {
      let (author, _) = try fill()
      author.setValue("Ursula K.", forKey: "name")
      let reference = try #require(store.referenceObject(for: author.objectID) as? String)
      store.records[reference]?.version = 7
      store.records[reference]?.values["born"] = 1930
      let error = #expect(throws: NSError.self) { try context.save() }
      #expect(error?.code == NSManagedObjectMergeError)
      let list = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
      #expect(list?.first?.sourceObject === author)
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      #expect(store.records[reference]?.values["name"] as? String == "Ursula K.")
      #expect(store.records[reference]?.values["born"] as? Int == 1930)
    }
  }

  @Test("An object ID survives as a URL, for any kind of reference object")
  func uris() throws {
    try context.performAndWait {
      let (author, _) = try fill()
      let url = author.objectID.uriRepresentation()
      let reference = try #require(store.referenceObject(for: author.objectID) as? String)
      #expect(url.absoluteString == "x-coredata://dictionary-store/Author/p\(reference)")
      #expect(coordinator.managedObjectID(forURIRepresentation: url) == author.objectID)
      for reference in ["a b/c", "ü:1", "42nd"] as [Any] + [12, UUID()] {
        let made = store.newObjectID(for: author.entity, referenceObject: reference)
        let found = coordinator.managedObjectID(forURIRepresentation: made.uriRepresentation())
        #expect(found == made, "\(made.uriRepresentation())")
      }
      let twelve = store.newObjectID(for: author.entity, referenceObject: 12)
      #expect(store.referenceObject(for: twelve) as? Int == 12)
      #expect(twelve == store.newObjectID(for: author.entity, referenceObject: NSNumber(value: 12)))
    }
  }

  @Test("The store is notified of the objects that a context uses and no longer uses")
  func registration() throws {
    try context.performAndWait { _ = try fill() }
    let reader = makeContext()
    try reader.performAndWait {
      store.calls = []
      let request = NSFetchRequest<NSManagedObject>(entityName: "Author")
      let authors = try reader.fetch(request)
      #expect(store.calls.contains { $0.hasPrefix("register") })
      reader.reset()
      #expect(store.calls.contains { $0.hasPrefix("unregister") })
      withExtendedLifetime(authors) {}
    }
  }

  @Test("A parent context saves its children's changes to the store")
  func children() throws {
    let parent = context
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = parent
    try child.performAndWait {
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: child)
      work.setValue("Orsinian Tales", forKey: "title")
      try child.save()
    }
    #expect(store.records.isEmpty)
    try parent.performAndWait { try parent.save() }
    #expect(store.records.values.map { $0.values["title"] as? String } == ["Orsinian Tales"])
  }

  @Test("A removed store returns no objects, and its type can be unregistered")
  func removing() throws {
    try coordinator.remove(store)
    #expect(store.persistentStoreCoordinator == nil)
    let type = "Passing \(UUID().uuidString)"
    NSPersistentStoreCoordinator.registerStoreClass(
      DictionaryIncrementalStore.self,
      type: NSPersistentStore.StoreType(rawValue: type)
    )
    #expect(NSPersistentStoreCoordinator.registeredStoreTypes[type] != nil)
    NSPersistentStoreCoordinator.registerStoreClass(nil, forStoreType: type)
    let error = #expect(throws: NSError.self) {
      try coordinator.addPersistentStore(ofType: type, configurationName: nil, at: nil)
    }
    #expect(error?.code == NSPersistentStoreInvalidTypeError)
  }
}
