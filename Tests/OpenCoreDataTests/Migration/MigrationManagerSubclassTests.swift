import Foundation
import OpenCoreData
import Testing

@Suite("Subclasses of the migration manager")
struct MigrationManagerSubclassTests {
  /// A manager with an initializer and a function of its own, which follows its progress.
  private final class CountingManager: NSMigrationManager, @unchecked Sendable {
    // Unchecked: one thread uses it.
    let suffix: String
    private(set) var steps: [Float] = []
    private(set) var announced = 0

    init(from source: NSManagedObjectModel, to destination: NSManagedObjectModel, suffix: String) {
      self.suffix = suffix
      super.init(sourceModel: source, destinationModel: destination)
    }

    override func perform(_ name: String, arguments: [Any?]) throws -> Any? {
      guard name == "suffixed:", let text = arguments.first as? String else {
        return try super.perform(name, arguments: arguments)
      }
      return text + suffix
    }

    override func willChangeValue(forKey key: String) {
      if key == "migrationProgress" { announced += 1 }
    }

    override func didChangeValue(forKey key: String) {
      if key == "migrationProgress" { steps.append(migrationProgress) }
    }
  }

  private static func model() -> NSManagedObjectModel {
    MigrationBench.model(
      ModelParts.entity("Person", [ModelParts.attribute("name", .stringAttributeType)])
    )
  }

  private static func mapping(function: String) -> NSMappingModel {
    let name = NSPropertyMapping()
    name.name = "name"
    name.valueExpression = NSExpression(format: "FUNCTION($manager, '\(function)', $source.name)")
    let people = NSEntityMapping()
    people.name = "PersonToPerson"
    people.mappingType = .customEntityMappingType
    people.sourceEntityName = "Person"
    people.destinationEntityName = "Person"
    people.attributeMappings = [name]
    let model = NSMappingModel()
    model.entityMappings = [people]
    return model
  }

  private func migrate(
    _ bench: MigrationBench,
    function: String
  ) throws -> (manager: CountingManager, url: URL) {
    let (source, destination) = (Self.model(), Self.model())
    try bench.open(source) { _ = $0.insert("Person", ["name": "Ada"]) }
    let manager = CountingManager(from: source, to: destination, suffix: "!")
    let url = bench.folder.file("New.sqlite")
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: Self.mapping(function: function),
      to: url,
      type: .sqlite
    )
    return (manager, url)
  }

  @Test("A subclass has its own initializer, functions for value expressions, and its progress")
  func subclass() throws {
    let bench = try MigrationBench()
    let (manager, url) = try migrate(bench, function: "suffixed:")
    #expect(manager.steps.last == 1)
    #expect(manager.steps.count > 1 && manager.steps == manager.steps.sorted())
    #expect(manager.announced == manager.steps.count)
    try bench.open(Self.model(), [:], at: url) { context in
      try #expect(context.all("Person").first?.value(forKey: "name") as? String == "Ada!")
    }
  }

  @Test("A function that the manager does not have fails the migration with its name")
  func unknownFunction() throws {
    let bench = try MigrationBench()
    let error = #expect(throws: NSError.self) { try migrate(bench, function: "other:") }
    #expect(error.map { "\($0)" }?.contains("other:") == true)
  }
}
