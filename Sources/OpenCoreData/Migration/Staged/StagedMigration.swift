import Foundation

/// Runs the stages between a store's version and the app's.
struct StagedMigration {
  let manager: NSStagedMigrationManager
  let store: any StagedStore

  /// The carried model is the one that the store contains; nil if it has none that can be read.
  func run(metadata: [String: Any], carried: NSManagedObjectModel?) throws {
    let plan = try StagePlan(
      manager.stages,
      to: store.model,
      metadata: metadata,
      carried: carried,
      at: store.url
    )
    guard plan.isCustom else {
      return try migrate(from: plan.source, to: store.model, at: store.url)
    }
    defer { manager.container = nil }
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) ?? [:]
    try store.replace(having: hashes) { copy in
      var model = plan.source
      for step in plan.steps { model = try take(step, from: model, at: copy) }
    }
  }

  private func take(
    _ step: StagePlan.Step,
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
      let current = try stage.currentModel.resolve()
      let next = try stage.nextModel.resolve()
      try call(stage.willMigrateHandler, stage, with: current, at: copy)
      // The app's model has the configuration with which the store is opened afterwards.
      let isLast = next.versionChecksum == store.model.versionChecksum
      try migrate(from: current, to: isLast ? store.model : next, at: copy)
      try call(stage.didMigrateHandler, stage, with: next, at: copy)
      return next
    }
  }

  /// Intermediate versions may lack the app's configuration: a copy has all their entities then, until
  /// the last version drops those of other configurations.
  private func migrate(
    from model: NSManagedObjectModel,
    to next: NSManagedObjectModel,
    at place: URL
  ) throws {
    let configuration = next.known(store.configuration)
    try store.migrateInferred(from: model, to: next, configuration, at: place)
  }

  private func call(
    _ handler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?,
    _ stage: NSCustomMigrationStage,
    with model: NSManagedObjectModel,
    at copy: URL
  ) throws {
    guard let handler else { return }
    let container = NSPersistentContainer(
      name: store.url.deletingPathExtension().lastPathComponent,
      managedObjectModel: model,
      effects: store.effects
    )
    container.persistentStoreDescriptions = [try description(of: copy, model)]
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

  private func description(
    of copy: URL,
    _ model: NSManagedObjectModel
  ) throws -> NSPersistentStoreDescription {
    let description = NSPersistentStoreDescription(url: copy)
    for (key, option) in store.options {
      guard let key = key.base as? String, let option = option as? NSObject,
        key != NSPersistentStoreStagedMigrationManagerOptionKey
      else { continue }
      description.setOption(option, forKey: key)
    }
    let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      ofType: store.type,
      at: copy
    )
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) ?? [:]
    description.type = store.type
    description.configuration = model.configuration(
      holding: Set(hashes.keys),
      preferring: store.configuration
    )
    description.shouldMigrateStoreAutomatically = false
    description.shouldAddStoreAsynchronously = false
    return description
  }
}
