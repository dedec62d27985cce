import Foundation
import Synchronization

extension NSManagedObjectContext {
  /// Implements `refresh(_:mergeChanges:)`.
  func refreshObject(_ object: NSManagedObject, mergeChanges flag: Bool) {
    requireLane()
    guard object.context === self, !object.state.contains(.inserted),
      !object.state.contains(.deleted)
    else { return }
    if flag, object.isPending {
      mergeNewerRow(into: object)
    } else if !object.isPending || !flag {
      if object.state.contains(.updated) {
        noteLeftOut(object)
        unsaved.withdrawUpdate(object)
      }
      object.turnIntoFault()
      noteState(of: object)
    }
    touch(object, .touchedRefresh)
    scheduleTurn()
  }

  /// Called before an object forgets that members were added to it, which remain changed themselves.
  func noteLeftOut(_ owner: NSManagedObject) {
    let toOnes = owner.template.toOnes.contains { link in
      link.hasInverse && link.slot.rowIndex.map(owner.changed.contains) ?? false
    }
    if toOnes || !owner.changedToManys.isEmpty { leavesOutOwners.store(true, ordering: .releasing) }
  }

  private func mergeNewerRow(into object: NSManagedObject) {
    object.forEachToMany { $0.unload() }
    guard !object.state.contains(.fault) else { return }
    do {
      if case .row(let row) = try row(for: object) {
        object.forgetEqualChanges()
        object.announcingChanges { object.take(row) }
        untracked { object.awake(fromSnapshotEvents: .refresh) }
      }
    } catch {
      couldNotRead("refresh '\(object.objectID)'", error)
    }
  }

  /// Implements `refreshAllObjects()`.
  func refreshRegisteredObjects() {
    requireLane()
    for object in registry.objects {
      refresh(object, mergeChanges: true)
    }
    processPendingChanges()
  }

  /// Implements `rollback()`.
  func dropUnsavedChanges() {
    requireLane()
    guard let undoRecorder else { return dropChanges() }
    undoRecorder.suspended { dropChanges() }
    undoRecorder.forgetAll()
  }

  private func dropChanges() {
    processPendingChanges()
    let former = unsaved
    defer { withExtendedLifetime(former) {} }
    let changes = unsaved.discardAll()
    let gone = changes.deleted
    readFailure = nil
    for object in changes.inserted {
      forget(object)
      object.cutRelationships()
      touch(object, .touchedDelete)
    }
    for object in gone where object.state.contains(.inserted) { forget(object) }
    // There is nothing to roll back to: their rows are gone.
    for object in gone where object.context === self && object.state.contains(.vanished) {
      forgetDeleted(object)
      touch(object, .touchedDelete)
    }
    let kept = changes.updated + gone.filter { $0.context === self }
    let unreadable = kept.filter { $0.binding?.isRemoved ?? false }
    for object in kept where unreadable.isEmpty || object.binding?.isRemoved != true {
      object.state.remove([.updated, .deleted, .propagated, .needsWillSave])
      revert(object)
      noteState(of: object)
      touch(object, .touchedRefresh)
    }
    processPendingChanges()
    invalidate(unreadable)
  }

  /// Restores the values that were last loaded or saved.
  private func revert(_ object: NSManagedObject) {
    object.announcingChanges { dropChanges(of: object) }
  }

  private func dropChanges(of object: NSManagedObject) {
    unloadCommittedOwners(of: object)
    object.changed.removeAll()
    object.changedToManys.removeAll()
    object.forgetFormerValues()
    object.toOneObjects = []
    object.forEachToMany { $0.revert() }
    guard !object.state.contains(.fault), object.snapshot != nil else { return }
    object.objectValues = nil
    // From here on, the values are the snapshot's.
    object.ownValues = []
    untracked { object.awake(fromSnapshotEvents: .rollback) }
  }

  /// Unloads the to-many relationships that were loaded without an object while one of its to-ones
  /// had a pending value.
  private func unloadCommittedOwners(of object: NSManagedObject) {
    guard let snapshot = object.snapshot else { return }
    for link in object.template.toOnes where link.hasInverse && link.slot.inverseIsToMany {
      guard let rowIndex = link.slot.rowIndex, object.changed.contains(rowIndex),
        case .reference(let reference) = snapshot[rowIndex],
        let owner = registeredObject(reference, from: object)
      else { continue }
      owner.toManyStorage(ifTouched: link.inverseIndex)?.unload()
    }
  }

  /// The registered objects and those with changes, each once.
  private var knownObjects: [NSManagedObject] {
    let changed = unsaved.objects
    guard !changed.isEmpty else { return registry.objects }
    let known = Set(changed.map { ObjectIdentifier($0) })
    return registry.objects.filter { !known.contains(ObjectIdentifier($0)) } + changed
  }

  /// Implements `reset()`.
  func forgetAllObjects() {
    requireLane()
    releaseGeneration()
    let objects = knownObjects
    let former = unsaved
    defer { withExtendedLifetime(former) {} }
    _ = unsaved.discardAll()
    _ = turnState.takeTouched()
    readFailure = nil
    formerKeys.removeAll()
    incrementalRows = [:]
    fetchBatches = []
    readTimes = [:]
    sharedMembers.removeAll()
    registry.removeAll()
    retainedObjects.removeAll()
    undoRecorder?.forgetAll()
    for object in objects where object.context === self {
      object.context = nil
      object.becomeInvalid()
    }
    for object in objects { object.noteState() }
    noteHasChanges()
    NotificationCenter.default.post(
      name: .NSManagedObjectContextObjectsDidChange,
      object: self,
      userInfo: [NSInvalidatedAllObjectsKey: objects.map(\.objectID)]
    )
  }
}
