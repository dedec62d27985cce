import Foundation

/// Finds the model that a store was written with.
///
/// A store contains its model since 2016; without one, or if it does not match the store, the
/// versions beside the app's model and those in its bundles are searched.
struct SourceModel {
  private let url: URL
  private let metadata: [String: Any]
  /// The model that the store contains; nil also if it cannot be read.
  private let carried: NSManagedObjectModel?
  private let destination: NSManagedObjectModel

  init(file: StoreFile, destination: NSManagedObjectModel) {
    self.init(
      url: URL(fileURLWithPath: file.path),
      metadata: file.metadata,
      carried: try? file.model(),
      destination: destination
    )
  }

  init(
    url: URL,
    metadata: [String: Any],
    carried: NSManagedObjectModel?,
    destination: NSManagedObjectModel
  ) {
    self.url = url
    self.metadata = metadata
    self.carried = carried
    self.destination = destination
  }

  func find() throws -> NSManagedObjectModel {
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) ?? [:]
    if let carried, Self.fits(carried, hashes) { return carried }
    let models = versionsBeside() + ModelLocator.allModels(in: nil)
    if let found = NSManagedObjectModel(byMerging: models, forStoreMetadata: metadata) {
      return found
    }
    throw MigrationError.make(
      NSMigrationMissingSourceModelError,
      [
        "reason": "Can't find model for source store",
        "URL": url,
        "metadata": metadata,
      ]
    )
  }

  /// Whether every entity of the store is in the model with the same hash.
  ///
  /// How Core Data hashes derived and composite attributes is not documented, so those are not
  /// compared.
  static func fits(_ model: NSManagedObjectModel, _ hashes: [String: Data]) -> Bool {
    hashes.allSatisfy { name, hash in
      guard let entity = model.entitiesByName[name] else { return false }
      return entity.hasUnknownDigest || entity.versionHash == hash
    }
  }

  private func versionsBeside() -> [NSManagedObjectModel] {
    guard let url = destination.sourceURL else { return [] }
    let folder = url.deletingLastPathComponent()
    let isVersion = ["momd", "xcdatamodeld"].contains(folder.pathExtension)
    return ModelFile.readableVersions(of: isVersion ? folder : url).map(\.model)
  }
}
