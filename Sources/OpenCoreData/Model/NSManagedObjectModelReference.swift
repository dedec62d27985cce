import Foundation

/// A reference to a model version of a staged migration, verified by its checksum.
open class NSManagedObjectModelReference: NSObject, @unchecked Sendable {
  // Sendable: immutable.

  /// The checksum that the model must have.
  public let versionChecksum: String
  /// The model, read when the reference was created.
  public let resolvedModel: NSManagedObjectModel

  /// Refers to a model in memory.
  public init(model: NSManagedObjectModel, versionChecksum: String) {
    resolvedModel = model
    self.versionChecksum = versionChecksum
    super.init()
    requireChecksum()
  }

  /// Refers to a model file.
  public convenience init(fileURL: URL, versionChecksum: String) {
    guard let model = NSManagedObjectModel(contentsOf: fileURL) else {
      preconditionFailure("No model can be read from \(fileURL.path).")
    }
    self.init(model: model, versionChecksum: versionChecksum)
  }

  /// Refers to a model of a bundle by its name.
  public convenience init(name modelName: String, in bundle: Bundle?, versionChecksum: String) {
    do {
      let url = try ModelLocator.locate(name: modelName, in: bundle.map { [$0] })
      self.init(fileURL: url, versionChecksum: versionChecksum)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  /// Refers to the model of a bundle whose entities have the given hashes.
  public convenience init(
    entityVersionHashes versionHash: [AnyHashable: Any],
    in bundle: Bundle?,
    versionChecksum: String
  ) {
    let found = ModelLocator.allModels(in: bundle.map { [$0] }).first {
      $0.versionChecksum == versionChecksum
        && $0.entityVersionHashesByName.allSatisfy { versionHash[$0.key] as? Data == $0.value }
    }
    guard let found else {
      preconditionFailure("No model with the checksum \(versionChecksum) was found.")
    }
    self.init(model: found, versionChecksum: versionChecksum)
  }

  private func requireChecksum() {
    precondition(
      resolvedModel.versionChecksum == versionChecksum,
      "The model's checksum is \(resolvedModel.versionChecksum), not \(versionChecksum)."
    )
  }
}
