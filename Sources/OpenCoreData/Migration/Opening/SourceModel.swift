import Foundation

/// Finds the model that a store was written with.
///
/// The store carries one since 2016; before that, and where it does not fit the store, the versions
/// beside the app's model and those in its bundles are asked.
struct SourceModel {
  let file: StoreFile
  let destination: NSManagedObjectModel

  func find() throws -> NSManagedObjectModel {
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: file.metadata) ?? [:]
    // A copy that cannot be read is as good as none.
    let carried = try? file.model()
    if let carried, fits(carried, hashes) { return carried }
    let models = versionsBeside() + ModelLocator.allModels(in: nil)
    if let found = NSManagedObjectModel(byMerging: models, forStoreMetadata: file.metadata) {
      return found
    }
    throw MigrationError.make(
      NSMigrationMissingSourceModelError,
      [
        "reason": "Can't find model for source store",
        "URL": URL(fileURLWithPath: file.path),
        "metadata": file.metadata,
      ]
    )
  }

  /// Every entity of the store is in the model, as the store has it.
  ///
  /// How Core Data hashes derived and composite attributes is not known, so those are not compared.
  private func fits(_ model: NSManagedObjectModel, _ hashes: [String: Data]) -> Bool {
    hashes.allSatisfy { name, hash in
      guard let entity = model.entitiesByName[name] else { return false }
      let isUnknown = entity.attributesByName.values.contains {
        $0 is NSDerivedAttributeDescription || $0 is NSCompositeAttributeDescription
      }
      return isUnknown || entity.versionHash == hash
    }
  }

  private func versionsBeside() -> [NSManagedObjectModel] {
    guard let url = destination.sourceURL else { return [] }
    let folder = url.deletingLastPathComponent()
    let isVersion = ["momd", "xcdatamodeld"].contains(folder.pathExtension)
    return ModelFile.readableVersions(of: isVersion ? folder : url).map(\.model)
  }
}
