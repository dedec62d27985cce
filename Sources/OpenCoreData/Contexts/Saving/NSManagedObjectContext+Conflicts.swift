import Foundation

extension NSManagedObjectContext {
  /// The most attempts at a save whose rows change again while a policy resolves their conflicts.
  static let conflictLimit = 20

  var policy: NSMergePolicy { mergePolicy as? NSMergePolicy ?? .error }

  /// Asks the merge policy to resolve a conflict; if it returns, the save is retried.
  func resolve(_ error: RowConflictError, in binding: StoreBinding, attempts: Int) throws {
    guard attempts <= Self.conflictLimit else {
      throw CoreDataError.make(
        NSPersistentStoreSaveConflictsError,
        "The merge policy did not resolve the conflicts after \(attempts) attempts."
      )
    }
    var objects: [RowReference: NSManagedObject] = [:]
    for object in unsaved.updated.objects + unsaved.deleted.objects
      + unsaved.conflictChecks
    where object.binding === binding {
      objects[object.key.reference] = object
    }
    let conflicts = error.conflicts.compactMap { conflict in
      objects[conflict.reference].map { mergeConflict(of: $0, conflict, binding) }
    }
    guard !conflicts.isEmpty else {
      throw CoreDataError.make(
        NSPersistentStoreSaveConflictsError,
        "The store reported conflicts with objects that were not saved."
      )
    }
    rows(of: binding)?.forget(error.conflicts.map(\.reference))
    try policy.resolve(mergeConflicts: conflicts)
    for conflict in conflicts { settle(conflict) }
    let gone = conflicts.map(\.sourceObject).filter { $0.state.contains(.vanished) }
    if !gone.isEmpty { try nullifyAndValidate(gone) }
    try restoreReinserted()
    try propagateResolvedDeletions()
  }

  /// Applies the delete rules of deletions that the policy confirmed, and validates the result: a rule
  /// may deny a deletion because of a member that another context has added.
  private func propagateResolvedDeletions() throws {
    guard !unsaved.unpropagated.isEmpty else { return }
    let confirmed = unsaved.unpropagated
    let former = Set(unsaved.deleted.objects.map { ObjectIdentifier($0) })
    propagateDeletions()
    if let failure = unsaved.deletionFailure { throw failure.error }
    let cascaded = unsaved.deleted.objects.filter { !former.contains(ObjectIdentifier($0)) }
    for object in confirmed + cascaded
    where object.isDeleted && !object.state.contains(.vanished) {
      try object.validateForDelete()
    }
    for object in unsaved.updated.objects where object.hasMissingDestination {
      try object.validateForUpdate()
    }
  }

  /// Clears the references of this save's objects to objects that were deleted in the store, and
  /// validates the result.
  private func nullifyAndValidate(_ gone: [NSManagedObject]) throws {
    nullifyReferences(to: gone)
    for object in unsaved.inserted.objects where object.hasMissingDestination {
      try object.validateForInsert()
    }
    for object in unsaved.updated.objects where object.hasMissingDestination {
      try object.validateForUpdate()
    }
  }

  /// If the coordinator's cache has the newer row, the context is out of date; otherwise another
  /// process has written to the store.
  private func mergeConflict(
    of object: NSManagedObject,
    _ conflict: RowConflictError.Conflict,
    _ binding: StoreBinding
  ) -> NSMergeConflict {
    let cached = rows(of: binding)?.cachedRow(conflict.reference)
    let persisted = conflict.persisted
    // A commit of this coordinator updates the cache and removes deleted rows from it.
    let isKnown = cached?.version == persisted?.version
    let made = NSMergeConflict(
      source: object,
      newVersion: Int(persisted?.version ?? 0),
      oldVersion: Int(conflict.expectedVersion),
      cachedSnapshot: isKnown
        ? persisted.map(object.namedValues) : (cached ?? object.snapshot).map(object.namedValues),
      persistedSnapshot: isKnown ? nil : persisted.map(object.namedValues)
    )
    made.persistedRow = persisted
    return made
  }

  /// A custom policy may have kept the object's old snapshot, with the values that it wants to
  /// save.
  private func settle(_ conflict: NSMergeConflict) {
    let object = conflict.sourceObject
    guard object.context === self, let row = conflict.persistedRow,
      let snapshot = object.snapshot, snapshot.version == conflict.oldVersionNumber
    else { return }
    object.rebase(onto: row)
  }

