import Effects
import Foundation

extension NSMigrationManager {
  func migrate(
    from source: MigratedStore,
    to destination: MigratedStore,
    with mappings: NSMappingModel?
  ) throws {
    guard let mappings else {
      throw MigrationError.make(
        NSMigrationMissingMappingModelError,
        ["reason": "Can't find mapping model for migration"]
      )
    }
    let isCopied =
      usesStoreSpecificMigrationManager && isInferred(mappings)
      && source.type == NSSQLiteStoreType && destination.type == NSSQLiteStoreType
    MigrationLog.note("migrating \(source.url.path) to \(destination.url.path)")
    if isCopied {
      try migrateCopy(from: source, to: destination)
    } else {
      try migrateObjects(from: source, to: destination, mappings)
    }
  }

  /// Whether SQL does what the mappings say: they were inferred, and the app has changed none.
  private func isInferred(_ mappings: NSMappingModel) -> Bool {
    guard mappings.isInferred,
      // Between models from which none can be inferred, the mappings are executed as they are.
      let inferred = try? NSMappingModel.inferredMappingModel(
        forSourceModel: sourceModel,
        destinationModel: destinationModel
      )
    else { return false }
    return Set(mappings.entityMappings ?? []) == Set(inferred.entityMappings)
  }

  // MARK: By SQL

  private func migrateCopy(from source: MigratedStore, to destination: MigratedStore) throws {
    let file: StoreFile
    do {
      file = try StoreFile.inspect(source.url)
      try StoreCopy.copy(source.url, to: destination.url, effects: effects)
    } catch {
      throw problem(NSMigrationManagerSourceStoreError, error, source.url)
    }
    do {
      try InPlaceStoreMigration(
        source: sourceModel,
        destination: destinationModel,
        configuration: destination.configuration,
        url: destination.url,
        options: destination.options,
        effects: effects
      )
      .run(file, report: report)
    } catch {
      destination.remove()
      throw error
    }
  }

  // MARK: By objects

  private func migrateObjects(
    from source: MigratedStore,
    to destination: MigratedStore,
    _ mappings: NSMappingModel
  ) throws {
    let sourceCoordinator = NSPersistentStoreCoordinator(
      managedObjectModel: sourceModel.withoutClasses,
      effects: effects
    )
    let destinationCoordinator = NSPersistentStoreCoordinator(
      managedObjectModel: destinationModel.withoutClasses,
      effects: effects
    )
    defer {
      close(sourceCoordinator)
      close(destinationCoordinator)
    }
    do {
      try source.add(to: sourceCoordinator, readOnly: true)
    } catch {
      throw problem(NSMigrationManagerSourceStoreError, error, source.url)
    }
    let existed = try destination.exists
    do {
      try destination.add(to: destinationCoordinator, readOnly: false)
    } catch {
      throw problem(NSMigrationManagerDestinationStoreError, error, destination.url)
    }
    let run = MigrationRun(
      manager: self,
      mappingModel: mappings,
      source: sourceCoordinator,
      destination: destinationCoordinator
    )
    self.run = run
    associations = MigrationAssociations()
    report(0)
    defer { self.run = nil }
    do {
      try run.destinationContext.performAndWait {
        try run.sourceContext.performAndWait {
          try run.start()
          try afterSaving?(associations)
        }
      }
      cancellation = nil
    } catch {
      cancellation = nil
      close(destinationCoordinator)
      if !existed { destination.remove() }
      throw error
    }
    carryMetadata(from: sourceCoordinator, to: destinationCoordinator)
  }

  /// Copies the app's own entries of the source's metadata.
  private func carryMetadata(
    from source: NSPersistentStoreCoordinator,
    to destination: NSPersistentStoreCoordinator
  ) {
    guard let before = source.persistentStores.first?.metadata,
      let store = destination.persistentStores.first
    else { return }
    var metadata = store.metadata ?? [:]
    for (key, value) in before where metadata[key] == nil { metadata[key] = value }
    store.metadata = metadata
  }

  private func close(_ coordinator: NSPersistentStoreCoordinator) {
    for store in coordinator.persistentStores {
      do {
        try coordinator.remove(store)
      } catch {
        StoreLog.warning("A store of a migration could not be closed: \(error)")
      }
    }
  }

  private func problem(_ code: Int, _ error: any Error, _ url: URL) -> NSError {
    let cause = CoreDataError.facade(error) as NSError
    return MigrationError.make(
      code,
      [
        "reason": cause.userInfo["reason"] as? String ?? cause.localizedDescription,
        NSFilePathErrorKey: url.path,
        NSUnderlyingErrorKey: cause,
      ]
    )
  }
}

extension NSManagedObjectModel {
  /// A copy of the model in which every entity has the class `NSManagedObject`.
  fileprivate var withoutClasses: NSManagedObjectModel {
    let plain = "NSManagedObject"
    guard entities.contains(where: { $0.objectClassName != plain }),
      let copy = copy() as? NSManagedObjectModel
    else { return self }
    for entity in copy.entities { entity.managedObjectClassName = plain }
    return copy
  }
}

/// The source or the destination of a migration.
struct MigratedStore {
  let url: URL
  let type: String
  var options: [AnyHashable: Any] = [:]
  /// The configuration whose entities the store has; nil for all entities of the model.
  var configuration: String?

  var exists: Bool { get throws { try FileSystem.isThere(url.path) } }

  /// The names of the entities in the file; nil without metadata: opening the store says why.
  var entityNames: Set<String>? {
    let metadata = try? NSPersistentStoreCoordinator.metadataForPersistentStore(
      ofType: type,
      at: url
    )
    return metadata.flatMap(NSManagedObjectModel.versionHashes).map { Set($0.keys) }
  }

  func add(to coordinator: NSPersistentStoreCoordinator, readOnly: Bool) throws {
    var options = options
    for key in [
      NSMigratePersistentStoresAutomaticallyOption, NSInferMappingModelAutomaticallyOption,
      NSPersistentStoreStagedMigrationManagerOptionKey,
    ] {
      options[key] = nil
    }
    if readOnly { options[NSReadOnlyPersistentStoreOption] = true }
    try coordinator.addPersistentStore(
      ofType: type,
      configurationName: configuration,
      at: url,
      options: options
    )
  }

  /// Removes what an unfinished migration left.
  func remove() {
    // Only regular files are created here.
    guard (try? StorePlace.hasFile(at: url)) == true else { return }
    StorePlace.discardStore(at: url)
  }
}
