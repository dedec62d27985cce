import Foundation
import OpenCloudKit
import OpenCoreData

/// How a store is mirrored with CloudKit.
///
/// ```swift
/// let description = NSPersistentStoreDescription(url: storeURL)
/// description.cloudKitContainerOptions = NSPersistentCloudKitContainerOptions(
///   containerIdentifier: "iCloud.org.example.app"
/// )
/// container.persistentStoreDescriptions = [description]
/// ```
open class NSPersistentCloudKitContainerOptions: NSObject {
  /// The CloudKit container that the store is mirrored with.
  public let containerIdentifier: String
  /// The database scope of the container that the store is mirrored with; private by default.
  open var databaseScope = CKDatabase.Scope.private
  /// A container with its own connection to the service, so that one process can act as two
  /// devices.
  package var container: CKContainer?
  /// The limits of the mirroring, if they differ from the defaults.
  package var limits = MirroringLimits()

  /// Mirrors with the container of this identifier.
  public init(containerIdentifier: String) {
    self.containerIdentifier = containerIdentifier
    super.init()
  }

  /// Mirrors with an existing container.
  package convenience init(container: CKContainer) {
    self.init(containerIdentifier: container.containerIdentifier ?? "")
    self.container = container
  }
}

/// Limits of the mirroring, which tests reduce.
package struct MirroringLimits: Hashable, Sendable {
  /// The operations of one batch.
  package var operationsPerBatch = ExportBatcher.Limits.operationLimit
  /// The records of one page of the feed.
  package var recordsPerPage = 200
  /// The bytes of a record's values above which the largest move into files.
  package var inlineBytes = AssetBudget.recordLimit

  package init() {}
}

/// Marks a description whose mirroring the app turned off.
final class MirroringTurnedOff: NSObject {}

extension NSPersistentStoreDescription {
  /// How the store is mirrored with CloudKit; nil for a store that is not.
  public var cloudKitContainerOptions: NSPersistentCloudKitContainerOptions? {
    get { mirroring as? NSPersistentCloudKitContainerOptions }
    set { mirroring = newValue ?? MirroringTurnedOff() }
  }
}