  /// Asks the merge policy to resolve a violated uniqueness constraint.
  ///
  /// A resolution may cause the next conflict: an object that gets its stored value back has one
  /// that another object of the save was given, and so on through a list whose positions all moved.
  /// So there may be as many attempts as there are objects.
  func resolve(
    _ error: RowConstraintError,
    in binding: StoreBinding,
    attempts: Int,
    limit: Int
  ) throws {
    guard attempts <= limit else { throw error.nsError }
    var objects: [RowReference: NSManagedObject] = [:]
    for object in unsaved.inserted.objects + unsaved.updated.objects
    where object.binding === binding {
      objects[object.key.reference] = object
    }
    let conflicts = ConstraintGroup.groups(of: error.conflicts, objects).map { group in
      // A stored object, unless this save changes it as well.
      let stored = group.stored.flatMap { self.object($0, from: group.objects[0]) }
      stored?.fireIfFault()
      return NSConstraintConflict(
        constraint: group.constraint,
        database: stored,
        databaseSnapshot: stored.flatMap { stored in stored.snapshot.map(stored.namedValues) },
        conflicting: group.objects,
        conflictingSnapshots: group.objects.map { $0.namedValues() }
      )
    }
    guard !conflicts.isEmpty else { throw error.nsError }
    var given = conflicts
    while !given.isEmpty {
      let changed = Set(unsaved.updated.objects)
      try policy.resolve(mergeConflicts: given)
      let kept = changed.filter { $0.context === self && !$0.isPending }
      given = kept.isEmpty ? [] : followingConflicts(of: kept, binding)
    }
    isSaving = false
    processPendingChanges()
    isSaving = true
  }

  /// The conflicts of pending objects with those that got their stored values back from a policy:
  /// one pass instead of one save attempt for each.
  private func followingConflicts(
    of kept: Set<NSManagedObject>,
    _ binding: StoreBinding
  ) -> [NSConstraintConflict] {
    var conflicts: [NSConstraintConflict] = []
    var seen: Set<ObjectIdentifier> = []
    let entities = kept.flatMap {
      [$0.template.layout.entity] + $0.template.layout.entity.ancestors
    }
    var known: Set<ObjectIdentifier> = []
    for entity in entities where known.insert(ObjectIdentifier(entity)).inserted {
      for constraint in AttributeIndexes.constraints(of: entity) {
        var holders: [[RowValue]: NSManagedObject] = [:]
        for object in kept where object.template.layout.isMemberOrSub(of: entity) {
          if let values = object.uniqueValues(constraint) { holders[values] = object }
        }
        for object in unsaved.updated.objects + unsaved.inserted.objects
        where object.binding === binding && object.template.layout.isMemberOrSub(of: entity) {
          guard let values = object.uniqueValues(constraint), let holder = holders[values],
            seen.insert(ObjectIdentifier(object)).inserted
          else { continue }
          conflicts.append(
            NSConstraintConflict(
              constraint: constraint,
              database: holder,
              databaseSnapshot: holder.snapshot.map(holder.namedValues),
              conflicting: [object],
              conflictingSnapshots: [object.namedValues()]
            )
          )
        }
      }
    }
    return conflicts
  }

  /// The row of a conflict that the app has created itself.
  func newestRow(of conflict: NSMergeConflict) throws -> RowAnswer {
    guard conflict.newVersionNumber > 0 else { return .absent }
    let object = conflict.sourceObject
    if let binding = object.binding { rows(of: binding)?.forget([object.key.reference]) }
    return try row(for: object)
  }

  // MARK: Actions of policies

  /// Cancels an object's pending deletion.
  func undelete(_ object: NSManagedObject) {
    guard object.state.contains(.deleted) else { return }
    unsaved.undelete(object)
    noteState(of: object)
  }

  /// Discards an object's pending changes.
  func discardChanges(of object: NSManagedObject) {
    retractingInverses(of: object) {
      if object.state.contains(.updated) {
        noteLeftOut(object)
        unsaved.withdrawUpdate(object)
      }
      object.turnIntoFault()
      noteState(of: object)
    }
  }

