import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Composite attributes")
struct CompositeAttributeTests {
  private typealias Parts = ModelParts

  /// Shops with a location: latitude, longitude, and an address of street and number.
  private static func model() -> NSManagedObjectModel {
    let address = NSCompositeAttributeDescription()
    address.name = "address"
    address.elements = [
      Parts.text("street"), Parts.attribute("number", .integer16AttributeType),
    ]
    let place = NSCompositeAttributeDescription()
    place.name = "place"
    place.isOptional = true
    place.elements = [
      Parts.attribute("latitude", .doubleAttributeType),
      Parts.attribute("longitude", .doubleAttributeType), address,
    ]
    let shop = NSEntityDescription()
    shop.name = "Shop"
    shop.properties = [Parts.text("name"), place]
    let model = NSManagedObjectModel()
    model.entities = [shop]
    return model
  }

  private func with(_ body: (NSManagedObjectContext, URL) throws -> Void) throws {
    let library = try Library(model: Self.model())
    let context = library.context()
    let url = library.folder.appendingPathComponent("Library.sqlite")
    try context.performAndWait { try body(context, url) }
  }

  private func shop(_ name: String, _ context: NSManagedObjectContext) -> NSManagedObject {
    let shop = NSEntityDescription.insertNewObject(forEntityName: "Shop", into: context)
    shop.setValue(name, forKey: "name")
    return shop
  }

  @Test("A composite attribute is a dictionary, and its leaves are read by key path")
  func values() throws {
    try with { context, _ in
      let made = shop("Corner", context)
      #expect(made.value(forKey: "place") == nil)
      made.setValue(
        ["latitude": 52.5, "longitude": 13.4, "address": ["street": "Main", "number": 7]],
        forKey: "place"
      )
      #expect(made.value(forKeyPath: "place.latitude") as? Double == 52.5)
      #expect(made.value(forKeyPath: "place.address.street") as? String == "Main")
      made.setValue(48.1, forKeyPath: "place.latitude")
      made.setValue(9, forKeyPath: "place.address.number")
      let place = made.value(forKey: "place") as? [String: Any]
      #expect(place?["latitude"] as? Double == 48.1)
      #expect((place?["address"] as? [String: Any])?["number"] as? Int == 9)
      #expect(made.changedValues().keys.sorted() == ["name", "place"])
      made.setValue(nil, forKey: "place")
      #expect(made.value(forKeyPath: "place.latitude") == nil)
    }
  }

  @Test("Each leaf is a column that can be stored, read, searched and sorted")
  func columns() throws {
    try with { context, url in
      for (name, latitude) in [("North", 60.0), ("South", 40.0), ("Middle", 50.0)] {
        shop(name, context).setValue(["latitude": latitude, "longitude": 1], forKey: "place")
      }
      _ = shop("Nowhere", context)
      try context.save()
      context.reset()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Shop")
      request.predicate = NSPredicate(format: "place.latitude > 45")
      request.sortDescriptors = [NSSortDescriptor(key: "place.latitude", ascending: true)]
      let found = try context.fetch(request)
      #expect(found.compactMap { $0.value(forKey: "name") as? String } == ["Middle", "North"])
      #expect(found.first?.value(forKeyPath: "place.latitude") as? Double == 50)
      #expect(found.first?.committedValues(forKeys: ["place"])["place"] is [String: Any])
      found.first?.setValue(70.0, forKeyPath: "place.latitude")
      try #expect(context.fetch(request).last === found.first)
      let connection = try SQLiteConnection(path: url.path, mode: .readOnly)
      let sql = try connection.scalar("SELECT sql FROM sqlite_master WHERE name = 'ZSHOP'")
      guard case .text(let table)? = sql else {
        Issue.record("ZSHOP is missing")
        return
      }
      #expect(table.contains("ZLATITUDE FLOAT"))
      #expect(table.contains("ZSTREET VARCHAR"))
      #expect(!table.contains("ZPLACE"))
    }
  }

  @Test("A store and memory agree on whether a composite is nil")
  func nilPredicates() throws {
    try with { context, _ in
      shop("Corner", context).setValue(["latitude": 52.5], forKey: "place")
      shop("Nowhere", context).setValue(nil, forKey: "place")
      shop("Road", context).setValue(["address": ["street": "Main"]], forKey: "place")
      try context.save()
      let shops = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Shop"))
      for (format, names) in [
        ("place == nil", ["Nowhere"]), ("place != nil", ["Corner", "Road"]),
        ("place.address == nil", ["Corner", "Nowhere"]), ("place.address != nil", ["Road"]),
      ] {
        let predicate = NSPredicate(format: format)
        let request = NSFetchRequest<NSManagedObject>(entityName: "Shop")
        request.predicate = predicate
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        let found = try context.fetch(request)
        #expect(found.compactMap { $0.value(forKey: "name") as? String } == names, "\(format)")
        #expect(Set(found) == Set(shops.filter { predicate.evaluate(with: $0) }), "\(format)")
      }
    }
  }

  @Test("Batch requests set composites by dictionary and their leaves by path")
  func batches() throws {
    try with { context, _ in
      try context.execute(
        NSBatchInsertRequest(
          entityName: "Shop",
          objects: [
            ["name": "A", "place": ["latitude": 1.5, "address": ["number": 3]]],
            ["name": "B", "place.longitude": 2.5],
          ]
        )
      )
      let request = NSFetchRequest<NSManagedObject>(entityName: "Shop")
      request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
      let shops = try context.fetch(request)
      try #require(shops.count == 2)
      #expect(shops[0].value(forKeyPath: "place.latitude") as? Double == 1.5)
      #expect(shops[0].value(forKeyPath: "place.address.number") as? Int == 3)
      #expect(shops[1].value(forKeyPath: "place.longitude") as? Double == 2.5)
      let update = NSBatchUpdateRequest(entityName: "Shop")
      update.propertiesToUpdate = ["place": ["latitude": 9.5], "name": "C"]
      update.resultType = .updatedObjectsCountResultType
      let result = try context.execute(update) as? NSBatchUpdateResult
      #expect(result?.result as? Int == 2)
      context.refreshAllObjects()
      #expect(shops[0].value(forKeyPath: "place.latitude") as? Double == 9.5)
      #expect(shops[0].value(forKeyPath: "place.address.number") == nil)
      #expect(shops[1].value(forKey: "name") as? String == "C")
    }
  }

  @Test("Setting a composite notifies its observers once")
  func observed() throws {
    try with { context, _ in
      let made = shop("Corner", context)
      let watcher = ObservingTests.Watcher()
      made.addObserver(watcher, forKeyPath: "place.latitude", options: [.new], context: nil)
      made.setValue(["latitude": 1.5, "longitude": 2], forKey: "place")
      made.setValue(2.5, forKeyPath: "place.latitude")
      #expect(watcher.changes.map { $0.change[.newKey] as? Double } == [1.5, 2.5])
    }
  }
}
