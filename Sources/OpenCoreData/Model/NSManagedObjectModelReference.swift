import Foundation
import Synchronization

/// A reference to a model version of a staged migration, which is found by its checksum.
///
/// A model file has several versions; the reference takes the one with the checksum, whether it is
/// the current one or not. The model is read when it is needed first: a reference whose version is
/// missing fails the migration that needs it, with `NSManagedObjectModelReferenceNotFoundError`.
open class NSManagedObjectModelReference: NSObject, @unchecked Sendable {
  // Sendable: immutable but for the model, which a lock guards.

  /// The checksum that the model must have.
  public let versionChecksum: String
  private let search: ModelVersionSearch
  private let found = Mutex<NSManagedObjectModel?>(nil)

  /// The model, which is read at the first use; the program stops if there is none with the checksum.
  public var resolvedModel: NSManagedObjectModel {
    do {
      return try resolve()
    } catch {
      preconditionFailure(error.localizedDescription)
    }
  }

  /// Refers to a model in memory.
  public init(model: NSManagedObjectModel, versionChecksum: String) {
    search = .model(model)
    self.versionChecksum = versionChecksum
    super.init()
  }

  /// Refers to a version in a model file: a compiled one, or one as Xcode writes it, with one or
  /// with several versions.
  public convenience init(fileURL: URL, versionChecksum: String) {
    self.init(.file(fileURL), versionChecksum)
  }

  /// Refers to a version in a bundle by the name of its model file or by its own name.
  public convenience init(name modelName: String, in bundle: Bundle?, versionChecksum: String) {
    self.init(.name(modelName, bundle), versionChecksum)
  }

  /// Refers to the version in a bundle whose entities have the given hashes.
  public convenience init(
    entityVersionHashes versionHash: [AnyHashable: Any],
    in bundle: Bundle?,
    versionChecksum: String
  ) {
    self.init(.hashes(versionHash, bundle), versionChecksum)
  }

  private init(_ search: ModelVersionSearch, _ versionChecksum: String) {
    self.search = search
    self.versionChecksum = versionChecksum
    super.init()
  }

  /// The model; throws `NSManagedObjectModelReferenceNotFoundError` if there is none with the checksum.
  func resolve() throws -> NSManagedObjectModel {
    try found.withLock { found in
      if let found { return found }
      let model = try search.version(withChecksum: versionChecksum)
      found = model
      return model
    }
  }
}
