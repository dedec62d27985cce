import Foundation

/// The objects that a notification carries.
struct ChangedObjects {
  var inserted: [NSManagedObject] = []
  var updated: [NSManagedObject] = []
  var deleted: [NSManagedObject] = []
  var refreshed: [NSManagedObject] = []

  var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty && refreshed.isEmpty
  }

  var userInfo: [AnyHashable: Any] {
    var sets: NotificationSets?
    return userInfo(&sets)
  }

  /// The user info of a notification; existing sets that contain the same objects are reused.
  func userInfo(_ sets: inout NotificationSets?) -> [AnyHashable: Any] {
    var result: [AnyHashable: Any] = [:]
    func add(_ objects: [NSManagedObject], _ key: String) {
      if !objects.isEmpty { result[key] = sets?.set(of: objects) ?? Set(objects) }
    }
    add(inserted, NSInsertedObjectsKey)
    add(updated, NSUpdatedObjectsKey)
    add(deleted, NSDeletedObjectsKey)
    add(refreshed, NSRefreshedObjectsKey)
    return result
  }

  /// The user info of a save, in which the inserted and the updated objects are also where there are none.
  func saveUserInfo(_ sets: inout NotificationSets?) -> [AnyHashable: Any] {
    var result = userInfo(&sets)
    for key in [NSInsertedObjectsKey, NSUpdatedObjectsKey] where result[key] == nil {
      result[key] = Set<NSManagedObject>()
    }
    return result
  }

  /// The user info of a save's notification, with object IDs.
  var saveIdentifiersUserInfo: [AnyHashable: Any] {
    var result = identifiersUserInfo
    for key in [NSInsertedObjectIDsKey, NSUpdatedObjectIDsKey] where result[key] == nil {
      result[key] = Set<NSManagedObjectID>()
    }
    return result
  }

  var identifiersUserInfo: [AnyHashable: Any] {
    var result: [AnyHashable: Any] = [:]
    func add(_ objects: [NSManagedObject], _ key: String) {
      guard !objects.isEmpty else { return }
      var identifiers = Set<NSManagedObjectID>(minimumCapacity: objects.count)
      for object in objects { identifiers.insert(object.objectID) }
      result[key] = identifiers
    }
    add(inserted, NSInsertedObjectIDsKey)
    add(updated, NSUpdatedObjectIDsKey)
    add(deleted, NSDeletedObjectIDsKey)
    add(refreshed, NSRefreshedObjectIDsKey)
    return result
  }

  /// An object that another context updated is both updated and refreshed here, so it is in both
  /// sets.
  var mergedIdentifiersUserInfo: [AnyHashable: Any] {
    var result = identifiersUserInfo
    if updated.isEmpty { result[NSUpdatedObjectIDsKey] = result[NSRefreshedObjectIDsKey] }
    return result
  }
}

/// The sets of objects that the notifications of one save carry.
///
/// The turn that a save ends has usually changed the same objects that the save writes, so both
/// notifications share the sets.
struct NotificationSets {
  private var kept: [(objects: [NSManagedObject], set: Set<NSManagedObject>)] = []

  mutating func set(of objects: [NSManagedObject]) -> Set<NSManagedObject> {
    let known = kept.first { kept in
      kept.objects.count == objects.count && kept.objects.elementsEqual(objects, by: ===)
    }
    if let known { return known.set }
    let made = Set(objects)
    kept.append((objects, made))
    return made
  }
}
