import Effects
import Foundation

extension NSManagedObjectContext {
  /// Implements `save()`.
  func saveChanges() throws {
    requireLane()
    if !lane.isCurrent, concurrencyType != .mainQueueConcurrencyType {
      // Outside `perform`, the calling thread enters the lane, so that merges do not interfere.
      return try performAndWait { try saveOnLane() }
    }
    try saveOnLane()
  }

  private func saveOnLane() throws {
    guard !isSaving else {
      let sentence = "attempt to recursively call -save: on the context aborted"
      throw CoreDataError.make(Self.recursiveSaveCode, sentence, ["message": sentence])
    }
    sets = NotificationSets()
    defer { sets = nil }
    processPendingChanges()
    try raiseReadFailure()
    checkInvariants(unsaved.brokenInvariants(of: self))
    isSaving = true
    defer { isSaving = false }
    // SQLite could not restart the log after this save if the turn still read an earlier state.
    endReading()
    NotificationCenter.default.post(name: .NSManagedObjectContextWillSave, object: self)
    try announceSave()
    guard hasChanges || !unsaved.conflictChecks.isEmpty else { return announceEmptySave() }
    if let parent {
      try save(into: parent)
    } else {
      try validateChanges()
      try saveToStores()
    }
  }

  /// Posts the notifications of a save that has nothing to write, as Core Data does; no store and no other
  /// context takes part in it.
  private func announceEmptySave() {
    isSaving = false
    postSave(ChangedObjects())
  }

  /// Calls `willSave()` until no object changes, because it may change objects, also its own.
  private func announceSave() throws {
    for _ in 0..<Self.willSaveLimit {
      var isDirty = false
      for objects in [
        unsaved.inserted.objects, unsaved.updated.objects,
        unsaved.deleted.objects,
      ] {
        for object in objects where object.state.contains(.needsWillSave) {
          object.state.remove(.needsWillSave)
          isDirty = true
          object.willSave()
        }
      }
      guard isDirty else { return }
      processPendingChanges()
    }
    throw CoreDataError.make(
      NSCoreDataError,
      "Failed to process pending changes before save.  The context is still dirty after "
        + "\(Self.willSaveLimit) attempts.  Typically this recursive dirtying is caused by a bad "
        + "validation method, -willSave, or notification handler."
    )
  }

  /// Core Data's unnamed code for this error.
  private static let recursiveSaveCode = 132_001

  /// Core Data's own limit.
  private static let willSaveLimit = 1000

  func validateChanges() throws {
    var failures: [NSError] = []
    for object in unsaved.deleted.objects where !object.state.contains(.vanished) {
      ValidationError.collect(into: &failures) { try object.validateForDelete() }
    }
    for object in unsaved.inserted.objects {
      ValidationError.collect(into: &failures) { try object.validateForInsert() }
    }
    try readUnreadOwners()
    for object in unsaved.updated.objects where object.hasValuesToValidate(isChild: isChild) {
      ValidationError.collect(into: &failures) { try object.validateForUpdate() }
    }
    processPendingChanges()
    // Values that could not be read cannot be validated.
    try raiseReadFailure()
    try ValidationError.raise(failures)
  }

  /// Reads the rows of faults that are needed to validate changes of their inverses.
  private func readUnreadOwners() throws {
    let owners = unsaved.updated.objects.filter {
      $0.state.contains(.fault) && $0.isCheckedAsFault
    }
    if !owners.isEmpty { try attachRows(to: owners, isSaving: true) }
  }

  // MARK: Stores

  private func saveToStores() throws {
    let coordinator = try requireCoordinator()
    var stores = coordinator.persistentStores
    var attempts = 0
    let limit = Self.conflictLimit + unsaved.inserted.count + unsaved.updated.count
    while true {
      do {
        try restoreReinserted()
        try obtainKeys(for: unsaved.inserted.objects, coordinator)
        try attachRows(
          to: unsaved.updated.objects + unsaved.deleted.objects,
          isSaving: true
        )
        let plans = try savePlans(coordinator)
        try raiseReadFailure()
        return try commit(plans, coordinator)
      } catch {
        attempts += 1
        let failure = error as? StoreCommitFailure
        switch (failure?.cause, failure?.binding) {
        case (let conflict as RowConflictError, let binding?):
          try resolve(conflict, in: binding, attempts: attempts)
        case (let conflict as RowConstraintError, let binding?):
          try resolve(conflict, in: binding, attempts: attempts, limit: limit)
        default:
          // If the store was moved while the save waited for it, the save goes to its new location.
          let now = coordinator.persistentStores
          let isMoved = now.count == stores.count && !now.elementsEqual(stores, by: ===)
          stores = now
          guard isMoved else { throw CoreDataError.facade(failure?.cause ?? error) }
        }
      }
    }
  }

