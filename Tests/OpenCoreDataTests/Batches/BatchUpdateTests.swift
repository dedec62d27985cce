import Foundation
import OpenCoreData
import Testing

@Suite("Batch update")
struct BatchUpdateTests {
  private func filled(unique: Bool = false, history: Bool = true) throws -> Warehouse {
    let warehouse = try Warehouse(unique: unique, history: history)
    let context = warehouse.context()
    try context.performAndWait {
      try context.execute(
        NSBatchInsertRequest(
          entityName: "Part",
          objects: (0..<4).map { ["code": "p\($0)", "amount": $0, "weight": Double($0) + 0.5] }
        )
      )
      try context.execute(
        NSBatchInsertRequest(
          entityName: "SparePart",
          objects: [["code": "q", "amount": 10, "model": "X"]]
        )
      )
    }
    return warehouse
  }

  private func update(
    _ warehouse: Warehouse,
    _ configure: (NSBatchUpdateRequest) -> Void
  ) throws -> Any? {
    let context = warehouse.context()
    let request = NSBatchUpdateRequest(entityName: "Part")
    configure(request)
    return try context.performAndWait {
      (try context.execute(request) as? NSBatchUpdateResult)?.result
    }
  }

  @Test("A batch update has by default the entity's name, the status result and no predicate")
  func defaults() throws {
    let request = NSBatchUpdateRequest(entityName: "Part")
    #expect(request.entityName == "Part")
    #expect(request.requestType == .batchUpdateRequestType)
    #expect(request.resultType == .statusOnlyResultType)
    #expect(request.includesSubentities)
    #expect(request.predicate == nil && request.propertiesToUpdate == nil)
    let entity = try #require(WarehouseModel.make().entitiesByName["Part"])
    #expect(NSBatchUpdateRequest(entity: entity).entity === entity)
  }

  @Test("Constants by name and by description are set in the rows that the predicate matches")
  func constants() throws {
    let warehouse = try filled()
    let model = warehouse.container.managedObjectModel
    let weight = try #require(model.entitiesByName["Part"]?.attributesByName["weight"])
    let result = try update(warehouse) { request in
      request.predicate = NSPredicate(format: "amount >= %d", 2)
      request.propertiesToUpdate = ["amount": 50, weight: NSNull()]
      request.resultType = .updatedObjectsCountResultType
    }
    #expect(result as? Int == 3)
    #expect(try warehouse.values("amount") as? [Int] == [0, 1, 50, 50, 50])
    #expect(try warehouse.values("weight").map { $0 as? Double } == [0.5, 1.5, nil, nil, nil])
  }

  @Test("Expressions are computed from each row's former values")
  func expressions() throws {
    let warehouse = try filled()
    let result = try update(warehouse) { request in
      request.propertiesToUpdate = [
        "amount": NSExpression(format: "amount * 2 + 1"),
        "weight": NSExpression(forKeyPath: "amount"),
        "code": NSExpression(forConstantValue: "same"),
      ]
    }
    #expect(result as? Bool == true)
    #expect(try Set(warehouse.values("amount").compactMap { $0 as? Int }) == [1, 3, 5, 7, 21])
    #expect(try Set(warehouse.values("weight").compactMap { $0 as? Double }) == [0, 1, 2, 3, 10])
    #expect(try Set(warehouse.values("code").compactMap { $0 as? String }) == ["same"])
  }

