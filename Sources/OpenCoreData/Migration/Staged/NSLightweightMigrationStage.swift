import Foundation

/// A stage of model versions between which a lightweight migration is enough.
///
/// ```swift
/// let adding = NSLightweightMigrationStage([oldModel.versionChecksum, newModel.versionChecksum])
/// adding.label = "People get an address"
/// ```
open class NSLightweightMigrationStage: NSMigrationStage {
  /// The checksums of the versions, the oldest first.
  public let versionChecksums: [String]

  /// Creates a stage for model versions, named by `NSManagedObjectModel.versionChecksum`.
  public init(_ checksums: [String]) {
    versionChecksums = checksums
    super.init()
  }

  override var checksums: [String] { versionChecksums }
}
