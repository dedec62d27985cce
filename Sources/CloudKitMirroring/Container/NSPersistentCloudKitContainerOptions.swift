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

/// Stands in a description whose mirroring was turned off by hand.
final class MirroringTurnedOff: NSObject {}

extension NSPersistentStoreDescription {
  /// How the store is mirrored with CloudKit; nil for a store that is not.
  public var cloudKitContainerOptions: NSPersistentCloudKitContainerOptions? {
    get { mirroring as? NSPersistentCloudKitContainerOptions }
    set { mirroring = newValue ?? MirroringTurnedOff() }
  }
}