  /// Assigns permanent keys to objects, with one reservation for each entity.
  func obtainKeys(
    for objects: [NSManagedObject],
    _ coordinator: NSPersistentStoreCoordinator
  ) throws {
    recordsPermanentKeys = !children.isEmpty
    defer { sendKeysToChildren() }
    let fresh = objects.filter { $0.key.isTemporary }
    for (template, objects) in grouped(fresh) {
      var groups: [(binding: StoreBinding, objects: [NSManagedObject])] = []
      if unsaved.assignments.isEmpty, let first = objects.first {
        groups = [(try store(for: first, coordinator), objects)]
      }
      for object in groups.isEmpty ? objects : [] {
        let binding = try store(for: object, coordinator)
        if let place = groups.firstIndex(where: { $0.binding === binding }) {
          groups[place].objects.append(object)
        } else {
          groups.append((binding, [object]))
        }
      }
      for (binding, objects) in groups {
        if let references = try customReferences(for: objects, in: binding) {
          register(objects, references, binding)
          continue
        }
        guard let rows = binding.rows else { continue }
        let number = try binding.number(of: template)
        let keys = try rows.reserveKeys(for: template.layout.entity, count: objects.count)
        register(objects, keys.map { RowReference(entityNumber: number, key: $0) }, binding)
      }
    }
  }

  private func store(
    for object: NSManagedObject,
    _ coordinator: NSPersistentStoreCoordinator
  ) throws -> StoreBinding {
    if let assigned = unsaved.assignments[ObjectIdentifier(object)] { return assigned }
    if let binding = coordinator.binding(forInsertionOf: object.template.layout.entity) {
      return binding
    }
    let entity = object.template.layout.entity
    if let held = coordinator.bindings.first(where: { $0.holds(entity) })?.persistentStore {
      throw held.readOnlyError.nsError
    }
    throw CoreDataError.make(
      coordinator.bindings.isEmpty ? NSCoreDataError : NSPersistentStoreSaveError,
      coordinator.bindings.isEmpty
        ? "This NSPersistentStoreCoordinator has no persistent stores. It cannot perform a save "
          + "operation."
        : "No writable store of the coordinator holds the entity "
          + "\(object.template.layout.entityName)."
    )
  }

  private func register(
    _ objects: [NSManagedObject],
    _ references: [RowReference],
    _ binding: StoreBinding
  ) {
    for (object, reference) in zip(objects, references) {
      let former = object.key
      if parent != nil { registry.remove(former) }
      object.become(ObjectKey(store: binding.number, reference: reference), binding)
      retainedObjects.move(object, from: former)
      if recordsPermanentKeys { recordPermanentKey(object.key, of: former.reference.key) }
      if binding.isContextual { noteRegistered(object, binding) }
    }
    registry.insert(objects)
  }

  /// Implements `obtainPermanentIDs(for:)`.
  func assignPermanentIDs(for objects: [NSManagedObject]) throws {
    requireLane()
    do {
      if let parent {
        try obtainIdentifiersFromParent(parent, for: objects)
      } else {
        try obtainKeys(for: objects, try requireCoordinator())
      }
    } catch {
      throw CoreDataError.facade(error)
    }
  }

  func finishSave(
    _ commits: [(SavePlan, RowCommit)],
    _ coordinator: NSPersistentStoreCoordinator
  ) {
    for (plan, commit) in commits { plan.apply(commit) }
    let moved = advanceGeneration()
    var changes = clearSavedChanges()
    let generation = generation
    for object in changes.updated where object.state.contains(.prefetched) {
      object.rowGeneration = generation
    }
    noteRead(changes.inserted)
    noteRead(changes.updated)
    announceSaved(changes)
    isSaving = false
    let indirect = commits.map { indirectlyChangedRows($0, $1) }
    changes.refreshed = refreshRows(zip(commits, indirect).map { ($0.0.binding, $1) })
    let back = takeRevoked(besides: changes)
    changes.refreshed += back
    postSave(changes, generation: moved)
    // A child may have no objects of the rows that its own save had deleted.
    var unannounced = UnannouncedRows()
    unannounced.inserted = back
    notifyChildren(
      changes,
      unannounced,
      reportingOwners: !leavesOutOwners.load(ordering: .acquiring)
    )
    for ((plan, _), rows) in zip(commits, indirect) {
      coordinator.contextDidSave(self, plan.binding, plan.changes, and: rows)
    }
    for object in changes.deleted { forgetDeleted(object) }
  }

  /// Empties the lists of pending changes after a save.
  func clearSavedChanges() -> ChangedObjects {
    // Released after the access: the deinitializer of an object may ask the context.
    let former = unsaved
    defer { withExtendedLifetime(former) {} }
    let changes = unsaved.takeSaved()
    undoRecorder?.forgetImages()
    for object in changes.inserted { clean(object) }
    for object in changes.updated { clean(object) }
    for object in changes.deleted {
      clean(object)
      registry.remove(object.key)
    }
    for object in changes.inserted { object.noteState() }
    for object in changes.updated { object.noteState() }
    for object in changes.deleted { object.noteState() }
    noteHasChanges()
    return changes
  }

  func clean(_ object: NSManagedObject) {
    let isNew = object.state.contains(.inserted)
    // A deleted object keeps `propagated` until it leaves the context: apps read no nullified relationship.
    object.state.remove([.inserted, .updated, .deleted, .needsWillSave])
    object.settleChanges(isNew: isNew)
  }

  func postSave(_ changes: ChangedObjects, generation: NSQueryGenerationToken? = nil) {
    var userInfo = changes.saveUserInfo(&sets)
    if let generation { userInfo[NSManagedObjectContextQueryGenerationKey] = generation }
    NotificationCenter.default.post(
      name: .NSManagedObjectContextDidSave,
      object: self,
      userInfo: userInfo
    )
    NotificationCenter.default.post(
      name: .NSManagedObjectContextDidSaveObjectIDs,
      object: self,
      userInfo: changes.saveIdentifiersUserInfo
    )
  }
}
