import CoreData
import Foundation
import Testing

@Suite("Examples: migration")
struct MigrationExamples {
  /// A person with text attributes of these names.
  private func model(_ names: String..., renaming: [String: String] = [:]) -> NSManagedObjectModel {
    let person = NSEntityDescription()
    person.name = "Person"
    person.properties = names.map { name in
      let attribute = NSAttributeDescription()
      attribute.name = name
      attribute.type = .string
      attribute.renamingIdentifier = renaming[name]
      return attribute
    }
    let model = NSManagedObjectModel()
    model.entities = [person]
    return model
  }

  private func fill(_ model: NSManagedObjectModel, at url: URL) throws {
    let container = NSPersistentContainer(name: "People", managedObjectModel: model)
    container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
      person.setValue("Ada Lovelace", forKey: "name")
      try context.save()
    }
    try container.removeStores()
  }

  private func values(_ key: String, in container: NSPersistentContainer) throws -> [String?] {
    let context = container.newBackgroundContext()
    return try context.performAndWait {
      try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person"))
        .map { $0.value(forKey: key) as? String }
    }
  }

  @Test("A renamed attribute keeps its values in a lightweight migration")
  func lightweight() async throws {
    try await Blog.withFolder { folder in
      let url = folder.appendingPathComponent("People.sqlite")
      try fill(model("name"), at: url)
      let newModel = model("fullName", "email", renaming: ["fullName": "name"])
      // example: Lightweight migration
      let container = NSPersistentContainer(name: "People", managedObjectModel: newModel)
      let description = NSPersistentStoreDescription(url: url)
      description.shouldMigrateStoreAutomatically = true  // both are the defaults
      description.shouldInferMappingModelAutomatically = true
      container.persistentStoreDescriptions = [description]
      var failure: (any Error)?
      container.loadPersistentStores { _, error in failure = error }
      if let failure { throw failure }
      // end
      #expect(try values("fullName", in: container) == ["Ada Lovelace"])
      try container.removeStores()
    }
  }

  @Test("An inferred mapping exists where a lightweight migration is possible")
  func inferred() throws {
    let oldModel = model("name")
    let newModel = model("name", "email")
    // example: NSMappingModel
    let mapping = try NSMappingModel.inferredMappingModel(
      forSourceModel: oldModel,
      destinationModel: newModel
    )
    print(mapping.entityMappings.map(\.name))
    // end
    #expect(mapping.entityMappings.count == 1)
  }

  @Test("A migration manager fills a new store by a mapping model and its policy")
  func mapped() async throws {
    try await Blog.withFolder { folder in
      let oldURL = folder.appendingPathComponent("People.sqlite")
      let newURL = folder.appendingPathComponent("New.sqlite")
      let oldModel = model("name")
      let newModel = model("name", "initial")
      try fill(oldModel, at: oldURL)
      // example: NSEntityMapping
      let mapping = try NSMappingModel.inferredMappingModel(
        forSourceModel: oldModel,
        destinationModel: newModel
      )
      for entityMapping in mapping.entityMappings where entityMapping.sourceEntityName == "Person" {
        entityMapping.mappingType = .customEntityMappingType
        entityMapping.entityMigrationPolicyClassName = NSStringFromClass(InitialPolicy.self)
      }
      // end
      // example: NSMigrationManager
      let manager = NSMigrationManager(sourceModel: oldModel, destinationModel: newModel)
      try manager.migrateStore(
        from: oldURL,
        type: .sqlite,
        mapping: mapping,
        to: newURL,
        type: .sqlite
      )
      // end
      let container = NSPersistentContainer(name: "People", managedObjectModel: newModel)
      container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: newURL)]
      container.loadPersistentStores { _, error in #expect(error == nil) }
      #expect(try values("initial", in: container) == ["A"])
      try container.removeStores()
    }
  }

  @Test("Stages name the versions between which they migrate by checksums or references")
  func stages() {
    let oldModel = model("name")
    let newModel = model("name", "email")
    // example: NSLightweightMigrationStage
    let adding = NSLightweightMigrationStage([oldModel.versionChecksum, newModel.versionChecksum])
    adding.label = "People get an address"
    // end
    // example: NSCustomMigrationStage
    let filling = NSCustomMigrationStage(
      migratingFrom: NSManagedObjectModelReference(
        model: oldModel,
        versionChecksum: oldModel.versionChecksum
      ),
      to: NSManagedObjectModelReference(
        model: newModel,
        versionChecksum: newModel.versionChecksum
      )
    )
    filling.didMigrateHandler = { manager, stage in
      let context = manager.container?.newBackgroundContext()
      try context?.performAndWait { try context?.save() }  // after edits of the app's own
    }
    // end
    #expect(adding.versionChecksums.count == 2)
    #expect(filling.didMigrateHandler != nil)
  }

  @Test("A custom stage splits a name before the attribute is removed")
  func staged() async throws {
    try await Blog.withFolder { folder in
      let url = folder.appendingPathComponent("People.sqlite")
      let firstModel = model("name")
      let secondModel = model("name", "given", "family")
      let thirdModel = model("given", "family")
      try fill(firstModel, at: url)
      // example: NSStagedMigrationManager
      let adding = NSLightweightMigrationStage([firstModel.versionChecksum])
      let splitting = NSCustomMigrationStage(
        migratingFrom: NSManagedObjectModelReference(
          model: secondModel,
          versionChecksum: secondModel.versionChecksum
        ),
        to: NSManagedObjectModelReference(
          model: thirdModel,
          versionChecksum: thirdModel.versionChecksum
        )
      )
      splitting.willMigrateHandler = { manager, _ in
        guard let context = manager.container?.newBackgroundContext() else { return }
        try context.performAndWait {
          let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
          for person in try context.fetch(request) {
            let name = person.value(forKey: "name") as? String ?? ""
            let parts = name.split(separator: " ", maxSplits: 1).map(String.init)
            person.setValue(parts.first, forKey: "given")
            person.setValue(parts.count > 1 ? parts[1] : nil, forKey: "family")
          }
          try context.save()
        }
      }
      let description = NSPersistentStoreDescription(url: url)
      description.setOption(
        NSStagedMigrationManager([adding, splitting]),
        forKey: NSPersistentStoreStagedMigrationManagerOptionKey
      )
      // end
      let container = NSPersistentContainer(name: "People", managedObjectModel: thirdModel)
      container.persistentStoreDescriptions = [description]
      container.loadPersistentStores { _, error in #expect(error == nil) }
      #expect(try values("family", in: container) == ["Lovelace"])
      try container.removeStores()
    }
  }
}

// example: NSEntityMigrationPolicy
final class InitialPolicy: NSEntityMigrationPolicy {
  override func createDestinationInstances(
    forSource sInstance: NSManagedObject,
    in mapping: NSEntityMapping,
    manager: NSMigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
    let made = manager.destinationInstances(
      forEntityMappingName: mapping.name ?? "",
      sourceInstances: [sInstance]
    )
    let name = sInstance.value(forKey: "name") as? String ?? "?"
    for person in made { person.setValue(String(name.prefix(1)), forKey: "initial") }
  }
}
// end
