import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Writing many rows of one save in blocks")
struct BlockInsertTests {
  private let folder: ScratchFolder

  init() throws {
    folder = try ScratchFolder()
  }

  @Test(
    "Every value is written, also those of rows that do not fill a block",
    arguments: [63, 64, 200]
  )
  func values(count: Int) throws {
    let world = try BlockWorld(folder.file("blocks.sqlite"))
    let serials = (0..<count).map { _ in UUID() }
    try world.context.performAndWait {
      for index in 0..<count {
        let item = world.insert("Item", index)
        item.setValue(index % 5 == 0 ? nil : "name \(index)", forKey: "name")
        item.setValue(String(repeating: "é", count: index * 40), forKey: "text")
        item.setValue(serials[index], forKey: "serial")
        item.setValue(Decimal(index) / 4, forKey: "price")
        item.setValue(Data(repeating: UInt8(index % 250), count: index), forKey: "bytes")
        // Rows of two kinds alternate: each has its own block.
        world.insert("Box", index).setValue(item, forKey: "item")
      }
      try world.context.save()
    }
    let read = try BlockWorld(folder.file("blocks.sqlite"))
    try read.context.performAndWait {
      let items = try read.all("Item")
      #expect(items.map { $0.value(forKey: "number") as? Int } == Array(0..<count))
      for (index, item) in items.enumerated() {
        #expect(item.value(forKey: "name") as? String == (index % 5 == 0 ? nil : "name \(index)"))
        #expect(
          item.value(forKey: "text") as? String == String(repeating: "é", count: index * 40)
        )
        #expect(item.value(forKey: "serial") as? UUID == serials[index])
        #expect(
          item.value(forKey: "price") as? NSDecimalNumber
            == NSDecimalNumber(decimal: Decimal(index) / 4)
        )
        #expect(
          item.value(forKey: "bytes") as? Data == Data(repeating: UInt8(index % 250), count: index)
        )
      }
      let boxes = try read.all("Box")
      #expect(boxes.map { ($0.value(forKey: "item") as? NSManagedObject) } == items)
    }
  }

  @Test("The history has the rows in the order of their insertion")
  func history() throws {
    let world = try BlockWorld(folder.file("history.sqlite"))
    let identifiers = try world.context.performAndWait {
      let objects = (0..<150).map { world.insert($0 % 3 == 0 ? "Box" : "Item", $0) }
      try world.context.save()
      return objects.map(\.objectID)
    }
    let request = NSPersistentHistoryChangeRequest.fetchHistory(
      after: nil as NSPersistentHistoryToken?
    )
    let result = try world.context.performAndWait { try world.context.execute(request) }
    let transactions = (result as? NSPersistentHistoryResult)?.result
    let changes = (transactions as? [NSPersistentHistoryTransaction])?.first?.changes ?? []
    #expect(changes.map(\.changedObjectID) == identifiers)
    #expect(changes.allSatisfy { $0.changeType == .insert })
  }

  @Test("Many edges of a many-to-many exist once each, from both ends")
  func links() throws {
    let world = try BlockWorld(folder.file("links.sqlite"))
    try world.context.performAndWait {
      let boxes = (0..<30).map { world.insert("Box", $0) }
      for index in 0..<50 {
        let item = world.insert("Item", index)
        let chosen = (0..<(index % 7)).map { boxes[($0 * 11 + index) % 30] }
        item.setValue(NSSet(array: chosen), forKey: "boxes")
      }
      try world.context.save()
    }
    let read = try BlockWorld(folder.file("links.sqlite"))
    try read.context.performAndWait {
      for (index, item) in try read.all("Item").enumerated() {
        let boxes = item.value(forKey: "boxes") as? Set<NSManagedObject> ?? []
        let expected = Set((0..<(index % 7)).map { ($0 * 11 + index) % 30 })
        #expect(Set(boxes.compactMap { $0.value(forKey: "number") as? Int }) == expected)
        for box in boxes {
          #expect((box.value(forKey: "items") as? Set<NSManagedObject>)?.contains(item) == true)
        }
      }
    }
  }

  @Test("If a key is already taken, nothing of the save is written")
  func takenKey() throws {
    let world = try BlockWorld(folder.file("taken.sqlite"))
    try world.context.performAndWait {
      for index in 0..<40 { _ = world.insert("Box", index) }
      let items = (0..<100).map { world.insert("Item", $0) }
      try world.context.obtainPermanentIDs(for: items)
      // Another program wrote a row without updating `Z_MAX`.
      let other = try SQLiteConnection(path: folder.file("taken.sqlite").path)
      let key = items[77].objectID.uriRepresentation().lastPathComponent.dropFirst()
      try other.run("INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT) VALUES (\(key), 2, 1)")
      #expect(throws: (any Error).self) { try world.context.save() }
      #expect(try other.scalar("SELECT COUNT(*) FROM ZITEM") == .integer(1))
      #expect(try other.scalar("SELECT COUNT(*) FROM ZBOX") == .integer(0))
      #expect(try other.scalar("SELECT COUNT(*) FROM ACHANGE") == .integer(0))
      #expect(world.context.insertedObjects.count == 140)
      try other.run("DELETE FROM ZITEM")
      try world.context.save()
      #expect(try other.scalar("SELECT COUNT(*) FROM ZITEM") == .integer(100))
    }
  }

  @Test("A duplicate unique value is refused among many rows as among few")
  func uniqueValues() throws {
    let world = try BlockWorld(folder.file("unique.sqlite"), unique: true)
    world.context.performAndWait {
      for index in 0..<100 {
        world.insert("Item", index).setValue("n\(index % 98)", forKey: "name")
      }
      #expect {
        try world.context.save()
      } throws: { error in
        let error = error as NSError
        let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [Any]
        return error.code == NSManagedObjectConstraintMergeError && conflicts?.count == 2
      }
    }
  }

  @Test(
    "A batch fills blocks with the values and defaults of each row",
    arguments: [15, 16, 17, 100, 4100]
  )
  func batches(count: Int) throws {
    let world = try BlockWorld(folder.file("batch.sqlite"))
    try world.context.performAndWait {
      let dictionaries = (0..<count).map { index -> [String: Any] in
        index % 3 == 0 ? ["number": index] : ["number": index, "name": "d\(index)", "price": 1.5]
      }
      try world.context.execute(NSBatchInsertRequest(entityName: "Item", objects: dictionaries))
      var index = count
      let byDictionary = NSBatchInsertRequest(entityName: "Item") {
        (row: NSMutableDictionary) -> Bool in
        guard index < count * 2 else { return true }
        row["number"] = index
        if index % 3 != 0 { row["name"] = "d\(index)" }
        index += 1
        return false
      }
      byDictionary.resultType = .count
      let counted = try world.context.execute(byDictionary) as? NSBatchInsertResult
      #expect(counted?.result as? Int == count)
      let byObject = NSBatchInsertRequest(entityName: "Item") { (row: NSManagedObject) -> Bool in
        #expect(row.value(forKey: "name") as? String == "unnamed")
        guard index < count * 3 else { return true }
        row.setValue(index, forKey: "number")
        if index % 3 != 0 { row.setValue("d\(index)", forKey: "name") }
        index += 1
        return false
      }
      byObject.resultType = .objectIDs
      let named = try world.context.execute(byObject) as? NSBatchInsertResult
      let identifiers = try #require(named?.result as? [NSManagedObjectID])
      #expect(identifiers.count == count)
      let items = try world.all("Item")
      #expect(items.map { $0.value(forKey: "number") as? Int } == Array(0..<count * 3))
      #expect(
        items.map { $0.value(forKey: "name") as? String }
          == (0..<count * 3).map { $0 % 3 == 0 ? "unnamed" : "d\($0)" }
      )
      #expect(items.suffix(count).map(\.objectID) == identifiers)
      let history = NSPersistentHistoryChangeRequest.fetchHistory(
        after: nil as NSPersistentHistoryToken?
      )
      let result = try world.context.execute(history) as? NSPersistentHistoryResult
      let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
      #expect(transactions.map { $0.changes?.count } == [count, count, count])
    }
    // Unused reserved keys were returned.
    let other = try SQLiteConnection(path: folder.file("batch.sqlite").path)
    #expect(
      try other.scalar("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Item'")
        == .integer(Int64(count * 3))
    )
  }
}

