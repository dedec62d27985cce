import Foundation

extension NSManagedObjectContext {
  // MARK: Changing

  /// Inserts an object; one that a child context inserted was already awakened there.
  func insert(_ object: NSManagedObject, awakes: Bool) {
    if object.context === self {
      if object.state.contains(.deleted) { keep(object) }
      return
    }
    precondition(
      object.context == nil,
      "The object is already registered in another context and cannot be inserted here."
    )
    requireLane()
    // An object whose deletion was saved, and that an undo step retains, still hides its nullified relationships.
    object.state.remove(.propagated)
    unsaved.insert(
      object,
      marks: isChecked ? [.needsWillSave, .guarded] : .needsWillSave
    )
    object.context = self
    touch(object, .touchedInsert)
    if awakes {
      turnState.awakening += 1
      object.awakeFromInsert()
      turnState.awakening -= 1
    }
    noteState(of: object)
    scheduleTurn()
  }

  /// Inserting an object that is to be deleted cancels the deletion; the effects of its delete
  /// rules remain.
  private func keep(_ object: NSManagedObject) {
    undelete(object)
    if object.state.contains(.inserted) {
      unsaved.insert(object)
    } else if !object.changed.isEmpty || !object.changedToManys.isEmpty {
      _ = unsaved.update(object)
    }
    noteState(of: object)
    scheduleTurn()
  }

  /// Implements `delete(_:)`.
  func markDeleted(_ object: NSManagedObject) {
    requireLane()
    precondition(
      object.context == nil || object.context === self,
      "An NSManagedObjectContext cannot delete objects in other contexts."
    )
    guard object.context === self, !object.state.contains(.deleted) else {
      // The app deletes an object that a delete rule has already deleted: the deletion is now the app's own.
      unsaved.noteChosenDeletion(of: object)
      return
    }
    object.prepareForDeletion()
    // A subclass may have removed the object from the context in between.
    guard object.context === self, !object.state.contains(.deleted) else { return }
    moveToDeleted(object)
    unsaved.noteChosenDeletion(of: object)
    unsaved.unpropagated.append(object)
    if !propagatesDeletesAtEndOfEvent, !turnState.isProcessing { propagateDeletions() }
    scheduleTurn()
  }

  /// Moves an object from the inserted or updated ones to the deleted ones.
  func moveToDeleted(_ object: NSManagedObject) {
    unsaved.delete(object, marks: .needsWillSave)
    touch(object, .touchedDelete)
    noteState(of: object)
  }

  /// Implements `assign(_:to:)`.
  func chooseStore(_ store: NSPersistentStore, for object: Any) {
    requireLane()
    guard let object = object as? NSManagedObject else { return }
    precondition(
      object.state.contains(.inserted),
      "Can't reassign an object to a different store once it has been saved."
    )
    guard let binding = persistentStoreCoordinator?.binding(of: store) else {
      preconditionFailure("Can't assign an object to a store that the coordinator does not hold.")
    }
    precondition(
      binding.holds(object.template.layout.entity),
      "Can't assign an object to a store that does not contain the object's entity."
    )
    unsaved.assignments[ObjectIdentifier(object)] = binding
  }

  /// Implements `detectConflicts(for:)`.
  func checkConflicts(of object: NSManagedObject) {
    requireLane()
    guard object.context === self else { return }
    object.fireIfFault()
    unsaved.conflictChecks.append(object)
  }

  /// Called by objects when a property changed.
  func trackChange(of object: NSManagedObject) {
    guard turnState.untrackedDepth == 0 else { return }
    if unsaved.update(object) { noteState(of: object) }
    object.state.insert(.needsWillSave)
    touch(object, [])
    scheduleTurn()
  }

  func touch(_ object: NSManagedObject, _ reason: ObjectState) {
    object.state.formUnion(reason)
    guard !object.state.contains(.touched) else { return }
    object.state.insert(.touched)
    turnState.touch(object)
  }

  /// Runs a body whose changes are not recorded as changes of the app.
  func untracked<Result>(_ body: () throws -> Result) rethrows -> Result {
    turnState.untrackedDepth += 1
    defer { turnState.untrackedDepth -= 1 }
    return try body()
  }

  // MARK: Turns

  /// Whether the end of the turn has something to do.
  var hasUnprocessedChanges: Bool {
    !turnState.touched.isEmpty || !unsaved.unpropagated.isEmpty
  }

