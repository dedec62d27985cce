import Effects
import Foundation

/// Migrates an atomic store, for example the binary one, that is being opened with a newer model.
///
/// Its objects are written to a new file with a mapping model; the complete file is renamed over
/// the old one: a crash leaves either the old store or the new one.
struct AtomicStoreMigration {
  let storeClass: NSAtomicStore.Type
  let type: String
  let model: NSManagedObjectModel
  let configuration: String?
  let url: URL
  let options: [AnyHashable: Any]
  let effects: Effects

  /// Returns nil if the options do not ask for a migration.
  init?(
    storeClass: NSAtomicStore.Type,
    type: String,
    model: NSManagedObjectModel,
    configuration: String?,
    url: URL,
    options: [AnyHashable: Any],
    effects: Effects
  ) {
    guard StoreMigration.isWanted(options), url.isFileURL,
      !NSPersistentStore.flag(NSReadOnlyPersistentStoreOption, in: options)
    else { return nil }
    self.storeClass = storeClass
    self.type = type
    self.model = model
    self.configuration = configuration
    self.url = url
    self.options = options
    self.effects = effects
  }

  func run() throws {
    MigrationLog.note("\(url.path) was written with another model")
    let metadata = try storeClass.metadataForPersistentStore(with: url)
    if let manager = options[NSPersistentStoreStagedMigrationManagerOptionKey]
      as? NSStagedMigrationManager
    {
      let staged = StagedMigration(manager: manager, store: self)
      return try staged.run(metadata: metadata, carried: try? storeClass.carriedModel(at: url))
    }
    let carried = try storeClass.carriedModel(at: url)
    let source = try SourceModel(
      url: url,
      metadata: metadata,
      carried: carried,
      destination: model
    )
    .find()
    let mapping = try mapping(from: source)
    try migrate(from: source, to: model, configuration, by: mapping, at: url)
  }

  /// Migrates the file at a URL, which may be a copy.
  func migrate(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel,
    _ configuration: String?,
    by mapping: NSMappingModel,
    at place: URL
  ) throws {
    let metadata = try storeClass.metadataForPersistentStore(with: place)
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) ?? [:]
    let draft = StoreDraft(beside: place, effects: effects)
    defer { draft.remove() }
    let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
    manager.effects = effects
    try manager.migrate(
      from: MigratedStore(
        url: place,
        type: type,
        configuration: source.configuration(
          holding: Set(hashes.keys),
          preferring: self.configuration
        )
      ),
      to: MigratedStore(url: draft.url, type: type, configuration: configuration),
      with: mapping
    )
    try keepNotes(of: metadata, at: draft.url)
    try FileSystem.move(draft.url.path, over: place.resolvingSymlinksInPath().path)
  }

  private func mapping(from source: NSManagedObjectModel) throws -> NSMappingModel {
    if let found = try NSMappingModel.found(from: source, to: model) {
      return found
    }
    guard NSPersistentStore.flag(NSInferMappingModelAutomaticallyOption, in: options) else {
      throw MigrationError.missingMapping(
        from: source,
        to: model,
        at: url,
        "Can't find mapping model for migration"
      )
    }
    return try inferredMapping(from: source, to: model)
  }

  func inferredMapping(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel
  ) throws -> NSMappingModel {
    do {
      return try NSMappingModel.inferredMappingModel(
        forSourceModel: source,
        destinationModel: destination
      )
    } catch {
      throw MigrationError.missingMapping(
        from: source,
        to: destination,
        at: url,
        "Can't find or automatically infer mapping model for migration",
        cause: error as NSError
      )
    }
  }

  /// Keeps the store's identifier and the app's own metadata entries.
  private func keepNotes(of former: [String: Any], at place: URL) throws {
    let made = try storeClass.metadataForPersistentStore(with: place)
    var metadata = former.merging(made) { _, made in made }
    metadata[NSStoreUUIDKey] = former[NSStoreUUIDKey]
    try storeClass.setMetadata(metadata, forPersistentStoreAt: place)
  }
}

extension NSAtomicStore {
  /// The model that the file contains; nil for custom stores, which contain none.
  class func carriedModel(at url: URL) throws -> NSManagedObjectModel? {
    guard self == BinaryStore.self, let data = try BinaryStoreFile.read(url)?.model else {
      return nil
    }
    return try ModelArchive.model(fromModelCache: data)
  }
}
