import Foundation

/// What a save asks of a store: the objects to insert, to update, to delete and to lock.
///
/// A context makes one for each store that implements requests itself, an `NSIncrementalStore`.
open class NSSaveChangesRequest: NSPersistentStoreRequest {
  /// The objects that are to be inserted; nil where there are none.
  public let insertedObjects: Set<NSManagedObject>?
  /// The objects that were changed; nil where there are none.
  public let updatedObjects: Set<NSManagedObject>?
  /// The objects that are to be deleted; nil where there are none.
  public let deletedObjects: Set<NSManagedObject>?
  /// The objects whose versions the store compares with its own and that it does not change; nil
  /// where there are none.
  public let lockedObjects: Set<NSManagedObject>?

  /// Creates a request with the objects of each kind.
  public init(
    inserted insertedObjects: Set<NSManagedObject>?,
    updated updatedObjects: Set<NSManagedObject>?,
    deleted deletedObjects: Set<NSManagedObject>?,
    locked lockedObjects: Set<NSManagedObject>?
  ) {
    self.insertedObjects = insertedObjects
    self.updatedObjects = updatedObjects
    self.deletedObjects = deletedObjects
    self.lockedObjects = lockedObjects
    super.init()
  }

  /// A save.
  open override var requestType: NSPersistentStoreRequestType { .saveRequestType }
}