  /// Implements `processPendingChanges()`.
  func processTurn() {
    requireLane()
    guard !turnState.isProcessing, hasUnprocessedChanges else { return }
    propagateInTurn()
    postChanges()
  }

  /// Processes the changes that a fetch has to consider.
  ///
  /// A fetch in an `awakeFromInsert()` posts no notification: the handlers would read an object
  /// whose initializer has not set its values yet.
  func processChangesForFetch() {
    guard turnState.awakening > 0 else { return processPendingChanges() }
    requireLane()
    guard !turnState.isProcessing else { return }
    propagateInTurn()
  }

  /// Applies delete rules as part of the turn's processing, which does not begin within itself.
  private func propagateInTurn() {
    turnState.isProcessing = true
    propagateDeletions()
    turnState.isProcessing = false
  }

  private func postChanges() {
    announcedTurns.end(turnState.touched)
    var objects = turnState.takeTouched()
    // Drops objects that have left the context since, as by a look-up that found no row.
    objects.removeAll { !$0.state.contains(.touched) }
    undoRecorder?.record(objects)
    var changes = ChangedObjects()
    changes.inserted.reserveCapacity(min(objects.count, unsaved.inserted.count))
    for object in objects {
      let state = object.state
      // An object that left the context and came back is in the list twice.
      guard state.contains(.touched) else { continue }
      object.state.remove([.touched, .touchedInsert, .touchedDelete, .touchedRefresh])
      if state.contains(.touchedDelete) {
        // An object that was inserted in this turn is included: observers count on either set to see each object.
        changes.deleted.append(object)
      } else if state.contains(.touchedInsert) {
        changes.inserted.append(object)
      } else if state.contains(.touchedRefresh) {
        changes.refreshed.append(object)
      } else {
        changes.updated.append(object)
      }
    }
    let neverSaved = takeUnsavedDeletions(among: objects)
    guard !changes.isEmpty else { return }
    announce(changes, of: objects)
    // Only now, so that the notification's handlers see them as deleted objects of this context. A
    // handler may have inserted one of them again.
    for object in neverSaved where object.context === self && object.state.contains(.deleted) {
      if object.state.contains(.touched) { turnState.forget(object) }
      forgetDeleted(object)
    }
  }

  /// Posts the changes of a turn to handlers, which read them from the objects and may change these; only then
  /// the turn of the objects ends.
  private func announce(_ changes: ChangedObjects, of objects: [NSManagedObject]) {
    let start = announcedTurns.begin(objects)
    NotificationCenter.default.post(
      name: .NSManagedObjectContextObjectsDidChange,
      object: self,
      userInfo: changes.userInfo(&sets)
    )
    announcedTurns.end(from: start)
  }

  /// Takes objects from the pending changes that were deleted before they were ever saved.
  private func takeUnsavedDeletions(among touched: [NSManagedObject]) -> [NSManagedObject] {
    guard !unsaved.deleted.isEmpty else { return [] }
    let neverSaved = touched.filter { $0.state.isSuperset(of: [.deleted, .inserted]) }
    unsaved.forgetUnsavedDeletions(of: neverSaved)
    return neverSaved
  }

  /// Detaches an object that was deleted in the store from the context.
  func forgetDeleted(_ object: NSManagedObject) {
    let isPropagated = object.state.contains(.propagated)
    forget(object)
    guard undoRecorder?.canRevive(object) == true else { return object.cutRelationships() }
    // Undoing the deletion restores the relationships; until then the undo step retains them, and apps read
    // none that was nullified.
    if isPropagated { object.state.insert(.propagated) }
  }

  /// Detaches an object from the context.
  func forget(_ object: NSManagedObject) {
    if !incrementalRows.isEmpty { noteUnregistered(object) }
    registry.remove(object.key)
    retainedObjects.remove(object)
    unsaved.forget(object)
    undoRecorder?.forgetImage(of: object)
    object.forgetFormerValues()
    object.context = nil
    object.state.remove([
      .inserted, .updated, .deleted, .touched, .touchedInsert, .touchedDelete, .touchedRefresh,
      .propagated, .needsWillSave,
    ])
    noteState(of: object)
  }
}

extension NSManagedObject {
  /// Releases the objects that this one refers to: objects that refer to each other would never be
  /// freed once their context no longer knows them.
  final func cutRelationships() {
    toOneObjects = []
    dropToManys()
    forgetFormerValues()
  }
}
