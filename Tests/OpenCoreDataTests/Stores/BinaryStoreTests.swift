import Foundation
import OpenCoreData
import Testing

@Suite("Binary stores")
struct BinaryStoreTests {
  let folder: ScratchFolder
  let url: URL

  init() throws {
    folder = try ScratchFolder()
    url = folder.file("catalog.binary")
  }

  @Test("Objects, values and relationships are read when the file is opened again")
  func roundTrip() throws {
    let first = try CatalogStack(url, type: NSBinaryStoreType)
    let uri = try first.fill().objectID.uriRepresentation()
    let identifier = first.coordinator.persistentStores[0].identifier
    let second = try CatalogStack(url, type: NSBinaryStoreType)
    let store = second.coordinator.persistentStores[0]
    #expect(store.type == NSBinaryStoreType)
    #expect(store.identifier == identifier)
    #expect(try second.titles() == ["Salt", "View", "Here"])
    let found = second.coordinator.managedObjectID(forURIRepresentation: uri)
    let author = try #require(found)
    try second.context.performAndWait {
      let object = try second.context.existingObject(with: author)
      #expect(object.value(forKey: "born") as? Int == 1923)
      let works = try #require(object.value(forKey: "works") as? Set<NSManagedObject>)
      #expect(
        works.compactMap { $0.value(forKey: "printed") as? Date }.map(
          \.timeIntervalSinceReferenceDate
        ) == [0.5, 0.5, 0.5]
      )
      second.context.delete(object)
      try second.context.save()
    }
    #expect(try CatalogStack(url, type: NSBinaryStoreType).titles().isEmpty)
  }

  @Test("Keys of new objects continue after those in the file")
  func keys() throws {
    let first = try CatalogStack(url, type: NSBinaryStoreType)
    let old = try first.fill().objectID
    let second = try CatalogStack(url, type: NSBinaryStoreType)
    let new = try second.fill().objectID
    #expect(old.uriRepresentation() != new.uriRepresentation())
    #expect(try second.titles().count == 6)
  }

  @Test("The key of a deleted object is not used again after the file is opened again")
  func keysOfDeletedObjects() throws {
    let first = try CatalogStack(url, type: NSBinaryStoreType)
    let kept = try first.fill()
    let uri = kept.objectID.uriRepresentation()
    try first.context.performAndWait {
      for name in ["Author", "Work"] {
        for object in try first.context.fetch(NSFetchRequest<NSManagedObject>(entityName: name)) {
          first.context.delete(object)
        }
      }
      try first.context.save()
    }
    // Metadata that are written without opening the store keep it too.
    let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      type: .binary,
      at: url
    )
    try NSPersistentStoreCoordinator.setMetadata(metadata, type: .binary, at: url)
    let second = try CatalogStack(url, type: NSBinaryStoreType)
    try second.fill()
    let found = try #require(second.coordinator.managedObjectID(forURIRepresentation: uri))
    second.context.performAndWait {
      #expect(throws: (any Error).self) { try second.context.existingObject(with: found) }
    }
  }

  @Test(
    "The key of a deleted object is not used again after the store was moved",
    arguments: [NSBinaryStoreType, NSSQLiteStoreType]
  )
  func keysAfterMove(type: String) throws {
    let first = try CatalogStack(url, type: NSBinaryStoreType)
    let uri = try first.fill().objectID.uriRepresentation()
    try first.context.performAndWait {
      for name in ["Author", "Work"] {
        for object in try first.context.fetch(NSFetchRequest<NSManagedObject>(entityName: name)) {
          first.context.delete(object)
        }
      }
      try first.context.save()
    }
    let second = try CatalogStack(url, type: NSBinaryStoreType)
    _ = try second.coordinator.migratePersistentStore(
      second.coordinator.persistentStores[0],
      to: folder.file("moved"),
      options: nil,
      withType: type
    )
    try second.fill()
    let found = try #require(second.coordinator.managedObjectID(forURIRepresentation: uri))
    second.context.performAndWait {
      #expect(throws: (any Error).self) { try second.context.existingObject(with: found) }
    }
  }

  @Test("The metadata are read and written without opening the store, and saved with it")
  func metadata() throws {
    let stack = try CatalogStack(url, type: NSBinaryStoreType)
    let store = stack.coordinator.persistentStores[0]
    var metadata = stack.coordinator.metadata(for: store)
    metadata["shelf"] = "Polish"
    stack.coordinator.setMetadata(metadata, for: store)
    try stack.fill()
    let read = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .binary, at: url)
    #expect(read["shelf"] as? String == "Polish")
    #expect(read[NSStoreTypeKey] as? String == NSBinaryStoreType)
    #expect(read[NSStoreUUIDKey] as? String == store.identifier)
    #expect(
      LibraryCatalogModel.make().isConfiguration(withName: nil, compatibleWithStoreMetadata: read)
    )
  }

  @Test("Text, a folder, a truncated file and another model's file are refused with Apple's codes")
  func badFiles() throws {
    func code(_ url: URL, _ options: [String: NSObject] = [:]) -> Int? {
      do {
        _ = try CatalogStack(url, type: NSBinaryStoreType, options: options)
        return nil
      } catch {
        return (error as NSError).code
      }
    }
    try CatalogStack(url, type: NSBinaryStoreType).fill()
    let whole = try Data(contentsOf: url)
    let text = folder.file("text")
    try Data("Dear diary".utf8).write(to: text)
    #expect(code(text) == 259)
    #expect(code(folder.url) == 259)
    let half = folder.file("half")
    try whole.prefix(whole.count / 2).write(to: half)
    #expect(code(half) == 259)
    #expect(
      code(folder.file("missing"), [NSReadOnlyPersistentStoreOption: NSNumber(value: true)]) == 260
    )
    let model = NSManagedObjectModel()
    model.entities = [
      ModelParts.entity("Song", [ModelParts.attribute("name", .stringAttributeType)])
    ]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let error = #expect(throws: NSError.self) {
      try coordinator.addPersistentStore(type: .binary, at: url)
    }
    #expect(error?.code == NSPersistentStoreIncompatibleVersionHashError)
    #expect(try Data(contentsOf: url) == whole)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 3)
  }

  @Test("A newer model migrates the store on request, and keeps identifier and metadata")
  func migrates() throws {
    func model(_ version: Int) -> NSManagedObjectModel {
      let name = ModelParts.attribute(version == 1 ? "name" : "title", .stringAttributeType)
      if version > 1 { name.renamingIdentifier = "name" }
      let rating = ModelParts.attribute("rating", .integer16AttributeType)
      rating.defaultValue = 3
      let model = NSManagedObjectModel()
      model.entities = [ModelParts.entity("Song", version == 1 ? [name] : [name, rating])]
      return model
    }
    let first = NSPersistentStoreCoordinator(managedObjectModel: model(1))
    let store = try first.addPersistentStore(type: .binary, at: url)
    store.metadata["note"] = "mine"
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = first
    try context.performAndWait {
      let song = NSEntityDescription.insertNewObject(forEntityName: "Song", into: context)
      song.setValue("Blue", forKey: "name")
      try context.save()
    }
    let second = NSPersistentStoreCoordinator(managedObjectModel: model(2))
    let migrate: [AnyHashable: Any] = [NSMigratePersistentStoresAutomaticallyOption: true]
    let unmapped = #expect(throws: NSError.self) {
      try second.addPersistentStore(type: .binary, at: url, options: migrate)
    }
    #expect(unmapped?.code == NSMigrationMissingMappingModelError)
    let infer = migrate.merging([NSInferMappingModelAutomaticallyOption: true]) { $1 }
    let migrated = try second.addPersistentStore(type: .binary, at: url, options: infer)
    #expect(migrated.identifier == store.identifier)
    #expect(migrated.metadata["note"] as? String == "mine")
    let newer = NSManagedObjectContext(.privateQueue)
    newer.persistentStoreCoordinator = second
    try newer.performAndWait {
      let songs = try newer.fetch(NSFetchRequest<NSManagedObject>(entityName: "Song"))
      #expect(songs.map { $0.value(forKey: "title") as? String } == ["Blue"])
      #expect(songs.map { $0.value(forKey: "rating") as? Int } == [3])
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 1)
  }

  @Test("A save that cannot be written fails, and the file is unchanged")
  func failingSave() throws {
    let inner = folder.file("inner")
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
    let stack = try CatalogStack(inner.appendingPathComponent("x"), type: NSBinaryStoreType)
    try FileManager.default.removeItem(at: inner)
    #expect(throws: NSError.self) { try stack.fill() }
    stack.context.performAndWait { #expect(stack.context.hasChanges) }
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
    try stack.context.performAndWait { try stack.context.save() }
    #expect(try stack.titles().count == 3)
  }

  @Test("Members that another context added stay after a conflict that a policy resolves")
  func membersOfOthers() throws {
    let stack = try CatalogStack(url, type: NSBinaryStoreType)
    let author = try stack.fill()
    try stack.context.performAndWait {
      #expect((author.value(forKey: "works") as? Set<NSManagedObject>)?.count == 3)
      let theirs = stack.container.newBackgroundContext()
      try theirs.performAndWait {
        let own = theirs.object(with: author.objectID)
        _ = theirs.insert("Work", ["title": "Theirs", "pages": 40, "writer": own])
        try theirs.save()
      }
      stack.context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      author.setValue(1924, forKey: "born")
      _ = stack.context.insert("Work", ["title": "Mine", "pages": 50, "writer": author])
      try stack.context.save()
      #expect((author.value(forKey: "works") as? Set<NSManagedObject>)?.count == 5)
    }
    let again = try CatalogStack(url, type: NSBinaryStoreType)
    #expect(try again.titles() == ["Salt", "View", "Here", "Theirs", "Mine"])
    try again.context.performAndWait {
      let author = try #require(try again.context.all("Author").first)
      #expect(author.value(forKey: "born") as? Int == 1924)
      #expect((author.value(forKey: "works") as? Set<NSManagedObject>)?.count == 5)
      again.context.delete(author)
      try again.context.save()
    }
    #expect(try CatalogStack(url, type: NSBinaryStoreType).titles().isEmpty)
  }

  @Test("Links of a many-to-many and an order stay on both sides after a resolved conflict")
  func linksOfOthers() throws {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: SampleStore.model())
    try coordinator.addPersistentStore(type: .binary, at: url)
    func context() -> NSManagedObjectContext {
      let context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      return context
    }
    let mine = context()
    try mine.performAndWait {
      let people = ["a", "b"].map { mine.insert("Person", ["name": $0]) }
      let list = mine.insert("List", ["name": "first"])
      list.setValue(NSOrderedSet(array: people), forKey: "people")
      try mine.save()
      let theirs = context()
      try theirs.performAndWait {
        let own = theirs.object(with: list.objectID)
        own.mutableOrderedSetValue(forKey: "people").add(theirs.insert("Person", ["name": "c"]))
        try theirs.save()
      }
      list.setValue("second", forKey: "name")
      list.mutableOrderedSetValue(forKey: "people").add(mine.insert("Person", ["name": "d"]))
      list.mutableOrderedSetValue(forKey: "people").remove(people[0])
      try mine.save()
    }
    let check = context()
    try check.performAndWait {
      let list = try #require(try check.all("List").first)
      #expect(list.value(forKey: "name") as? String == "second")
      let members = try #require(list.value(forKey: "people") as? NSOrderedSet).array
      let names = members.compactMap { ($0 as? NSManagedObject)?.value(forKey: "name") as? String }
      #expect(names == ["b", "c", "d"])
      for person in try check.all("Person", by: "name") {
        let lists = person.value(forKey: "lists") as? Set<NSManagedObject>
        #expect(lists?.count == (person.value(forKey: "name") as? String == "a" ? 0 : 1))
      }
    }
  }

  @Test(
    "Values that differ are in different groups, as in an SQLite store",
    arguments: [
      NSBinaryStoreType, NSSQLiteStoreType,
    ]
  )
  func groups(type: String) throws {
    let moment = ModelParts.attribute("moment", .dateAttributeType)
    let bytes = ModelParts.attribute("bytes", .binaryDataAttributeType)
    let name = ModelParts.text("name")
    let model = MigrationBench.model(ModelParts.entity("Mark", [moment, bytes, name]))
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(
      ofType: type,
      configurationName: nil,
      at: url,
      options: nil
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      for place in 0..<4 {
        // The last one has the values of the first.
        let number = place % 3
        _ = context.insert(
          "Mark",
          [
            "moment": Date(timeIntervalSinceReferenceDate: 100 + Double(number) / 4),
            "bytes": Data([UInt8(number)]),
            "name": ["é", "e\u{301}", "e"][number],
          ]
        )
      }
      try context.save()
      let count = NSExpressionDescription()
      count.name = "count"
      count.expression = NSExpression(
        forFunction: "count:",
        arguments: [NSExpression(forKeyPath: "name")]
      )
      count.expressionResultType = .integer64AttributeType
      for key in ["moment", "bytes", "name"] {
        let request = NSFetchRequest<NSDictionary>(entityName: "Mark")
        request.resultType = .dictionaryResultType
        request.propertiesToGroupBy = [key]
        request.propertiesToFetch = [key, count]
        let counts = try context.fetch(request).compactMap { $0["count"] as? Int }
        #expect(counts.sorted() == [1, 1, 2], "\(key)")
      }
    }
  }
}
