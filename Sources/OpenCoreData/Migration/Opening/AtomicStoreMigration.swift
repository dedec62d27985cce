import Effects
import Foundation

/// Migrates an atomic store, for example the binary one, that is being opened with a newer model.
///
/// Its objects are written to a new file with a mapping model; the complete file is renamed over
/// the old one: a crash leaves either the old store or the new one.
struct AtomicStoreMigration {
  private let storeClass: NSAtomicStore.Type
  private let type: String
  private let model: NSManagedObjectModel
  private let url: URL
  private let options: [AnyHashable: Any]
  private let effects: Effects

  /// Returns nil if the options do not ask for a migration.
  init?(
    storeClass: NSAtomicStore.Type,
    type: String,
    model: NSManagedObjectModel,
    url: URL,
    options: [AnyHashable: Any],
    effects: Effects
  ) {
    guard
      NSPersistentStore.flag(NSMigratePersistentStoresAutomaticallyOption, in: options),
      !NSPersistentStore.flag(NSReadOnlyPersistentStoreOption, in: options), url.isFileURL
    else { return nil }
    self.storeClass = storeClass
    self.type = type
    self.model = model
    self.url = url
    self.options = options
    self.effects = effects
  }

  func run() throws {
    MigrationLog.note("\(url.path) was written with another model")
    let metadata = try storeClass.metadataForPersistentStore(with: url)
    let source = try SourceModel(
      url: url,
      metadata: metadata,
      carried: try storeClass.carriedModel(at: url),
      destination: model
    )
    .find()
    let draft = StoreDraft(beside: url, effects: effects)
    defer { draft.remove() }
    let place = draft.url
    let manager = NSMigrationManager(sourceModel: source, destinationModel: model)
    manager.effects = effects
    try manager.migrateStore(
      from: url,
      sourceType: type,
      options: [NSReadOnlyPersistentStoreOption: true],
      with: try mapping(from: source),
      toDestinationURL: place,
      destinationType: type,
      destinationOptions: [:]
    )
    try keepNotes(of: metadata, at: place)
    try FileSystem.move(place.path, over: url.resolvingSymlinksInPath().path)
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
    do {
      return try NSMappingModel.inferredMappingModel(
        forSourceModel: source,
        destinationModel: model
      )
    } catch {
      throw MigrationError.missingMapping(
        from: source,
        to: model,
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
