import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Composite attributes in migrations")
struct CompositeMigrationTests {
  private typealias Parts = ModelParts

  private func group(
    _ name: String,
    former: String? = nil,
    _ elements: [NSAttributeDescription]
  ) -> NSCompositeAttributeDescription {
    let composite = NSCompositeAttributeDescription()
    composite.name = name
    composite.isOptional = true
    composite.elements = elements
    if let former { composite.renamingIdentifier = former }
    return composite
  }

  private func text(_ name: String, former: String? = nil) -> NSAttributeDescription {
    Parts.attribute(name, .stringAttributeType) {
      if let former { $0.renamingIdentifier = former }
    }
  }

  private func older() -> NSManagedObjectModel {
    MigrationBench.model(
      Parts.entity(
        "Person",
        [text("name"), group("address", [text("city"), text("zip"), group("geo", [text("lat")])])]
      )
    )
  }

  private func newer() -> NSManagedObjectModel {
    let country = text("country")
    country.defaultValue = "DE"
    let point = group("point", former: "geo", [text("latitude", former: "lat")])
    return MigrationBench.model(
      Parts.entity(
        "Person",
        [
          text("name"),
          group("place", former: "address", [text("town", former: "city"), country, point]),
        ]
      )
    )
  }

  private func filled() throws -> MigrationBench {
    let bench = try MigrationBench()
    try bench.open(older()) { context in
      let person = context.insert("Person", ["name": "a"])
      let address: [String: Any] = ["city": "Ulm", "zip": "1", "geo": ["lat": "48"]]
      person.setValue(address, forKey: "address")
    }
    return bench
  }

  @Test("Leaves keep their values when leaves and groups are renamed, added and removed")
  func leaves() throws {
    let bench = try filled()
    try bench.open(newer()) { context in
      let person = try #require(try context.all("Person").first)
      #expect(person.value(forKeyPath: "place.town") as? String == "Ulm")
      #expect(person.value(forKeyPath: "place.country") as? String == "DE")
      #expect(person.value(forKeyPath: "place.point.latitude") as? String == "48")
    }
  }

  @Test("An inferred mapping that is executed by objects follows renamed leaves too")
  func byObjects() throws {
    let bench = try filled()
    let mapping = try NSMappingModel.inferredMappingModel(
      forSourceModel: older(),
      destinationModel: newer()
    )
    let manager = NSMigrationManager(sourceModel: older(), destinationModel: newer())
    manager.usesStoreSpecificMigrationManager = false
    let place = bench.folder.file("New.sqlite")
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: mapping,
      to: place,
      type: .sqlite
    )
    try bench.open(newer(), [:], at: place) { context in
      let person = try #require(try context.all("Person").first)
      #expect(person.value(forKeyPath: "place.town") as? String == "Ulm")
      #expect(person.value(forKeyPath: "place.point.latitude") as? String == "48")
    }
  }

  @Test("A lightweight migration refuses another type of a leaf")
  func type() throws {
    let bench = try filled()
    let number = Parts.attribute("city", .integer64AttributeType)
    let model = MigrationBench.model(
      Parts.entity("Person", [text("name"), group("address", [number])])
    )
    #expect(bench.refusal(model)?.code == NSMigrationMissingMappingModelError)
  }

  @Test("A migration closes the file, so a store that was moved can be destroyed")
  func closed() throws {
    let bench = try filled()
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: newer())
    let store = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: bench.url,
      options: MigrationBench.lightweight
    )
    try coordinator.remove(store)
    try coordinator.destroyPersistentStore(at: bench.url, type: .sqlite)
    #expect(try Data(contentsOf: bench.url).isEmpty)
  }

  @Test("Pending changes of a mirroring get the new names of the properties")
  func books() throws {
    let bench = try filled()
    try bench.connect().execute(
      """
      CREATE TABLE WSMIRROR_RECORD (ID INTEGER PRIMARY KEY, ENTITY TEXT, PK INTEGER, \
      PROPERTIES TEXT NOT NULL DEFAULT '');
      INSERT INTO WSMIRROR_RECORD VALUES (1, 'Person', 1, 'address' || char(10) || 'name');
      """
    )
    try bench.open(newer()) { _ in }
    let noted = try bench.connect().scalar("SELECT PROPERTIES FROM WSMIRROR_RECORD")
    #expect(noted == .text("name\nplace"))
  }
}
