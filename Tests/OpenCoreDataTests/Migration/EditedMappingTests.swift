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
}