/// Items with every type of value, and boxes.
private struct BlockWorld {
  let container: NSPersistentContainer
  let context: NSManagedObjectContext

  init(_ url: URL, unique: Bool = false) throws {
    let item = ModelParts.entity(
      "Item",
      [
        ModelParts.number("number"), ModelParts.text("text"),
        ModelParts.text("name") { $0.defaultValue = "unnamed" },
        ModelParts.attribute("serial", .UUIDAttributeType),
        ModelParts.attribute("price", .decimalAttributeType),
        ModelParts.attribute("bytes", .binaryDataAttributeType),
      ]
    )
    let box = ModelParts.entity("Box", [ModelParts.number("number")])
    ModelParts.relate(item, "boxes", toMany: true, box, "items", toMany: true)
    ModelParts.relate(box, "item", toMany: false, item, "holders", toMany: true)
    if unique { item.uniquenessConstraints = [["name"]] }
    for attribute in item.attributesByName.values { attribute.isOptional = true }
    let model = NSManagedObjectModel()
    model.entities = [box, item]
    container = NSPersistentContainer(name: "Blocks", managedObjectModel: model)
    let description = NSPersistentStoreDescription(url: url)
    description.setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    context = container.newBackgroundContext()
  }

  func insert(_ entity: String, _ number: Int) -> NSManagedObject {
    let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
    object.setValue(number, forKey: "number")
    return object
  }

  func all(_ entity: String) throws -> [NSManagedObject] {
    let request = NSFetchRequest<NSManagedObject>(entityName: entity)
    request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
    return try context.fetch(request)
  }
}
