import Foundation
import OpenCoreData
import Testing

@Suite("Batch deletion")
struct BatchDeleteTests {
  /// Two bins with two parts each; each part has a label, the labels are ordered, and tags have a
  /// lock.
  private func filled() throws -> Warehouse {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    try context.performAndWait {
      func make(_ entity: String, _ values: [String: Any]) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        for (key, value) in values { object.setValue(value, forKey: key) }
        return object
      }
      let order = make("Order", ["number": 1])
      let lock = make("Lock", ["name": "lock"])
      let free = make("Tag", ["name": "free"])
      let locked = make("Tag", ["name": "locked", "lock": lock])
      // A save of the context would validate, and these parts fail validation.
      for index in 0..<2 {
        _ = make("Bin", ["name": "bin \(index)"])
        _ = make("Label", ["text": "label \(index)", "order": order])
      }
      try context.save()
      try context.execute(
        NSBatchInsertRequest(
          entityName: "Part",
          objects: (0..<4).map { ["code": "p\($0)", "amount": $0] }
        )
      )
      let parts = try context.fetch(NSFetchRequest<Part>(entityName: "Part"))
      let bins = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Bin"))
      let labels = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Label"))
      for part in parts {
        part.setValue(bins[Int(part.amount) % 2], forKey: "bin")
        part.setValue(Set([free, locked]) as NSSet, forKey: "tags")
        if part.amount < 2 { part.setValue(labels[Int(part.amount)], forKey: "label") }
      }
      try context.save()
    }
    return warehouse
  }

  private func delete(
    _ warehouse: Warehouse,
    _ entity: String,
    _ predicate: String? = nil
  ) throws -> Any? {
    let context = warehouse.context()
    return try context.performAndWait {
      let fetch: NSFetchRequest<any NSFetchRequestResult> = NSFetchRequest(entityName: entity)
      fetch.predicate = predicate.map { NSPredicate(format: $0) }
      let request = NSBatchDeleteRequest(fetchRequest: fetch)
      request.resultType = .resultTypeObjectIDs
      return (try context.execute(request) as? NSBatchDeleteResult)?.result
    }
  }

  @Test("A batch deletion deletes the objects that its fetch finds, and returns their identifiers")
  func deleting() throws {
    let warehouse = try filled()
    let result = try delete(warehouse, "Part", "amount > 1")
    #expect((result as? [NSManagedObjectID])?.count == 2)
    #expect(try warehouse.values("code") as? [String] == ["p0", "p1"])
  }

  @Test("A batch deletion returns its status, a count or identifiers")
  func results() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let request = NSBatchDeleteRequest(
        fetchRequest: NSFetchRequest<NSManagedObject>(entityName: "Part")
      )
      #expect(request.resultType == .resultTypeStatusOnly)
      #expect(request.requestType == .batchDeleteRequestType)
      request.fetchRequest.fetchLimit = 1
      let status = try context.execute(request) as? NSBatchDeleteResult
      #expect(status?.result as? Bool == true)
      #expect(status?.resultType == .resultTypeStatusOnly)
      request.resultType = .resultTypeCount
      #expect((try context.execute(request) as? NSBatchDeleteResult)?.result as? Int == 1)
    }
    #expect(try warehouse.count("Part") == 2)
  }

  @Test("The order and limit of the fetch request select the deleted rows")
  func limits() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let fetch = NSFetchRequest<any NSFetchRequestResult>(entityName: "Part")
      fetch.sortDescriptors = [NSSortDescriptor(key: "amount", ascending: false)]
      fetch.fetchLimit = 1
      try context.execute(NSBatchDeleteRequest(fetchRequest: fetch))
    }
    #expect(try warehouse.values("code") as? [String] == ["p0", "p1", "p2"])
  }

  @Test("A batch deletes objects by identifier, and an empty list is no error")
  func identifiers() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let parts = try context.fetch(NSFetchRequest<Part>(entityName: "Part"))
      let request = NSBatchDeleteRequest(
        objectIDs: parts.filter { $0.amount < 3 }.map(\.objectID)
      )
      request.resultType = .resultTypeCount
      #expect((try context.execute(request) as? NSBatchDeleteResult)?.result as? Int == 3)
      let nothing = NSBatchDeleteRequest(objectIDs: [])
      nothing.resultType = .resultTypeCount
      #expect((try context.execute(nothing) as? NSBatchDeleteResult)?.result as? Int == 0)
    }
    #expect(try warehouse.values("code") as? [String] == ["p3"])
  }

  @Test("Identifiers of different entities stop the program with Core Data's text")
  func mismatchedIdentifiers() async {
    await #expect(processExitsWith: .failure) {
      let warehouse = try Warehouse()
      let context = warehouse.container.viewContext
      let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
      try context.save()
      _ = NSBatchDeleteRequest(objectIDs: [bin.objectID, tag.objectID])
    }
  }

  @Test("A batch deletion nullifies inverses in the store, with a new version and a history entry")
  func nullifying() throws {
    let warehouse = try filled()
    let token = try #require(try warehouse.history().last?.token)
    _ = try delete(warehouse, "Bin", "name == 'bin 0'")
    #expect(try warehouse.count("Bin") == 1)
    let context = warehouse.context()
    try context.performAndWait {
      let parts = try context.fetch(NSFetchRequest<Part>(entityName: "Part"))
      for part in parts {
        #expect((part.value(forKey: "bin") == nil) == (part.amount % 2 == 0))
      }
    }
    let changes = try warehouse.history(after: token).first?.changes ?? []
    #expect(changes.filter { $0.changeType == .delete }.count == 1)
    let updates = changes.filter { $0.changeType == .update }
    #expect(updates.count == 2)
    #expect(updates.allSatisfy { $0.updatedProperties?.map(\.name) == ["bin"] })
  }

  @Test("A batch deletion cascades, removes many-to-many links and updates derived counts")
  func cascading() throws {
    let warehouse = try filled()
    let result = try delete(warehouse, "Part", "amount == 1")
    #expect((result as? [NSManagedObjectID])?.count == 1)
    #expect(try warehouse.count("Label") == 1)
    #expect(try warehouse.values("partCount", of: "Bin") as? [Int] == [2, 1])
    let context = warehouse.context()
    try context.performAndWait {
      for tag in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Tag")) {
        #expect((tag.value(forKey: "parts") as? NSSet)?.count == 3)
      }
    }
    let changes = try warehouse.history().last?.changes ?? []
    #expect(Set(changes.map { $0.changedObjectID.entity.name }) == ["Part", "Label"])
  }

  @Test("A deny rule fails the batch deletion, and nothing is deleted")
  func denying() throws {
    let warehouse = try filled()
    let error = #expect(throws: (any Error).self) { try delete(warehouse, "Lock") }
    #expect((error as? NSError)?.domain == NSCocoaErrorDomain)
    #expect((error as? NSError)?.code == NSPersistentStoreSaveError)
    #expect(try warehouse.count("Lock") == 1)
    _ = try delete(warehouse, "Tag", "name == 'locked'")
    _ = try delete(warehouse, "Lock")
    #expect(try warehouse.count("Lock") == 0)
  }

  @Test("A batch deletion that would nullify a required inverse fails and names it")
  func mandatoryInverse() throws {
    let warehouse = try filled()
    let error = #expect(throws: (any Error).self) { try delete(warehouse, "Order") }
    let failure = error as? NSError
    #expect(failure?.code == NSPersistentStoreSaveError)
    let reason = failure?.userInfo[NSLocalizedFailureReasonErrorKey] as? String
    #expect(reason?.contains("mandatory OTM nullify inverse on Order/lines") == true)
    #expect(try warehouse.count("Order") == 1)
    #expect(try warehouse.count("Label") == 2)
    _ = try delete(warehouse, "Label")
    _ = try delete(warehouse, "Order")
    #expect(try warehouse.count("Order") == 0)
  }

  @Test("The history keeps the preserved attributes of batch-deleted rows")
  func tombstones() throws {
    let warehouse = try filled()
    _ = try delete(warehouse, "Part", "amount >= 2")
    let changes = try warehouse.history().last?.changes ?? []
    #expect(changes.map(\.changeType) == [.delete, .delete])
    #expect(Set(changes.compactMap { $0.tombstone?["code"] as? String }) == ["p2", "p3"])
  }

  @Test("A batch deletion removes the files of deleted rows")
  func externalFiles() throws {
    let warehouse = try Warehouse()
    let context = warehouse.context()
    let photo = Data(repeating: 1, count: 200_000)
    try context.performAndWait {
      try context.execute(
        NSBatchInsertRequest(entityName: "Part", objects: [["code": "a", "photo": photo]])
      )
    }
    let files = warehouse.folder.appendingPathComponent(".Warehouse_SUPPORT/_EXTERNAL_DATA").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: files).count == 1)
    _ = try delete(warehouse, "Part")
    #expect(try FileManager.default.contentsOfDirectory(atPath: files).isEmpty)
  }

  @Test("Contexts drop batch-deleted objects when they merge the identifiers")
  func merging() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let parts = try context.fetch(NSFetchRequest<Part>(entityName: "Part"))
      let part = try #require(parts.first { $0.amount == 3 })
      let result = try delete(warehouse, "Part", "amount == 3")
      #expect(part.managedObjectContext != nil && !part.isDeleted)
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSDeletedObjectsKey: result as? [NSManagedObjectID] ?? []],
        into: [context]
      )
      #expect(part.managedObjectContext == nil)
      #expect(try context.fetch(NSFetchRequest<Part>(entityName: "Part")).count == 3)
    }
  }

  @Test("A batch deletion in a store that another process locks times out and deletes nothing")
  func locked() throws {
    let warehouse = try Warehouse(options: [NSPersistentStoreTimeoutOption: 0 as NSNumber])
    let context = warehouse.context()
    try context.performAndWait {
      try context.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "a"]]))
    }
    let other = try Warehouse.locker(of: warehouse.url)
    let error = #expect(throws: (any Error).self) { try delete(warehouse, "Bin") }
    #expect((error as? NSError)?.code == NSPersistentStoreTimeoutError)
    try other.execute("ROLLBACK")
    #expect(try warehouse.count("Bin") == 1)
  }

  @Test("The history keeps large and transformable values of batch-deleted rows themselves")
  func largeTombstones() throws {
    let warehouse = try Warehouse()
    let (small, large) = (Data([7, 8]), Data(repeating: 9, count: 200_000))
    let context = warehouse.context()
    try context.performAndWait {
      let request = NSBatchInsertRequest(
        entityName: "Part",
        objects: [
          ["code": "a", "photo": small, "notes": ["x"]],
          ["code": "b", "photo": large],
          ["code": "c"],
        ]
      )
      try context.execute(request)
    }
    _ = try delete(warehouse, "Part")
    let changes = try warehouse.history().last?.changes ?? []
    var kept: [String: [AnyHashable: Any]] = [:]
    for change in changes {
      guard let tombstone = change.tombstone, let code = tombstone["code"] as? String else {
        continue
      }
      kept[code] = tombstone
    }
    #expect(kept.count == 3)
    #expect(kept["a"]?["photo"] as? Data == small)
    // A transformable value is the bytes of its transformer, without the column's tag.
    #expect((kept["a"]?["notes"] as? Data)?.first == UInt8(ascii: "b"))
    #expect(kept["b"]?["photo"] as? Data == large)
    #expect(kept["c"]?["photo"] == nil && kept["b"]?["notes"] == nil)
  }
}
