import Foundation
import OpenCoreData
import Testing

final class ClassesByNameStation: NSManagedObject {}

final class ClassesByNameLine: NSManagedObject {}

final class ClassesByNamePlatform: NSManagedObject {}

private final class ClassesByNameTicket: NSManagedObject {}

private enum Bus {
  final class ClassesByNameLine: NSManagedObject {}
  final class ClassesByNameStop: NSManagedObject {}
  final class ClassesByNameConductor {}
}

private enum Tram {
  final class ClassesByNameStop: NSManagedObject {}
}

final class ClassesByNamePolicy: NSEntityMigrationPolicy {}

/// This target has no resources, so that no folder of theirs names its module.
@Suite("Classes that a model names without their modules")
struct ClassesByNameTests {
  private static func model(className: String) -> NSManagedObjectModel {
    let entity = NSEntityDescription()
    entity.name = "Thing"
    entity.managedObjectClassName = className
    let model = NSManagedObjectModel()
    model.entities = [entity]
    return model
  }

  /// The class of a new object of an entity that names its class so.
  private static func type(ofClassNamed name: String) throws -> NSManagedObject.Type {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model(className: name))
    let context = NSManagedObjectContext(concurrencyType: .mainQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    return Swift.type(
      of: NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
    )
  }

  @Test("A class is found by its own name", arguments: ["", "."])
  func ownName(prefix: String) throws {
    #expect(
      try Self.type(ofClassNamed: prefix + "ClassesByNameStation") == ClassesByNameStation.self
    )
  }

  @Test("A private class is found by its own name")
  func privateClass() throws {
    #expect(try Self.type(ofClassNamed: "ClassesByNameTicket") == ClassesByNameTicket.self)
  }

  @Test("A class of a module is found before one inside another type")
  func nestedClass() throws {
    #expect(try Self.type(ofClassNamed: "ClassesByNameLine") == ClassesByNameLine.self)
  }

  @Test("A name that two classes have, or that is no class of managed objects, finds none")
  func noClass() throws {
    #expect(try Self.type(ofClassNamed: "ClassesByNameStop") == NSManagedObject.self)
    #expect(try Self.type(ofClassNamed: "ClassesByNameConductor") == NSManagedObject.self)
    #expect(try Self.type(ofClassNamed: "ClassesByNameAirport") == NSManagedObject.self)
  }

  @Test("A name that two classes have is a warning with both and with the line that decides")
  func warning() async {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      _ = try ClassesByNameTests.type(ofClassNamed: "ClassesByNameStop")
    }
    #expect(said(result, "OpenCoreDataTests.(unknown context"))
    #expect(said(result, "NSStringFromClass(ClassesByNameStop.self)"))
  }

  @Test("A class that the model puts into a module that lacks it is not looked up in all others")
  func otherModule() throws {
    #expect(try Self.type(ofClassNamed: "Trains.ClassesByNameTicket") == NSManagedObject.self)
  }

  @Test("The entity of a model in use has the class's name with its module")
  func className() throws {
    let model = Self.model(className: "ClassesByNamePlatform")
    _ = NSPersistentStoreCoordinator(managedObjectModel: model)
    #expect(
      model.entities.first?.managedObjectClassName == "OpenCoreDataTests.ClassesByNamePlatform"
    )
    #expect(ClassesByNamePlatform.entity() === model.entities.first)
  }

  @Test("A migration's policy is found by its own name")
  func policy() throws {
    let source = Self.model(className: "NSManagedObject")
    let destination = Self.model(className: "NSManagedObject")
    let mapping = NSEntityMapping()
    mapping.name = "ThingToThing"
    mapping.mappingType = .customEntityMappingType
    mapping.sourceEntityName = "Thing"
    mapping.destinationEntityName = "Thing"
    mapping.entityMigrationPolicyClassName = "ClassesByNamePolicy"
    let mappings = NSMappingModel()
    mappings.entityMappings = [mapping]
    let bench = try MigrationBench()
    try bench.open(source) { _ in }
    let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
    try manager.migrateStore(
      from: bench.url,
      type: .sqlite,
      mapping: mappings,
      to: bench.folder.file("New.sqlite"),
      type: .sqlite
    )
  }
}
