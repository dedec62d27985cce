import Foundation
import OpenCloudKit
import OpenCoreData

/// How a store is mirrored with CloudKit.
open class NSPersistentCloudKitContainerOptions: NSObject {
  /// The CloudKit container that the store is mirrored with.
  public let containerIdentifier: String
  /// The database of the container that the store is mirrored with: the private one, unless set.
  open var databaseScope = CKDatabase.Scope.private
  /// A container with a way to the service of its own, so that one process can be two devices.
  package var container: CKContainer?
  /// Limits of the mirroring other than the usual ones.
  package var limits = MirroringLimits()

  /// Mirrors with a container of this name.
  public init(containerIdentifier: String) {
    self.containerIdentifier = containerIdentifier
    super.init()
  }

  /// Mirrors with a container that is made already.
  package convenience init(container: CKContainer) {
    self.init(containerIdentifier: container.containerIdentifier ?? "")
    self.container = container
  }
}

/// Limits of the mirroring, which tests make small.
package struct MirroringLimits: Hashable, Sendable {
  /// Operations of one batch.
  package var operationsPerBatch = ExportBatcher.Limits.operationLimit
  /// Records of one page of the feed.
  package var recordsPerPage = 200
  /// Bytes of a record's values before the largest move into files.
  package var inlineBytes = AssetBudget.recordLimit

  package init() {}
}

/// Stands in a description whose mirroring was turned off by hand.
final class MirroringTurnedOff: NSObject {}

extension NSPersistentStoreDescription {
  /// How the store is mirrored with CloudKit; nil for a store that is not.
  public var cloudKitContainerOptions: NSPersistentCloudKitContainerOptions? {
    get { mirroring as? NSPersistentCloudKitContainerOptions }
    set { mirroring = newValue ?? MirroringTurnedOff() }
  }
}
