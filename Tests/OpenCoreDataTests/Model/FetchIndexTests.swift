import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Fetch indexes created in code")
struct FetchIndexTests {
  private static func model() -> NSManagedObjectModel {
    let name = ModelParts.attribute("name", .stringAttributeType)
    let age = ModelParts.attribute("age", .integer16AttributeType)
    let latitude = ModelParts.attribute("latitude", .doubleAttributeType)
    let longitude = ModelParts.attribute("longitude", .doubleAttributeType)
    let person = NSEntityDescription()
    person.name = "Person"
    person.properties = [name, age, latitude, longitude]
    let descending = NSFetchIndexElementDescription(property: age, collationType: .binary)
    descending.isAscending = false
    let adults = NSFetchIndexDescription(
      name: "adults",
      elements: [
        NSFetchIndexElementDescription(property: name, collationType: .binary), descending,
      ]
    )
    adults.partialIndexPredicate = NSPredicate(format: "age > 17")
    let place = NSFetchIndexDescription(
      name: "place",
      elements: [
        NSFetchIndexElementDescription(property: latitude, collationType: .rTree),
        NSFetchIndexElementDescription(property: longitude, collationType: .rTree),
      ]
    )
    person.indexes = [adults, place]
    person.uniquenessConstraints = [["name"]]
    let model = NSManagedObjectModel()
    model.entities = [person]
    return model
  }

  @Test("An index has its entity and its elements, an element its index and its property")
  func descriptions() throws {
    let person = try #require(Self.model().entitiesByName["Person"])
    let index = try #require(person.indexes.first)
    #expect(index.entity === person)
    #expect(index.elements.first?.indexDescription === index)
    #expect(index.elements.map(\.propertyName) == ["name", "age"])
    #expect(index.elements.first?.property === person.attributesByName["name"])
    let copy = try #require(index.copy() as? NSFetchIndexDescription)
    #expect(copy.name == "adults")
    #expect(copy.elements.map(\.isAscending) == [true, false])
    #expect(copy.partialIndexPredicate != nil)
  }

  @Test("Binary, partial and spatial indexes are created in the store and updated with its rows")
  func stored() throws {
    let library = try Library(model: Self.model())
    let context = library.context()
    try context.performAndWait {
      for (name, age) in [("Ada", 36), ("Eve", 9)] {
        let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
        person.setValue(name, forKey: "name")
        person.setValue(age, forKey: "age")
        person.setValue(Double(age), forKey: "latitude")
        person.setValue(1.5, forKey: "longitude")
      }
      try context.save()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
      request.predicate = NSPredicate(format: "name == 'Ada' AND age > 17")
      try #expect(context.count(for: request) == 1)
    }
    let url = library.folder.appendingPathComponent("Library.sqlite")
    let connection = try SQLiteConnection(path: url.path, mode: .readOnly)
    func sql(_ name: String) throws -> String {
      let found = try connection.scalar(
        "SELECT sql FROM sqlite_master WHERE name = '\(name)'"
      )
      guard case .text(let text)? = found else { return "" }
      return text
    }
    let adults = try sql("Z_Person_adults")
    #expect(adults.contains("ZNAME COLLATE BINARY ASC, ZAGE COLLATE BINARY DESC"))
    #expect(adults.contains("WHERE"))
    try #expect(sql("Z_RT_Person_place").contains("RTREE"))
    try #expect(sql("Z_Person_UNIQUE_name").contains("UNIQUE INDEX"))
    let placed = try connection.scalar("SELECT COUNT(*) FROM Z_RT_Person_place")
    #expect(placed == .integer(2))
  }
}
