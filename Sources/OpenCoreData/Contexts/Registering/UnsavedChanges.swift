/// What a context has changed and not saved.
///
/// A changed object is in one of three lists and has the mark of that list in its state; only this type
/// changes either, so that they agree. An object that was deleted before it was ever saved keeps the mark
/// of an insertion.
struct UnsavedChanges {
  private(set) var inserted = TrackedObjects()
  private(set) var updated = TrackedObjects()
  private(set) var deleted = TrackedObjects()
  /// Deleted objects whose delete rules have not been applied yet.
  var unpropagated: [NSManagedObject] = []
  /// The read failure that keeps delete rules from being applied; only while ``unpropagated`` has objects.
  var deletionFailure: ReadFailure?
  /// The deleted objects that the rule of another one has deleted; see
  /// ``NSManagedObjectContext/revokeDeletion(of:onto:)``.
  var deletedByCascade: Set<ObjectIdentifier> = []
  /// The objects that a revoked deletion had removed from fetched results or cleared a reference of.
  var revoked: [NSManagedObject] = []
  /// Inserted objects whose rows another context deleted and this save writes again.
  private(set) var reinserted: [NSManagedObject] = []
  /// The number of reinserted objects whose destinations were restored.
  private var restoredCount = 0
  /// The stores that the app chose for new objects.
  var assignments: [ObjectIdentifier: StoreBinding] = [:]
  /// Objects that the app wants compared with the store at the next save.
  var conflictChecks: [NSManagedObject] = []

