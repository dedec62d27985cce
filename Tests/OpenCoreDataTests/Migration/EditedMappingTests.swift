import Foundation
import OpenCoreData
import Testing

/// Writes a person's name in capitals.
final class CapitalsPolicy: NSEntityMigrationPolicy {
  override func createDestinationInstances(
    forSource sInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
    let made = manager.destinationInstances(
      forEntityMappingName: mapping.name,
      sourceInstances: [sInstance]
    )
    for person in made {
      person.setValue((person.value(forKey: "name") as? String)?.uppercased(), forKey: "name")
    }
  }
}

/// Notes the entities of the objects whose relationships it is to set.
final class RelatingPolicy: NSEntityMigrationPolicy {
  override func createRelationships(
    forDestination dInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    let noted = manager.userInfo?["related"] as? [String] ?? []
    manager.userInfo = ["related": noted + [dInstance.entity.name ?? ""]]
    try super.createRelationships(forDestination: dInstance, in: mapping, manager: manager)
  }
}

@Suite("Mapping models that an app edits or builds")
struct EditedMappingTests {
  private typealias Parts = ModelParts

  private static func model(age: Bool) -> NSManagedObjectModel {
    let person = Parts.entity("Person", [Parts.text("name")] + (age ? [Parts.number("age")] : []))
    let car = Parts.entity("Car", [Parts.text("name")])
    Parts.relate(car, "owner", toMany: false, person, "cars", toMany: true)
    return MigrationBench.model(person, car)
  }

  private func filled() throws -> MigrationBench {
    let bench = try MigrationBench("Old.sqlite")
    try bench.open(Self.model(age: false)) { context in
      let ada = context.insert("Person", ["name": "Ada"])
      _ = context.insert("Car", ["name": "Mini", "owner": ada])
    }
    return bench
  }

  private static func inferred() throws -> NSMappingModel {
    try NSMappingModel.inferredMappingModel(
      forSourceModel: model(age: false),
      destinationModel: model(age: true)
    )
  }

  private static func property(_ name: String, _ format: String) -> NSPropertyMapping {
    let mapping = NSPropertyMapping()
    mapping.name = name
    mapping.valueExpression = NSExpression(format: format)
    return mapping
  }

  /// Migrates the store and returns the manager.
  @discardableResult
  private func migrate(
    _ bench: MigrationBench,
    to destination: NSManagedObjectModel = model(age: true),
    by mapping: NSMappingModel
  ) throws -> (manager: NSMigrationManager, target: URL) {
    let target = bench.folder.file("New.sqlite")
    let manager = NSMigrationManager(
      sourceModel: Self.model(age: false),
      destinationModel: destination
    )
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: mapping,
      to: target,
      type: .sqlite
    )
    return (manager, target)
  }

  private func names(_ bench: MigrationBench, at target: URL) throws -> [String?] {
    try bench.open(Self.model(age: true), [:], at: target) { context in
      try context.all("Person").map { $0.value(forKey: "name") as? String }
    }
  }

  @Test("A policy that an app sets in an inferred mapping is called")
  func policy() throws {
    let bench = try filled()
    let mapping = try Self.inferred()
    for entity in mapping.entityMappings where entity.destinationEntityName == "Person" {
      entity.entityMigrationPolicyClassName = NSStringFromClass(CapitalsPolicy.self)
    }
    let (_, target) = try migrate(bench, by: mapping)
    #expect(try names(bench, at: target) == ["ADA"])
  }

  @Test("A value expression that an app changes in an inferred mapping is evaluated")
  func expression() throws {
    let bench = try filled()
    let mapping = try Self.inferred()
    let people = mapping.entityMappings.first { $0.destinationEntityName == "Person" }
    let name = people?.attributeMappings?.first { $0.name == "name" }
    name?.valueExpression = NSExpression(format: "uppercase:($source.name)")
    let (_, target) = try migrate(bench, by: mapping)
    #expect(try names(bench, at: target) == ["ADA"])
  }

  @Test("An entity mapping without a name is named after its entities")
  func defaultName() {
    let mapping = NSEntityMapping()
    mapping.sourceEntityName = "A"
    mapping.destinationEntityName = "B"
    #expect(mapping.name == "A->B")
    mapping.name = "Other"
    #expect(mapping.name == "Other")
    mapping.name = nil
    #expect(mapping.name == "A->B")
    mapping.sourceEntityName = nil
    #expect(mapping.name == "B")
  }

  @Test(
    "Policies of mappings with equal or no names get the objects of their own mapping",
    arguments: [nil, "Same"]
  )
  func sharedNames(name: String?) throws {
    let bench = try filled()
    let mapping = NSMappingModel()
    mapping.entityMappings = ["Person", "Car"].map { entity in
      let mapping = NSEntityMapping()
      mapping.name = name
      mapping.mappingType = .customEntityMappingType
      mapping.sourceEntityName = entity
      mapping.destinationEntityName = entity
      mapping.attributeMappings = [Self.property("name", "$source.name")]
      return mapping
    }
    mapping.entityMappings[1].entityMigrationPolicyClassName = NSStringFromClass(
      RelatingPolicy.self
    )
    let (manager, target) = try migrate(bench, by: mapping)
    #expect(manager.userInfo?["related"] as? [String] == ["Car"])
    #expect(try names(bench, at: target) == ["Ada"])
    if name == nil { #expect(mapping.entityMappingsByName.count == 2) }
  }

  @Test("A relationship takes the objects of its entity where a source was mapped to two entities")
  func severalDestinations() throws {
    func destination() -> NSManagedObjectModel {
      let model = Self.model(age: true)
      model.entities.append(Parts.entity("Badge", [Parts.text("name")]))
      return model
    }
    let bench = try filled()
    let mapping = NSMappingModel()
    mapping.entityMappings = [("Person", "Badge"), ("Person", "Person"), ("Car", "Car")].map {
      let mapping = NSEntityMapping()
      mapping.name = "\($0)To\($1)"
      mapping.mappingType = .transformEntityMappingType
      mapping.sourceEntityName = $0
      mapping.destinationEntityName = $1
      mapping.attributeMappings = [Self.property("name", "$source.name")]
      return mapping
    }
    mapping.entityMappings[2].relationshipMappings = [
      Self.property(
        "owner",
        "FUNCTION($manager, 'destinationInstancesForSourceRelationshipNamed:sourceInstances:', "
          + "'owner', $source.owner)"
      )
    ]
    let (_, target) = try migrate(bench, to: destination(), by: mapping)
    try bench.open(destination(), [:], at: target) { context in
      let owner = try context.all("Car").first?.value(forKey: "owner") as? NSManagedObject
      #expect(owner?.entity.name == "Person")
      #expect(owner?.value(forKey: "name") as? String == "Ada")
      #expect(try context.all("Badge").count == 1)
    }
  }
}