  @Test("An expression gives a Float attribute the number that a save would write")
  func floats() throws {
    let warehouse = try filled()
    _ = try update(warehouse) { request in
      request.predicate = NSPredicate(format: "amount == 0")
      request.propertiesToUpdate = ["ratio": NSExpression(format: "weight / 5")]
    }
    // 0.1 has no exact Float: the column is compared with what an object reads.
    let context = warehouse.context()
    try context.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Part")
      request.predicate = NSPredicate(format: "amount == 0")
      let part = try #require(try context.fetch(request).first)
      let ratio = try #require(part.value(forKey: "ratio") as? NSNumber)
      #expect(ratio.floatValue == Float(0.1))
      request.predicate = NSPredicate(format: "ratio == %@", ratio)
      #expect(try context.count(for: request) == 1)
    }
    #expect(
      errorCode {
        _ = try update(warehouse) { request in
          request.propertiesToUpdate = ["ratio": NSExpression(format: "amount * 1e39")]
        }
      } == NSValidationNumberTooLargeError
    )
  }

  @Test("A batch update changes sub-entities, or not, as the request says")
  func subentities() throws {
    let warehouse = try filled()
    let count = try update(warehouse) { request in
      request.includesSubentities = false
      request.propertiesToUpdate = ["amount": 1]
      request.resultType = .updatedObjectsCountResultType
    }
    #expect(count as? Int == 4)
    #expect(try warehouse.values("amount") as? [Int] == [1, 1, 1, 1, 10])
  }

  @Test("An expression may follow a to-one, and a predicate a to-many")
  func joins() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      bin.setValue("B7", forKey: "name")
      let fetch = NSFetchRequest<Part>(entityName: "Part")
      fetch.predicate = NSPredicate(format: "code IN %@", ["p1", "p2"])
      for part in try context.fetch(fetch) { part.setValue(bin, forKey: "bin") }
      try context.save()
    }
    _ = try update(warehouse) { request in
      request.predicate = NSPredicate(format: "bin.name == %@", "B7")
      request.propertiesToUpdate = ["code": NSExpression(forKeyPath: "bin.name")]
    }
    #expect(try warehouse.values("code") as? [String] == ["B7", "B7", "p0", "p3", "q"])
  }

  @Test("A batch update recomputes derived attributes, and each row gets a file for a large value")
  func derivedAndExternal() throws {
    let warehouse = try filled()
    let photo = Data(repeating: 7, count: 150_000)
    _ = try update(warehouse) { request in
      request.propertiesToUpdate = ["code": "x", "photo": photo]
    }
    #expect(try warehouse.values("upperCode") as? [String] == Array(repeating: "X", count: 5))
    #expect(try warehouse.values("photo") as? [Data] == Array(repeating: photo, count: 5))
    let files = warehouse.folder.appendingPathComponent(".Warehouse_SUPPORT/_EXTERNAL_DATA").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: files).count == 5)
    _ = try update(warehouse) { $0.propertiesToUpdate = ["photo": Data([1])] }
    #expect(try FileManager.default.contentsOfDirectory(atPath: files).isEmpty)
  }

  @Test("A batch update increments versions, so a context that changed an object gets a conflict")
  func versions() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let fetch = NSFetchRequest<Part>(entityName: "Part")
      fetch.predicate = NSPredicate(format: "code == 'p1'")
      let part = try #require(try context.fetch(fetch).first)
      #expect(part.amount == 1)
      _ = try update(warehouse) { $0.propertiesToUpdate = ["amount": 70] }
      #expect(part.amount == 1)
      part.setValue(3.25, forKey: "weight")
      let error = #expect(throws: (any Error).self) { try context.save() }
      #expect((error as? NSError)?.code == NSManagedObjectMergeError)
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try context.save()
      #expect(part.amount == 70)
    }
  }

  @Test("Contexts show new values after they merge the identifiers, and faults immediately")
  func merging() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    try context.performAndWait {
      let fetch = NSFetchRequest<Part>(entityName: "Part")
      fetch.sortDescriptors = [NSSortDescriptor(key: "code", ascending: true)]
      let parts = try context.fetch(fetch)
      #expect(parts[0].amount == 0)
      let result = try update(warehouse) { request in
        request.propertiesToUpdate = ["amount": 5]
        request.resultType = .updatedObjectIDsResultType
      }
      let identifiers = try #require(result as? [NSManagedObjectID])
      #expect(Set(identifiers) == Set(parts.map(\.objectID)))
      #expect(parts[0].amount == 0)
      #expect(parts[1].amount == 5)
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSUpdatedObjectsKey: identifiers],
        into: [context]
      )
      #expect(parts[0].amount == 5)
    }
  }

  @Test("A context that merges automatically does not merge batches by itself")
  func automaticMerging() throws {
    let warehouse = try filled()
    let context = warehouse.context()
    context.automaticallyMergesChangesFromParent = true
    let part = try context.performAndWait {
      try #require(
        try context.fetch(NSFetchRequest<Part>(entityName: "Part")).first { $0.amount == 2 }
      )
    }
    try context.performAndWait {
      _ = try update(warehouse) { $0.propertiesToUpdate = ["amount": 5] }
      #expect(part.amount == 2)
    }
    context.performAndWait {}
    context.performAndWait { #expect(part.amount == 2) }
  }

  @Test("The history names the changed properties of each entity")
  func history() throws {
    let warehouse = try filled()
    let before = try #require(try warehouse.history().last?.token)
    let context = warehouse.context()
    context.transactionAuthor = "updater"
    try context.performAndWait {
      let request = NSBatchUpdateRequest(entityName: "Part")
      request.propertiesToUpdate = ["amount": 4, "weight": 2.0]
      _ = try context.execute(request)
    }
    let transactions = try warehouse.history(after: before)
    #expect(transactions.map(\.author) == ["updater"])
    let changes = transactions.first?.changes ?? []
    #expect(changes.count == 5)
    #expect(changes.allSatisfy { $0.changeType == .update })
    #expect(
      changes.allSatisfy { Set($0.updatedProperties?.map(\.name) ?? []) == ["amount", "weight"] }
    )
    #expect(Set(changes.map { $0.changedObjectID.entity.name }) == ["Part", "SparePart"])
  }

  @Test("A batch update that violates a unique constraint fails and changes nothing")
  func constraint() throws {
    let warehouse = try filled(unique: true)
    let error = #expect(throws: (any Error).self) {
      try update(warehouse) { $0.propertiesToUpdate = ["code": "same"] }
    }
    #expect((error as? NSError)?.code == NSManagedObjectConstraintMergeError)
    #expect(try warehouse.values("code") as? [String] == ["p0", "p1", "p2", "p3", "q"])
  }

  @Test("A value of the wrong type and a predicate for memory only are errors")
  func badInput() throws {
    let warehouse = try filled()
    let wrong = #expect(throws: (any Error).self) {
      try update(warehouse) { $0.propertiesToUpdate = ["amount": "many"] }
    }
    #expect((wrong as? NSError)?.userInfo[NSValidationKeyErrorKey] as? String == "amount")
    #expect(throws: (any Error).self) {
      try update(warehouse) { request in
        request.predicate = NSPredicate { _, _ in true }
        request.propertiesToUpdate = ["amount": 1]
      }
    }
    #expect(try warehouse.values("amount") as? [Int] == [0, 1, 2, 3, 10])
  }

  @Test("A key that is no attribute stops the program with Core Data's text")
  func badKeys() async {
    await #expect(processExitsWith: .failure) {
      let warehouse = try Warehouse()
      let request = NSBatchUpdateRequest(entityName: "Part")
      request.propertiesToUpdate = ["bin": NSNull()]
      _ = try warehouse.container.viewContext.execute(request)
    }
    await #expect(processExitsWith: .failure) {
      let warehouse = try Warehouse()
      let request = NSBatchUpdateRequest(entityName: "Part")
      request.propertiesToUpdate = ["colour": 1]
      _ = try warehouse.container.viewContext.execute(request)
    }
  }

  @Test("Without history a batch update changes the rows and records nothing")
  func withoutHistory() throws {
    let warehouse = try filled(history: false)
    _ = try update(warehouse) { $0.propertiesToUpdate = ["amount": 1] }
    #expect(try warehouse.values("amount") as? [Int] == [1, 1, 1, 1, 1])
    #expect(try warehouse.history().isEmpty)
  }
}
