import Effects
import Foundation

/// Migrates a store that is being opened with a newer model, in one of the available ways.
///
/// A staged migration manager is preferred, then a mapping model from the app's bundles, then an
/// inferred mapping.
struct StoreMigration {
  let model: NSManagedObjectModel
  let configuration: String?
  let url: URL
  let options: [AnyHashable: Any]
  let effects: Effects

  /// Whether the options ask for a migration.
  static func isWanted(_ options: [AnyHashable: Any]) -> Bool {
    NSPersistentStore.flag(NSMigratePersistentStoresAutomaticallyOption, in: options)
      || options[NSPersistentStoreStagedMigrationManagerOptionKey] is NSStagedMigrationManager
  }

  func run(_ file: StoreFile) throws {
    MigrationLog.note("\(url.path) was written with another model")
    if let manager = options[NSPersistentStoreStagedMigrationManagerOptionKey]
      as? NSStagedMigrationManager
    {
      let staged = StagedMigration(manager: manager, store: self)
      // A store without a readable model is known by its hashes.
      return try staged.run(metadata: file.metadata, carried: try? file.model())
    }
    let source = try SourceModel(file: file, destination: model).find()
    if let mapping = try NSMappingModel.found(from: source, to: model) {
      return try MappedStoreMigration(source: source, mapping: mapping, migration: self).run()
    }
    guard NSPersistentStore.flag(NSInferMappingModelAutomaticallyOption, in: options) else {
      throw MigrationError.missingMapping(
        from: source,
        to: model,
        at: url,
        "Can't find mapping model for migration"
      )
    }
    try inPlace(from: source, to: model, configuration, file, at: url)
  }

  /// Runs a lightweight migration of the file at a URL, which may be a copy.
  func inPlace(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel,
    _ configuration: String?,
    _ file: StoreFile,
    at place: URL
  ) throws {
    do {
      try InPlaceStoreMigration(
        source: source,
        destination: destination,
        configuration: configuration,
        url: place,
        options: options,
        effects: effects
      )
      .run(file)
    } catch let error as NSError where error.code == NSInferredMappingModelError {
      throw MigrationError.missingMapping(
        from: source,
        to: destination,
        at: url,
        "Can't find or automatically infer mapping model for migration",
        cause: error
      )
    }
  }
}
