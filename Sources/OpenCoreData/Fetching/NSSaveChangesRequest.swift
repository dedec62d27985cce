import Foundation

/// The changes of a save: the objects to insert, to update, to delete and to lock.
///
/// A context creates one for each store that executes requests itself, an `NSIncrementalStore`.
open class NSSaveChangesRequest: NSPersistentStoreRequest {
  /// The objects to insert; nil if there are none.
  public let insertedObjects: Set<NSManagedObject>?
  /// The changed objects; nil if there are none.
  public let updatedObjects: Set<NSManagedObject>?
  /// The objects to delete; nil if there are none.
  public let deletedObjects: Set<NSManagedObject>?
  /// The objects whose versions the store has to compare, without changing them; nil if there are
  /// none.
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
