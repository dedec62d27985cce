import Foundation
import OpenCoreData
import Testing

@Suite("Query generations")
struct QueryGenerationTests {
  private func filled(options: [String: NSObject] = [:]) throws -> Warehouse {
    let warehouse = try Warehouse(options: options)
    let context = warehouse.context()
    try context.performAndWait {
      for index in 0..<3 {
        let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
        bin.setValue("bin \(index)", forKey: "name")
        let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
        tag.setValue("tag \(index)", forKey: "name")
      }
      try context.save()
    }
    return warehouse
  }

  private func names(_ context: NSManagedObjectContext) throws -> [String] {
    let fetch = NSFetchRequest<NSManagedObject>(entityName: "Bin")
    fetch.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    return try context.fetch(fetch).compactMap { $0.value(forKey: "name") as? String }
  }

  private func rename(_ warehouse: Warehouse, _ name: String) throws {
    let context = warehouse.context()
    try context.performAndWait {
      let request = NSBatchUpdateRequest(entityName: "Bin")
      request.propertiesToUpdate = ["name": name]
      try context.execute(request)
    }
  }

  @Test("An asynchronous fetch of a pinned context reads its generation")
  func asynchronousFetch() async throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      try #expect(names(context) == ["bin 0", "bin 1", "bin 2"])
      context.reset()
      try context.setQueryGenerationFrom(.current)
      let fetch = NSFetchRequest<NSManagedObject>(entityName: "Tag")
      try #expect(context.count(for: fetch) == 3)
    }
    try rename(warehouse, "renamed")
    let found: [String] = try await withCheckedThrowingContinuation { continuation in
      context.performAndWait {
        let fetch = NSFetchRequest<NSManagedObject>(entityName: "Bin")
        fetch.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        let request = NSAsynchronousFetchRequest(fetchRequest: fetch) { result in
          continuation.resume(
            returning: (result.finalResult ?? []).compactMap {
              $0.value(forKey: "name") as? String
            }
          )
        }
        do {
          try context.execute(request)
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
    #expect(found == ["bin 0", "bin 1", "bin 2"])
  }

  @Test(
    "A context is pinned only on request, and the current generation is resolved by the first read"
  )
  func tokens() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      #expect(context.queryGenerationToken == nil)
      try context.setQueryGenerationFrom(.current)
      #expect(context.queryGenerationToken == NSQueryGenerationToken.current)
      _ = try names(context)
      let token = try #require(context.queryGenerationToken)
      #expect(token != NSQueryGenerationToken.current)
      _ = try names(context)
      #expect(context.queryGenerationToken == token)
      try context.setQueryGenerationFrom(nil)
      #expect(context.queryGenerationToken == nil)
    }
  }

  @Test("Fetches, counts, dictionaries, identifiers and faults read the pinned generation")
  func pinnedReads() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      let fetch = NSFetchRequest<NSManagedObject>(entityName: "Bin")
      let bins = try context.fetch(fetch)
      try rename(warehouse, "later")
      let deleter = warehouse.context()
      try deleter.performAndWait {
        try deleter.execute(
          NSBatchDeleteRequest(fetchRequest: NSFetchRequest<NSManagedObject>(entityName: "Tag"))
        )
        try deleter.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "new"]]))
      }
      #expect(Set(bins.compactMap { $0.value(forKey: "name") as? String }).count == 3)
      #expect(try names(context) == ["bin 0", "bin 1", "bin 2"])
      #expect(try context.count(for: fetch) == 3)
      #expect(try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Tag")) == 3)
      let dictionaries = NSFetchRequest<NSDictionary>(entityName: "Bin")
      dictionaries.resultType = .dictionaryResultType
      dictionaries.propertiesToFetch = ["name"]
      let found = try context.fetch(dictionaries).compactMap { $0["name"] as? String }
      #expect(Set(found) == ["bin 0", "bin 1", "bin 2"])
      let identifiers = NSFetchRequest<NSManagedObjectID>(entityName: "Tag")
      identifiers.resultType = .managedObjectIDResultType
      let tags = try context.fetch(identifiers)
      #expect(tags.count == 3)
      // A fault on a deleted row is fulfilled from the pinned generation.
      let tag = context.object(with: tags[0])
      #expect((tag.value(forKey: "name") as? String)?.hasPrefix("tag") == true)
      context.refreshAllObjects()
      #expect(bins[0].value(forKey: "name") as? String != "later")

      try context.setQueryGenerationFrom(.current)
      context.refreshAllObjects()
      #expect(bins[0].value(forKey: "name") as? String == "later")
      #expect(try names(context) == ["later", "later", "later", "new"])
    }
  }

  @Test("To-many relationships read the pinned generation")
  func pinnedRelationships() throws {
    let warehouse = try filled()
    let writer = warehouse.context()
    let (lock, tags) = try writer.performAndWait {
      let lock = NSEntityDescription.insertNewObject(forEntityName: "Lock", into: writer)
      let tags = try writer.fetch(NSFetchRequest<NSManagedObject>(entityName: "Tag"))
      lock.setValue(Set(tags.prefix(2)) as NSSet, forKey: "tags")
      try writer.save()
      return (lock.objectID, tags)
    }
    let context = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      #expect(try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Lock")) == 1)
      try writer.performAndWait {
        for tag in tags { tag.setValue(nil, forKey: "lock") }
        try writer.save()
      }
      let object = try context.existingObject(with: lock)
      #expect((object.value(forKey: "tags") as? NSSet)?.count == 2)
      try context.setQueryGenerationFrom(.current)
      context.refreshAllObjects()
      #expect((object.value(forKey: "tags") as? NSSet)?.count == 0)
    }
  }

  @Test("Rows of a pinned context and those of others are not shared through the cache")
  func caches() throws {
    let warehouse = try filled()
    let pinned = warehouse.context()
    let free = warehouse.context()
    try pinned.performAndWait {
      try pinned.setQueryGenerationFrom(.current)
      #expect(try names(pinned).count == 3)
    }
    try rename(warehouse, "later")
    let identifiers = try pinned.performAndWait {
      try names(pinned).enumerated().forEach { #expect($1 == "bin \($0)") }
      return try pinned.fetch(NSFetchRequest<NSManagedObject>(entityName: "Bin")).map(\.objectID)
    }
    try free.performAndWait {
      for identifier in identifiers {
        let bin = try free.existingObject(with: identifier)
        #expect(bin.value(forKey: "name") as? String == "later")
      }
    }
    try pinned.performAndWait {
      pinned.reset()
      try pinned.setQueryGenerationFrom(nil)
      for identifier in identifiers {
        let bin = try pinned.existingObject(with: identifier)
        #expect(bin.value(forKey: "name") as? String == "later")
      }
    }
  }

  @Test("Contexts on several threads can share a token")
  func sharing() throws {
    let warehouse = try filled()
    let first = warehouse.context()
    let token = try first.performAndWait {
      try first.setQueryGenerationFrom(.current)
      _ = try names(first)
      return try #require(first.queryGenerationToken)
    }
    try rename(warehouse, "later")
    let second = warehouse.context()
    try second.performAndWait {
      try second.setQueryGenerationFrom(token)
      #expect(second.queryGenerationToken == token)
      #expect(try names(second) == ["bin 0", "bin 1", "bin 2"])
    }
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      let context = warehouse.context()
      let found = context.performAndWait { () -> [String]? in
        try? context.setQueryGenerationFrom(token)
        return try? names(context)
      }
      #expect(found == ["bin 0", "bin 1", "bin 2"])
    }
  }

  @Test("A save moves its context to a new generation, and the notification has the token")
  func saving() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    let log = NotificationLog(.NSManagedObjectContextDidSave, of: context)
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      _ = try names(context)
      let before = context.queryGenerationToken
      let writer = warehouse.context()
      try writer.performAndWait {
        try writer.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "theirs"]]))
      }
      #expect(try names(context).count == 3)
      let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      bin.setValue("ours", forKey: "name")
      #expect(try names(context).count == 4)
      try context.save()
      let after = try #require(context.queryGenerationToken)
      #expect(after != before)
      #expect(
        log.notes.first?.userInfo?[NSManagedObjectContextQueryGenerationKey]
          as? NSQueryGenerationToken == after
      )
      #expect(try names(context).count == 5)
    }
  }

  @Test("A conflict with rows newer than the pinned generation is found by the save")
  func conflict() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      let bins = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Bin"))
      let tags = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Tag"))
      #expect(tags.count == 3)
      try rename(warehouse, "later")
      bins[0].setValue("mine", forKey: "name")
      let error = #expect(throws: (any Error).self) { try context.save() }
      #expect((error as? NSError)?.code == NSManagedObjectMergeError)
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      #expect(try names(context) == ["later", "later", "mine"])
    }
  }

  @Test("Merging and resetting move a context to the newest generation; batches do not")
  func merging() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    let writer = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      let bins = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Bin"))
      let token = context.queryGenerationToken
      try context.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "x"]]))
      #expect(context.queryGenerationToken == token)
      #expect(try names(context).count == 3)
      try rename(warehouse, "later")
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSUpdatedObjectsKey: bins.map(\.objectID)],
        into: [context]
      )
      #expect(try names(context) == ["later", "later", "later", "later"])
      #expect(context.queryGenerationToken != token)
      try rename(warehouse, "last")
      #expect(try names(context).first == "later")
      context.reset()
      #expect(context.queryGenerationToken == NSQueryGenerationToken.current)
      #expect(try names(context).first == "last")
    }
    _ = writer
  }

  @Test("A child reads its parent's generation and has none of its own")
  func children() throws {
    let warehouse = try filled()
    let parent = warehouse.context()
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = parent
    try parent.performAndWait {
      try parent.setQueryGenerationFrom(.current)
      _ = try names(parent)
    }
    try rename(warehouse, "later")
    try child.performAndWait {
      #expect(child.queryGenerationToken == nil)
      let found = try names(child)
      #expect(found == ["bin 0", "bin 1", "bin 2"])
      #expect(throws: (any Error).self) { try child.setQueryGenerationFrom(.current) }
    }
  }

  @Test("Stores in memory and without a write-ahead log have no generations")
  func unsupportedStores() throws {
    let container = NSPersistentContainer(
      name: "Warehouse",
      managedObjectModel: WarehouseModel.make()
    )
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      #expect(try names(context).isEmpty)
      #expect(context.queryGenerationToken == nil)
    }
    let rollback = try filled(
      options: [NSSQLitePragmasOption: ["journal_mode": "DELETE"] as NSDictionary]
    )
    let other = rollback.context()
    try other.performAndWait {
      try other.setQueryGenerationFrom(.current)
      #expect(try names(other).count == 3)
      #expect(other.queryGenerationToken == nil)
    }
    try rename(rollback, "later")
    #expect(try other.performAndWait { try names(other) }.count == 3)
  }

  @Test("A generation that holds too much of the log expires: fetches throw, faults still read")
  func expiry() throws {
    let warehouse = try filled()
    let coordinator = warehouse.container.persistentStoreCoordinator
    let store = try #require(coordinator.sqliteStore())
    store.limitGenerations(toLogSize: 100_000)
    let context = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      let bins = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Bin"))
      let token = try #require(context.queryGenerationToken)
      for round in 0..<40 { try rename(warehouse, String(repeating: "\(round)", count: 3_000)) }
      try rename(warehouse, "short")
      let error = #expect(throws: (any Error).self) { try names(context) }
      #expect((error as? NSError)?.domain == NSCocoaErrorDomain)
      #expect((error as? NSError)?.code == NSCoreDataError)
      context.refreshAllObjects()
      #expect(bins[0].value(forKey: "name") as? String == "short")
      #expect(throws: (any Error).self) { try context.setQueryGenerationFrom(token) }
      try context.setQueryGenerationFrom(.current)
      #expect(try names(context) == ["short", "short", "short"])
    }
  }

  @Test("Tokens can be archived within their process")
  func archiving() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      try context.setQueryGenerationFrom(.current)
      _ = try names(context)
      let token = try #require(context.queryGenerationToken)
      let data = try NSKeyedArchiver.archivedData(
        withRootObject: token,
        requiringSecureCoding: true
      )
      let copy = try NSKeyedUnarchiver.unarchivedObject(
        ofClass: NSQueryGenerationToken.self,
        from: data
      )
      #expect(copy == token)
      try context.setQueryGenerationFrom(copy)
      #expect(try names(context).count == 3)
    }
  }

  @Test("A pinned context reads large values that were replaced after its generation")
  func largeValues() throws {
    let model = NSManagedObjectModel()
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = true
    model.entities = [ModelParts.entity("Card", [picture])]
    let folder = try ScratchFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(type: .sqlite, at: folder.file("cards.sqlite"))
    func context() -> NSManagedObjectContext { NSManagedObjectContext(of: coordinator) }
    func files() throws -> Int {
      try FileManager.default.contentsOfDirectory(
        atPath: folder.file(".cards_SUPPORT/_EXTERNAL_DATA").path
      ).count
    }
    let (old, new) = (Data(repeating: 1, count: 200_000), Data(repeating: 2, count: 200_000))
    let writer = context()
    let card = try writer.performAndWait {
      let card = writer.insert("Card", ["picture": old])
      try writer.save()
      return card
    }
    let pinned = context()
    try pinned.performAndWait {
      try pinned.setQueryGenerationFrom(.current)
      #expect(try pinned.count(for: NSFetchRequest<NSManagedObject>(entityName: "Card")) == 1)
    }
    try writer.performAndWait {
      card.setValue(new, forKey: "picture")
      try writer.save()
    }
    try pinned.performAndWait {
      #expect(try pinned.all("Card").first?.value(forKey: "picture") as? Data == old)
      #expect(try files() == 2)
      try pinned.setQueryGenerationFrom(nil)
      pinned.refreshAllObjects()
      #expect(try pinned.all("Card").first?.value(forKey: "picture") as? Data == new)
    }
    #expect(try files() == 1)
  }

  @Test("An external value whose file cannot be read fails the read")
  func unreadableValue() throws {
    let model = NSManagedObjectModel()
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = true
    model.entities = [ModelParts.entity("Card", [picture])]
    let folder = try ScratchFolder()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(type: .sqlite, at: folder.file("cards.sqlite"))
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      _ = context.insert("Card", ["picture": Data(repeating: 1, count: 200_000)])
      try context.save()
    }
    let values = folder.file(".cards_SUPPORT/_EXTERNAL_DATA")
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: values.path).first
    )
    // A folder at the file's path exists, but cannot be read as a value.
    try FileManager.default.removeItem(at: values.appendingPathComponent(name))
    try FileManager.default.createDirectory(
      at: values.appendingPathComponent(name),
      withIntermediateDirectories: false
    )
    let reader = try #require(coordinator.sqliteStore())
    let request = RowFetch(entity: try #require(model.entitiesByName["Card"]), kind: .rows)
    #expect(throws: (any Error).self) { try reader.fetch(request) }
  }
}
