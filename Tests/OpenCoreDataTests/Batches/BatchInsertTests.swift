import Foundation
import OpenCoreData
import Testing

@Suite("Batch insertion")
struct BatchInsertTests {
  @Test("Dictionaries are inserted with every attribute type, and defaults for missing keys")
  func dictionaries() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    let serial = UUID()
    let photo = Data(repeating: 9, count: 200_000)
    let request = NSBatchInsertRequest(
      entityName: "Part",
      objects: [
        [
          "code": "a", "amount": 3, "small": 4, "large": Int64(5), "weight": 1.5,
          "ratio": Float(0.5), "price": Decimal(string: "1.25") as Any, "isFragile": true,
          "made": Date(timeIntervalSinceReferenceDate: 10), "serial": serial,
          "link": URL(string: "https://example.org/a") as Any, "blob": Data([1, 2]),
          "photo": photo, "notes": ["x", "y"] as NSArray, "colour": "not in the model",
        ],
        ["code": "b", "weight": NSNull()],
      ]
    )
    #expect(request.requestType == .batchInsertRequestType)
    #expect(request.resultType == .statusOnly)
    let result = try #require(
      try context.performAndWait { try context.execute(request) } as? NSBatchInsertResult
    )
    #expect(result.result as? Bool == true)

    let fetch = NSFetchRequest<Part>(entityName: "Part")
    fetch.sortDescriptors = [NSSortDescriptor(key: "code", ascending: true)]
    try context.performAndWait {
      let parts = try context.fetch(fetch)
      #expect(parts.map(\.code) == ["a", "b"])
      #expect(parts.map(\.amount) == [3, 7])
      let part = try #require(parts.first)
      #expect(part.value(forKey: "small") as? Int == 4)
      #expect(part.value(forKey: "large") as? Int == 5)
      #expect(part.value(forKey: "weight") as? Double == 1.5)
      #expect(part.value(forKey: "ratio") as? Float == 0.5)
      #expect(part.value(forKey: "price") as? NSDecimalNumber == NSDecimalNumber(string: "1.25"))
      #expect(part.value(forKey: "isFragile") as? Bool == true)
      #expect(part.value(forKey: "made") as? Date == Date(timeIntervalSinceReferenceDate: 10))
      #expect(part.value(forKey: "serial") as? UUID == serial)
      #expect(part.value(forKey: "link") as? URL == URL(string: "https://example.org/a"))
      #expect(part.value(forKey: "blob") as? Data == Data([1, 2]))
      #expect(part.value(forKey: "photo") as? Data == photo)
      #expect(part.value(forKey: "notes") as? [String] == ["x", "y"])
      #expect(part.value(forKey: "upperCode") as? String == "A")
      #expect(parts.last?.value(forKey: "weight") == nil)
    }
  }

  @Test("A dictionary handler is called until it returns true, each time with an empty dictionary")
  func dictionaryHandler() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    let entity = try #require(NSEntityDescription.entity(forEntityName: "Part", in: context))
    var index = 0
    var counts: [Int] = []
    let request = NSBatchInsertRequest(entity: entity) { (dictionary: NSMutableDictionary) in
      counts.append(dictionary.count)
      guard index < 3 else { return true }
      dictionary["code"] = "p\(index)"
      if index == 1 { dictionary.addEntries(from: ["amount": 20, "unknown": 1]) }
      #expect(dictionary["code"] as? String == "p\(index)")
      index += 1
      return false
    }
    request.resultType = .count
    let result = try context.performAndWait { try context.execute(request) }
    #expect((result as? NSBatchInsertResult)?.result as? Int == 3)
    #expect(counts == [0, 0, 0, 0])
    #expect(try warehouse.values("amount") as? [Int] == [7, 20, 7])
  }

  @Test("An object handler reuses one object, without awakening or validating it")
  func objectHandler() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    var index: Int32 = 0
    var objects: Set<ObjectIdentifier> = []
    var inherited: [String?] = []
    let request = NSBatchInsertRequest(entityName: "Part") { (object: NSManagedObject) in
      guard let part = object as? Part else { return true }
      objects.insert(ObjectIdentifier(part))
      inherited.append(part.code)
      #expect(part.managedObjectContext == nil)
      #expect(part.amount == 7)
      guard index < 3 else { return true }
      part.code = "p\(index)"
      part.amount = index
      index += 1
      return false
    }
    request.resultType = .objectIDs
    let result = try context.performAndWait { try context.execute(request) }
    let identifiers = try #require(
      (result as? NSBatchInsertResult)?.result as? [NSManagedObjectID]
    )
    #expect(identifiers.count == 3)
    #expect(objects.count == 1)
    #expect(inherited == [nil, nil, nil, nil])
    #expect(try warehouse.values("amount") as? [Int] == [0, 1, 2])
    #expect(try warehouse.values("upperCode") as? [String] == ["P0", "P1", "P2"])
    try context.performAndWait {
      let first = try #require(try context.existingObject(with: identifiers[0]) as? Part)
      #expect(first.code == "p0")
    }
  }

  @Test("Strings of every length are stored unchanged by every kind of batch insertion")
  func strings() throws {
    let lengths = [0, 1, 15, 16, 200, 3000, 40_000]
    func name(_ index: Int) -> String {
      "\(index) é" + String(repeating: "x", count: lengths[index % lengths.count])
    }
    let count = 75
    let names = (0..<count).map(name)
    var index = 0
    let requests = [
      NSBatchInsertRequest(entityName: "Link", objects: names.map { ["name": $0] }),
      NSBatchInsertRequest(entityName: "Link") { (dictionary: NSMutableDictionary) in
        guard index < count else { return true }
        dictionary["name"] = names[index]
        index += 1
        return false
      },
      NSBatchInsertRequest(entityName: "Link") { (object: NSManagedObject) in
        guard index < 2 * count else { return true }
        object.setValue(names[index - count], forKey: "name")
        index += 1
        return false
      },
    ]
    let model = NSManagedObjectModel()
    model.entities = [ModelParts.entity("Link", [ModelParts.text("name")])]
    let folder = try ScratchFolder()
    let container = NSPersistentContainer(name: "Links", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: folder.file("links.sqlite"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      for request in requests { try context.execute(request) }
      let fetch = NSFetchRequest<NSManagedObject>(entityName: "Link")
      let found = try context.fetch(fetch).compactMap { $0.value(forKey: "name") as? String }
      #expect(found.count == 3 * count)
      #expect(found.sorted() == (names + names + names).sorted())
    }
  }

  @Test("Contexts show batch-inserted objects after they merge the identifiers")
  func merging() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    let view = warehouse.container.viewContext
    let log = NotificationLog(.NSManagedObjectContextObjectsDidChange, of: view)
    let request = NSBatchInsertRequest(entityName: "Part", objects: [["code": "a"]])
    request.resultType = .objectIDs
    let result = try context.performAndWait { try context.execute(request) }
    let identifiers = try #require(
      (result as? NSBatchInsertResult)?.result as? [NSManagedObjectID]
    )
    #expect(view.registeredObjects.isEmpty)
    NSManagedObjectContext.mergeChanges(
      fromRemoteContextSave: [NSInsertedObjectsKey: identifiers],
      into: [view]
    )
    #expect(log.notes.count == 1)
    #expect((log.notes.first?.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject>)?.count == 1)
  }

  @Test("The history has one transaction with the context's author and a change for each object")
  func history() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    context.name = "importer"
    context.transactionAuthor = "feed"
    let request = NSBatchInsertRequest(
      entityName: "Part",
      objects: (0..<50).map { ["code": "p\($0)"] }
    )
    request.resultType = .objectIDs
    let result = try context.performAndWait { try context.execute(request) }
    let identifiers = try #require(
      (result as? NSBatchInsertResult)?.result as? [NSManagedObjectID]
    )
    let transactions = try warehouse.history()
    #expect(transactions.count == 1)
    #expect(transactions.first?.author == "feed")
    #expect(transactions.first?.contextName == "importer")
    let changes = transactions.first?.changes ?? []
    #expect(changes.map(\.changedObjectID) == identifiers)
    #expect(changes.allSatisfy { $0.changeType == .insert && $0.updatedProperties == nil })
    #expect(Set(changes.map(\.changeID)).count == 50)
  }

  @Test("A context's saves and batches use distinct keys")
  func keysNeverRepeat() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    try context.performAndWait {
      for round in 0..<5 {
        let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
        bin.setValue("saved \(round)", forKey: "name")
        try context.save()
        var left = 3
        try context.execute(
          NSBatchInsertRequest(
            entityName: "Bin",
            dictionaryHandler: { row in
              left -= 1
              row["name"] = "batched \(round)"
              return left < 0
            }
          )
        )
      }
    }
    #expect(try warehouse.count("Bin") == 20)
    let counts = try warehouse.values("partCount", of: "Bin") as? [Int]
    #expect(counts == Array(repeating: 0, count: 20))
  }

  // MARK: Uniqueness constraints

  private func insertTwice(
    _ policy: NSMergePolicy,
    _ objects: [[String: Any]]
  ) throws -> (Warehouse, NSBatchInsertResult?) {
    let warehouse = try Warehouse(unique: true)
    let context = warehouse.context()
    context.mergePolicy = policy
    try context.performAndWait {
      try context.execute(
        NSBatchInsertRequest(
          entityName: "Part",
          objects: [["code": "a", "amount": 1, "weight": 1.0], ["code": "b", "amount": 2]]
        )
      )
    }
    let request = NSBatchInsertRequest(entityName: "Part", objects: objects)
    request.resultType = .objectIDs
    let result = try context.performAndWait { try context.execute(request) }
    return (warehouse, result as? NSBatchInsertResult)
  }

  @Test("With the error policy a taken unique value fails the request, and nothing is inserted")
  func uniqueError() throws {
    let warehouse = try Warehouse(unique: true)
    let context = warehouse.context()
    context.performAndWait {
      let error = #expect(throws: (any Error).self) {
        try context.execute(
          NSBatchInsertRequest(
            entityName: "Part",
            objects: [["code": "a"], ["code": "b"], ["code": "a"]]
          )
        )
      }
      #expect((error as? NSError)?.domain == NSCocoaErrorDomain)
      #expect((error as? NSError)?.code == NSManagedObjectConstraintMergeError)
    }
    #expect(try warehouse.count("Part") == 0)
    #expect(try warehouse.history().isEmpty)
  }

  @Test("With object trump the stored row takes the given values and keeps the others")
  func uniqueObjectTrump() throws {
    let (warehouse, result) = try insertTwice(
      .mergeByPropertyObjectTrump,
      [["code": "a", "amount": 10], ["code": "c"]]
    )
    #expect((result?.result as? [NSManagedObjectID])?.count == 2)
    #expect(try warehouse.values("amount") as? [Int] == [10, 2, 7])
    #expect(try warehouse.values("weight").first as? Double == 1)
    let changes = try warehouse.history().last?.changes ?? []
    #expect(changes.map(\.changeType).sorted { $0.rawValue < $1.rawValue } == [.insert, .update])
  }

  @Test("With overwrite the stored row takes the defaults as well")
  func uniqueOverwrite() throws {
    let (warehouse, _) = try insertTwice(.overwrite, [["code": "a"]])
    #expect(try warehouse.values("amount") as? [Int] == [7, 2])
    #expect(try warehouse.values("weight").first.flatMap { $0 } == nil)
  }

  @Test("With store trump and rollback the stored row is not changed")
  func uniqueStoreTrump() throws {
    for policy in [NSMergePolicy.mergeByPropertyStoreTrump, .rollback] {
      let (warehouse, result) = try insertTwice(
        policy,
        [["code": "a", "amount": 9], ["code": "d"]]
      )
      #expect((result?.result as? [NSManagedObjectID])?.count == 1)
      #expect(try warehouse.values("amount") as? [Int] == [1, 2, 7])
    }
  }

  @Test("A large value leaves no file if its row is not written")
  func uniqueWithFiles() throws {
    for policy in [NSMergePolicy.mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump] {
      let photo = Data(repeating: 1, count: 150_000)
      let (warehouse, _) = try insertTwice(policy, [["code": "a", "photo": photo]])
      let folder = warehouse.folder
        .appendingPathComponent(".Warehouse_SUPPORT/_EXTERNAL_DATA").path
      let files = try FileManager.default.contentsOfDirectory(atPath: folder)
      #expect(files.count == (policy == .mergeByPropertyStoreTrump ? 0 : 1))
    }
  }

  @Test("Duplicates within one request are resolved like stored ones")
  func uniqueWithin() throws {
    let (warehouse, _) = try insertTwice(
      .mergeByPropertyObjectTrump,
      [["code": "x", "amount": 1], ["code": "x", "amount": 2], ["code": "x", "amount": 3]]
    )
    #expect(try warehouse.values("amount") as? [Int] == [1, 2, 3])
    let changes = try warehouse.history().last?.changes ?? []
    #expect(changes.map(\.changeType) == [.insert])
  }

  // MARK: Invalid input

  @Test("A value of the wrong type fails with the property's name, and nothing is inserted")
  func wrongType() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    context.performAndWait {
      let error = #expect(throws: (any Error).self) {
        try context.execute(
          NSBatchInsertRequest(
            entityName: "Part",
            objects: [["code": "a"], ["code": "b", "made": "yesterday"]]
          )
        )
      }
      let info = (error as? NSError)?.userInfo
      #expect(info?[NSValidationKeyErrorKey] as? String == "made")
      #expect((error as? NSError)?.localizedDescription.contains("desired type = NSDate") == true)
    }
    #expect(try warehouse.count("Part") == 0)
  }

  @Test("An unknown or abstract entity is an error")
  func unknownEntity() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    context.performAndWait {
      let error = #expect(throws: (any Error).self) {
        try context.execute(NSBatchInsertRequest(entityName: "Nothing", objects: [["a": 1]]))
      }
      #expect((error as? NSError)?.localizedDescription.contains("'Nothing'") == true)
    }
  }

  @Test("A request of a child context goes to the store and leaves the parent unchanged")
  func child() throws {
    let warehouse = try Warehouse()
    let parent = warehouse.context()
    let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    child.parent = parent
    child.transactionAuthor = "child"
    try child.performAndWait {
      _ = try child.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "x"]]))
    }
    #expect(parent.performAndWait { parent.registeredObjects.isEmpty && !parent.hasChanges })
    #expect(try warehouse.count("Bin") == 1)
    #expect(try warehouse.history().first?.author == "child")
  }

  @Test("A batch insertion runs on a store in memory, and through the coordinator")
  func inMemory() throws {
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
      let request = NSBatchInsertRequest(entityName: "Part", objects: [["code": "a"]])
      request.resultType = .count
      let result = try container.persistentStoreCoordinator.execute(request, with: context)
      #expect((result as? NSBatchInsertResult)?.result as? Int == 1)
      #expect(try context.count(for: NSFetchRequest<Part>(entityName: "Part")) == 1)
    }
  }

  @Test("A batch request of a child context has the author of the root context")
  func authorOfRoot() throws {
    let library = try Library()
    let root = library.context()
    root.transactionAuthor = "root"
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = root
    try child.performAndWait {
      let request = NSBatchInsertRequest(entityName: "Reader", objects: [["name": "Ada"]])
      try child.execute(request)
    }
    let store = try #require(library.container.persistentStoreCoordinator.sqliteStore())
    let history = try store.executeHistory(
      .fetchHistory(after: nil as NSPersistentHistoryToken?)
    )
    let transactions = history.result as? [NSPersistentHistoryTransaction]
    #expect(transactions?.map(\.author) == ["root"])
  }

  @Test("A batch insert without a required value fails, and inserts nothing")
  func missingValue() throws {
    let library = try Library()
    let name = try #require(
      library.container.managedObjectModel.entitiesByName["Reader"]?.attributesByName["name"]
    )
    #expect(!name.isOptional)
    let context = library.context()
    try context.performAndWait {
      let request = NSBatchInsertRequest(
        entityName: "Reader",
        objects: [["name": "Ada"], ["name": NSNull()]]
      )
      let error = try #require(throws: CocoaError.self) { try context.execute(request) }
      #expect(error.code.rawValue == NSValidationMissingMandatoryPropertyError)
      try #expect(context.count(for: NSFetchRequest<Reader>(entityName: "Reader")) == 0)
    }
  }
}
