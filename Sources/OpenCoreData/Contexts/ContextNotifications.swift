import Foundation

/// The notification key of the set of inserted objects.
public let NSInsertedObjectsKey = "inserted"
/// The notification key of the set of updated objects.
public let NSUpdatedObjectsKey = "updated"
/// The notification key of the set of deleted objects.
public let NSDeletedObjectsKey = "deleted"
/// The notification key of the set of objects that took new values from their store.
public let NSRefreshedObjectsKey = "refreshed"
/// The notification key of the set of objects that were made invalid.
public let NSInvalidatedObjectsKey = "invalidated"
/// The notification key that says that all objects were made invalid.
public let NSInvalidatedAllObjectsKey = "invalidatedAll"
/// The notification key of the set of identifiers of inserted objects.
public let NSInsertedObjectIDsKey = "inserted_objectIDs"
/// The notification key of the set of identifiers of updated objects.
public let NSUpdatedObjectIDsKey = "updated_objectIDs"
/// The notification key of the set of identifiers of deleted objects.
public let NSDeletedObjectIDsKey = "deleted_objectIDs"
/// The notification key of the set of identifiers of refreshed objects.
public let NSRefreshedObjectIDsKey = "refreshed_objectIDs"
/// The notification key of the set of identifiers of objects that were made invalid.
public let NSInvalidatedObjectIDsKey = "invalidated_objectIDs"
/// The notification key of the query generation that a save moved its context to.
public let NSManagedObjectContextQueryGenerationKey = "newQueryGeneration"

// All are posted on the queue of the context that is their object, before the call that causes them
// returns: `save()` posts on the saving thread, and a merge that another context's save requests
// posts when it runs on the merging context's own queue.

extension NSNotification.Name {
  /// Posted when pending changes of a context's objects are processed.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let NSManagedObjectContextObjectsDidChange = NSNotification.Name(
    "NSObjectsChangedInManagingContextNotification"
  )
  /// Posted before a context is saved, also where it has no changes.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let NSManagedObjectContextWillSave = NSNotification.Name(
    "NSManagingContextWillSaveChangesNotification"
  )
  /// Posted after a context was saved, also where there was nothing to save.
  ///
  /// The object is the context, and the thread is the one that works on its queue. The sets of inserted and of
  /// updated objects are always in the user info.
  ///
  /// **Differs from Core Data:** the rows that the save changed beside those of the context's objects are
  /// under `NSRefreshedObjectsKey`: those whose reference to a deleted row was cleared, and those whose
  /// derived attributes were computed. A merge of the notification brings them too.
  public static let NSManagedObjectContextDidSave = NSNotification.Name(
    "NSManagingContextDidSaveChangesNotification"
  )
  /// Posted after a context was saved, with identifiers in place of objects.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let NSManagedObjectContextDidSaveObjectIDs = NSNotification.Name(
    "NSManagedObjectContextDidSaveObjectIDsNotification"
  )
  /// Posted after a context merged changes of another context or process, with identifiers.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let NSManagedObjectContextDidMergeChangesObjectIDs = NSNotification.Name(
    "NSManagedObjectContextDidMergeChangesObjectIDsNotification"
  )
}

extension NSManagedObjectContext {
  /// Posted when pending changes of a context's objects are processed.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let didChangeObjectsNotification =
    Notification.Name.NSManagedObjectContextObjectsDidChange
  /// Posted before a context is saved, also where it has no changes.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let willSaveObjectsNotification = Notification.Name.NSManagedObjectContextWillSave
  /// Posted after a context was saved, also where there was nothing to save.
  ///
  /// The object is the context, and the thread is the one that works on its queue. The sets of inserted and of
  /// updated objects are always in the user info.
  public static let didSaveObjectsNotification = Notification.Name.NSManagedObjectContextDidSave
  /// Posted after a context was saved, with identifiers in place of objects.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let didSaveObjectIDsNotification =
    Notification.Name.NSManagedObjectContextDidSaveObjectIDs
  /// Posted after a context merged changes of another context or process, with identifiers.
  ///
  /// The object is the context, and the thread is the one that works on its queue.
  public static let didMergeChangesObjectIDsNotification =
    Notification.Name.NSManagedObjectContextDidMergeChangesObjectIDs

  /// The keys of a context's notifications.
  public enum NotificationKey: RawRepresentable, Sendable, Hashable, CaseIterable {
    /// The set of inserted objects.
    case insertedObjects
    /// The set of updated objects.
    case updatedObjects
    /// The set of deleted objects.
    case deletedObjects
    /// The set of refreshed objects.
    case refreshedObjects
    /// The set of objects that were made invalid.
    case invalidatedObjects
    /// All objects were made invalid.
    case invalidatedAllObjects
    /// The set of identifiers of inserted objects.
    case insertedObjectIDs
    /// The set of identifiers of updated objects.
    case updatedObjectIDs
    /// The set of identifiers of deleted objects.
    case deletedObjectIDs
    /// The set of identifiers of refreshed objects.
    case refreshedObjectIDs
    /// The set of identifiers of objects that were made invalid.
    case invalidatedObjectIDs
    /// The query generation that a save moved its context to.
    case queryGeneration

    /// The key with a name in `userInfo`; nil for any other name.
    public init?(rawValue: String) {
      guard let key = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
      self = key
    }

    /// The name in `userInfo`.
    public var rawValue: String {
      switch self {
      case .insertedObjects: "inserted"
      case .updatedObjects: "updated"
      case .deletedObjects: "deleted"
      case .refreshedObjects: "refreshed"
      case .invalidatedObjects: "invalidated"
      case .invalidatedAllObjects: "invalidatedAll"
      case .insertedObjectIDs: "inserted_objectIDs"
      case .updatedObjectIDs: "updated_objectIDs"
      case .deletedObjectIDs: "deleted_objectIDs"
      case .refreshedObjectIDs: "refreshed_objectIDs"
      case .invalidatedObjectIDs: "invalidated_objectIDs"
      case .queryGeneration: "newQueryGeneration"
      }
    }
  }
}