  /// Deletes the object here, because it was deleted in the store.
  func acceptDeletion(of object: NSManagedObject) {
    unsaved.delete(object, marks: [.propagated, .vanished])
    touch(object, .touchedDelete)
    noteState(of: object)
  }

  /// Moves the members of one object's relationships to another, where both entities have the
  /// relationship.
  ///
  /// They are removed from the first object, which is about to be deleted, so its delete rules do
  /// not apply to them.
  func moveRelationships(from source: NSManagedObject, to target: NSManagedObject) {
    for (index, link) in source.template.toManys.enumerated()
    where source.toManyStorage(ifTouched: index) != nil {
      guard case .toMany(let place)? = target.template.layout.slot(named: link.slot.name) else {
        continue
      }
      for member in source.loadedToMany(at: index).members.items {
        source.removeFromMany(member, at: index)
        target.addToMany(member, at: place)
      }
    }
    for (index, link) in source.template.toOnes.enumerated() where link.slot.rowIndex != nil {
      guard case .toOne(let place)? = target.template.layout.slot(named: link.slot.name),
        let destination = source.toOne(at: index)
      else { continue }
      source.setToOne(nil, at: index)
      target.setToOne(destination, at: place)
    }
  }
}

extension NSManagedObject {
  /// The values of a constraint; nil if one is missing, because NULL is never a duplicate.
  fileprivate final func uniqueValues(_ constraint: [String]) -> [RowValue]? {
    fireIfFault()
    var values: [RowValue] = []
    for name in constraint {
      let index: Int
      switch template.layout.slot(named: name) {
      case .attribute(let slot): index = slot
      case .toOne(let slot):
        guard let rowIndex = template.toOnes[slot].slot.rowIndex else { return nil }
        index = rowIndex
      default: return nil
      }
      let value = value(at: index)
      if value.isNull { return nil }
      values.append(value)
    }
    return values
  }

  /// Whether a required to-one was changed and is now nil.
  fileprivate final var hasMissingDestination: Bool {
    !state.contains(.fault)
      && template.toOnes.contains { link in
        guard let rowIndex = link.slot.rowIndex, !link.slot.description.isOptional else {
          return false
        }
        return changed.contains(rowIndex) && value(at: rowIndex).isNull
      }
  }

  /// Adopts a newer row and keeps the changes made here.
  final func rebase(onto row: Row, storeWins: Bool = false) {
    guard !state.contains(.fault) else {
      attach(row, generation: context?.generation ?? 0)
      return
    }
    forgetEqualChanges()
    if storeWins, let old = snapshot {
      for slot in changed.slots
      where !isTransient(rowIndex: slot) && row[slot] != old[slot] {
        changed.remove(slot)
      }
    }
    take(row)
  }

  /// Adopts a newer row's version and keeps all values of this object.
  final func rebaseWhole(onto row: Row) {
    fireIfFault()
    for slot in 0..<template.layout.rowWidth
    where !isTransient(rowIndex: slot) && value(at: slot) != row[slot] {
      changed.insert(slot)
    }
    take(row)
  }
}

/// The objects of one save that have the same values for a uniqueness constraint.
private struct ConstraintGroup {
  let constraint: [String]
  /// The row outside this save that already has the values.
  let stored: RowReference?
  var objects: [NSManagedObject]

  private struct Key: Hashable {
    let constraint: [String]
    let existing: RowReference?
    /// If no row is known, each object is a conflict of its own.
    let single: RowReference?
  }

  static func groups(
    of conflicts: [RowConstraintError.Conflict],
    _ objects: [RowReference: NSManagedObject]
  ) -> [ConstraintGroup] {
    var groups: [ConstraintGroup] = []
    var places: [Key: Int] = [:]
    for conflict in conflicts {
      guard let object = objects[conflict.reference] else { continue }
      let key = Key(
        constraint: conflict.constraint,
        existing: conflict.existing,
        single: conflict.existing == nil ? conflict.reference : nil
      )
      if let place = places[key] {
        groups[place].objects.append(object)
        continue
      }
      places[key] = groups.count
      let other = conflict.existing.flatMap { objects[$0] }
      groups.append(
        ConstraintGroup(
          constraint: conflict.constraint,
          stored: other == nil ? conflict.existing : nil,
          objects: [other, object].compactMap { $0 }
        )
      )
    }
    return groups
  }
}
