import Foundation
import WatershedSQLite

/// Runs the stages between a store's version and the app's.
struct StagedMigration {
  let manager: NSStagedMigrationManager
  let migration: StoreMigration

  /// One step of the migration.
  private enum Step {
    case lightweight(NSManagedObjectModel)
    case custom(NSCustomMigrationStage)
  }

  func run(_ file: StoreFile) throws {
    let steps = try self.steps(from: checksum(of: file))
    let isCustom = steps.contains { if case .custom = $0 { true } else { false } }
    let source = try self.source(of: file)
    guard isCustom else {
      return try migration.inPlace(
        from: source,
        to: migration.model,
        migration.configuration,
        file,
        at: migration.url
      )
    }
    let replacement = StoreContentsReplacement(
      url: migration.url,
      options: migration.options,
      effects: migration.effects
    )
    defer { manager.container = nil }
    do {
      try replacement.run { current, copy in
        // Another process may have migrated the file first.
        guard current.hashes == file.hashes else { return false }
        try StoreCopy.copy(migration.url, to: copy, effects: migration.effects)
        var model = source
        for step in steps { model = try take(step, from: model, at: copy) }
        return true
      }
    } catch let error as StoreError {
      throw MigrationError.inPlace(error, at: migration.url)
    } catch let error as SQLiteError {
      throw MigrationError.inPlace(error, at: migration.url)
    }
  }

  // MARK: Planning

  private func checksum(of file: StoreFile) -> String {
    file.metadata[StoreMetadataKey.versionChecksum] as? String
      ?? NSManagedObjectModel.metadataChecksum(of: file.hashes)
  }

  private func steps(from checksum: String) throws -> [Step] {
    let stages = manager.stages
    let target = migration.model.versionChecksum
    // If two stages share the version, the later one: the earlier one is complete.
    guard let first = stages.lastIndex(where: { $0.checksums.contains(checksum) }) else {
      throw MigrationError.make(
        NSManagedObjectModelReferenceNotFoundError,
        [
          "reason": "The version of the store, \(checksum), is in none of the stages.",
          NSLocalizedDescriptionKey: "Staged migration failed: the store's version is unknown.",
          NSFilePathErrorKey: migration.url.path,
        ]
      )
    }
    if let last = stages.lastIndex(where: { $0.checksums.contains(target) }), last < first {
      throw MigrationError.make(
        NSStagedMigrationBackwardMigrationError,
        [
          "reason": "A store file cannot be migrated backwards with staged migration.",
          NSFilePathErrorKey: migration.url.path,
        ]
      )
    }
    var steps: [Step] = []
    var current = checksum
    for stage in stages[first...] {
      guard let stage = stage as? NSCustomMigrationStage, current != target else { continue }
      guard current != stage.nextModel.versionChecksum else { continue }
      if current != stage.currentModel.versionChecksum {
        steps.append(.lightweight(stage.currentModel.resolvedModel))
      }
      steps.append(.custom(stage))
      current = stage.nextModel.versionChecksum
    }
    if current != target { steps.append(.lightweight(migration.model)) }
    return steps
  }

  /// The store's own copy of its model, or the model that a stage refers to.
  private func source(of file: StoreFile) throws -> NSManagedObjectModel {
    let checksum = checksum(of: file)
    for stage in manager.stages.compactMap({ $0 as? NSCustomMigrationStage }) {
      for reference in [stage.currentModel, stage.nextModel]
      where reference.versionChecksum == checksum {
        return reference.resolvedModel
      }
    }
    return try SourceModel(file: file, destination: migration.model).find()
  }

  // MARK: Running

  private func take(
    _ step: Step,
    from model: NSManagedObjectModel,
    at copy: URL
  ) throws -> NSManagedObjectModel {
    switch step {
    case .lightweight(let next):
      MigrationLog.note("lightweight stage to \(next.versionChecksum)")
      try migrate(from: model, to: next, at: copy)
      return next
    case .custom(let stage):
      MigrationLog.note("custom stage \(stage.label ?? "")")
      let next = stage.nextModel.resolvedModel
      try call(stage.willMigrateHandler, stage, with: stage.currentModel.resolvedModel, at: copy)
      try migrate(from: stage.currentModel.resolvedModel, to: next, at: copy)
      try call(stage.didMigrateHandler, stage, with: next, at: copy)
      return next
    }
  }

  private func migrate(
    from model: NSManagedObjectModel,
    to next: NSManagedObjectModel,
    at copy: URL
  ) throws {
    // Intermediate versions may lack the app's configuration; the last one has it.
    let configuration = next === migration.model ? migration.configuration : nil
    try migration.inPlace(from: model, to: next, configuration, StoreFile.inspect(copy), at: copy)
  }

  private func call(
    _ handler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?,
    _ stage: NSCustomMigrationStage,
    with model: NSManagedObjectModel,
    at copy: URL
  ) throws {
    guard let handler else { return }
    let container = NSPersistentContainer(
      name: migration.url.deletingPathExtension().lastPathComponent,
      managedObjectModel: model,
      effects: migration.effects
    )
    let description = NSPersistentStoreDescription(url: copy)
    for (key, option) in migration.options {
      guard let key = key.base as? String, let option = option as? NSObject,
        key != NSPersistentStoreStagedMigrationManagerOptionKey
      else { continue }
      description.setOption(option, forKey: key)
    }
    description.shouldMigrateStoreAutomatically = false
    description.shouldAddStoreAsynchronously = false
    container.persistentStoreDescriptions = [description]
    var problem: (any Error)?
    container.loadPersistentStores { _, error in problem = error }
    if let problem { throw problem }
    manager.container = container
    defer {
      manager.container = nil
      for store in container.persistentStoreCoordinator.persistentStores {
        // A store that cannot be closed here is closed when it is released.
        try? container.persistentStoreCoordinator.remove(store)
      }
    }
    try handler(manager, stage)
  }
}