  /// Whether there is anything that a save writes, or that the end of the turn may add.
  var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty && unpropagated.isEmpty
  }

  /// The number of changed objects.
  var count: Int { inserted.count + updated.count + deleted.count }

  /// The objects of all lists.
  var objects: [NSManagedObject] { inserted.objects + updated.objects + deleted.objects }

  // MARK: One object

  /// Adds a new object, with other marks that it gets at the same time.
  mutating func insert(_ object: NSManagedObject, marks: ObjectState = []) {
    // First, because it allocates the storage of the state.
    inserted.append(object)
    object.state.insert(marks.union(.inserted))
  }

  /// Adds an object that has a row; returns whether it was unchanged before.
  @inline(__always)
  mutating func update(_ object: NSManagedObject) -> Bool {
    guard object.state.isDisjoint(with: [.inserted, .updated, .deleted]) else { return false }
    object.state.insert(.updated)
    updated.append(object)
    return true
  }

  /// Moves an object to the deleted ones, with other marks that it gets at the same time.
  mutating func delete(_ object: NSManagedObject, marks: ObjectState = []) {
    defer { object.state.insert(marks.union(.deleted)) }
    guard !object.state.contains(.deleted) else { return }
    if object.state.contains(.inserted) { inserted.remove(object) } else { withdrawUpdate(object) }
    deleted.append(object)
  }

  /// Cancels a deletion.
  ///
  /// The object is in no list then: one that was never saved has to be inserted again.
  mutating func undelete(_ object: NSManagedObject) {
    deleted.remove(object)
    object.state.remove([.deleted, .propagated, .touchedDelete, .vanished])
    noteChosenDeletion(of: object)
    removeUnpropagated(object)
  }

  /// Called when the app deletes an object, or a policy keeps it: it counts no longer as deleted by a rule.
  mutating func noteChosenDeletion(of object: NSManagedObject) {
    if !deletedByCascade.isEmpty { deletedByCascade.remove(ObjectIdentifier(object)) }
  }

  /// Removes an object that leaves the context; the caller removes its marks.
  mutating func forget(_ object: NSManagedObject) {
    // It is in one list at most: the others compare the object at its index.
    inserted.remove(object)
    updated.remove(object)
    deleted.remove(object)
    if !assignments.isEmpty { assignments[ObjectIdentifier(object)] = nil }
    removeUnpropagated(object)
  }

  /// Discards an update.
  mutating func withdrawUpdate(_ object: NSManagedObject) {
    guard object.state.contains(.updated) else { return }
    updated.remove(object)
    object.state.remove(.updated)
  }

  /// Discards the update or deletion of an object whose row another context has deleted.
  mutating func acceptDeletion(of object: NSManagedObject) {
    if object.state.contains(.deleted) { deleted.remove(object) } else { withdrawUpdate(object) }
    object.state.insert(.deleted)
  }

  /// Writes the row of an updated object again, which another context has deleted.
  mutating func reinsert(_ object: NSManagedObject) {
    withdrawUpdate(object)
    insert(object)
    reinserted.append(object)
  }

  /// Forgets deletions of objects that were never saved: a save writes nothing for them.
  mutating func forgetUnsavedDeletions(of objects: [NSManagedObject]) {
    for object in objects { deleted.remove(object) }
  }

  /// Called when an inserted object gets another temporary key.
  mutating func noteKey(of object: NSManagedObject) { inserted.noteKey(of: object) }

  /// The inserted object with a temporary key.
  mutating func inserted(temporary key: ObjectKey) -> NSManagedObject? {
    inserted.object(temporary: key)
  }

  /// The reinserted objects whose destinations are to be restored yet.
  var unrestored: ArraySlice<NSManagedObject> { reinserted[restoredCount...] }

  /// Called once the destinations of all reinserted objects are restored.
  mutating func noteRestored() { restoredCount = reinserted.count }

  // MARK: Delete rules

  /// Takes the deleted objects whose rules are to be applied next.
  mutating func takeUnpropagated() -> [NSManagedObject] {
    defer {
      unpropagated = []
      deletionFailure = nil
    }
    return unpropagated
  }

  /// Keeps deleted objects whose rules could not be applied.
  mutating func keepUnpropagated(_ objects: [NSManagedObject], _ failure: ReadFailure?) {
    unpropagated = objects
    deletionFailure = objects.isEmpty ? nil : failure
  }

  private mutating func removeUnpropagated(_ object: NSManagedObject) {
    guard !unpropagated.isEmpty else { return }
    unpropagated.removeAll { $0 === object }
    if unpropagated.isEmpty { deletionFailure = nil }
  }

  // MARK: All objects

  /// Empties the lists after a save, and returns what they held.
  ///
  /// The marks stay until each object is cleaned;
  /// the objects that a revoked deletion concerns are to be announced yet.
  mutating func takeSaved() -> ChangedObjects {
    let taken = ChangedObjects(
      inserted: inserted.objects,
      updated: updated.objects,
      deleted: deleted.objects
    )
    empty()
    return taken
  }

  /// Empties the lists without a save, and returns what they held.
  ///
  /// The marks stay until each object is reverted
  /// or forgotten.
  mutating func discardAll() -> ChangedObjects {
    let taken = takeSaved()
    unpropagated = []
    deletionFailure = nil
    revoked = []
    return taken
  }

  private mutating func empty() {
    inserted.removeAll()
    updated.removeAll()
    deleted.removeAll()
    assignments = [:]
    conflictChecks = []
    reinserted = []
    restoredCount = 0
    deletedByCascade = []
  }

  /// Removes and returns the changes that a partly failed save does not write; see ``restore(_:)``.
  mutating func take(where waits: (NSManagedObject) -> Bool) -> UnsavedChanges {
    var taken = UnsavedChanges()
    func take(_ list: inout TrackedObjects, into other: inout TrackedObjects) {
      let objects = list.objects.filter(waits)
      for object in objects { list.remove(object) }
      for object in objects { other.append(object) }
    }
    take(&inserted, into: &taken.inserted)
    take(&updated, into: &taken.updated)
    take(&deleted, into: &taken.deleted)
    for object in taken.inserted.objects {
      taken.assignments[ObjectIdentifier(object)] = assignments[ObjectIdentifier(object)]
    }
    for object in taken.deleted.objects where deletedByCascade.contains(ObjectIdentifier(object)) {
      taken.deletedByCascade.insert(ObjectIdentifier(object))
    }
    taken.reinserted = reinserted.filter(waits)
    taken.restoredCount = taken.reinserted.count
    taken.conflictChecks = conflictChecks.filter(waits)
    return taken
  }

  /// Adds the changes that ``take(where:)`` has removed, except objects that handlers of the save's notifications have moved
  /// to another list, or have removed from the context, as their marks show.
  mutating func restore(_ taken: UnsavedChanges) {
    for object in taken.inserted.objects
    where object.state.contains(.inserted) && !object.state.contains(.deleted) {
      inserted.append(object)
    }
    for object in taken.updated.objects where object.state.contains(.updated) {
      updated.append(object)
    }
    for object in taken.deleted.objects where object.state.contains(.deleted) {
      deleted.append(object)
    }
    assignments.merge(taken.assignments) { chosenSince, _ in chosenSince }
    deletedByCascade.formUnion(taken.deletedByCascade)
    let again = taken.reinserted.filter { $0.state.contains(.inserted) }
    reinserted.insert(contentsOf: again, at: 0)
    restoredCount += again.count
    conflictChecks += taken.conflictChecks
  }
}
