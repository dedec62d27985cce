import Foundation

extension NSManagedObjectContext {
  /// A row may change again while a policy decides; this often is bad luck, more is a bug.
  private static let conflictLimit = 20

  var policy: NSMergePolicy { mergePolicy as? NSMergePolicy ?? .error }

  /// Asks the merge policy; where it returns, the save is tried again.
  func resolve(_ error: RowConflictError, attempts: Int) throws {
    guard attempts <= Self.conflictLimit else {
      throw CoreDataError.make(
        NSPersistentStoreSaveConflictsError,
        "The merge policy did not resolve the conflicts after \(attempts) attempts."
      )
    }
    var objects: [RowReference: NSManagedObject] = [:]
    for object in updated.objects + deleted.objects { objects[object.key.reference] = object }
    let conflicts = error.conflicts.compactMap { conflict -> NSMergeConflict? in
      guard let object = objects[conflict.reference] else { return nil }
      let made = NSMergeConflict(
        source: object,
        newVersion: Int(conflict.persisted?.version ?? 0),
        oldVersion: Int(conflict.expectedVersion),
        cachedSnapshot: object.snapshot.map(object.namedValues),
        persistedSnapshot: conflict.persisted.map(object.namedValues)
      )
      made.persistedRow = conflict.persisted
      return made
    }
    guard !conflicts.isEmpty else {
      throw CoreDataError.make(
        NSPersistentStoreSaveConflictsError,
        "The store reported conflicts with objects that were not saved."
      )
    }
    for conflict in error.conflicts {
      objects[conflict.reference]?.binding?.rows?.forget([conflict.reference])
    }
    try policy.resolve(mergeConflicts: conflicts)
    propagateDeletions()
  }

  /// Asks the merge policy about values that must be unique.
  func resolve(_ error: RowConstraintError, attempts: Int) throws {
    guard attempts <= Self.conflictLimit else { throw error.nsError }
    var objects: [RowReference: NSManagedObject] = [:]
    for object in inserted.objects + updated.objects { objects[object.key.reference] = object }
    let conflicts = error.conflicts.compactMap { conflict -> NSConstraintConflict? in
      guard let object = objects[conflict.reference] else { return nil }
      var conflicting = [object]
      var stored: NSManagedObject?
      if let existing = conflict.existing {
        if let other = objects[existing], other !== object {
          conflicting.insert(other, at: 0)
        } else {
          stored = self.object(existing, from: object)
        }
      }
      return NSConstraintConflict(
        constraint: conflict.constraint,
        database: stored,
        databaseSnapshot: stored?.committedValues(forKeys: nil),
        conflicting: conflicting,
        conflictingSnapshots: conflicting.map {
          $0.dictionaryWithValues(forKeys: $0.template.layout.attributes.map(\.name))
        }
      )
    }
    guard !conflicts.isEmpty else { throw error.nsError }
    try policy.resolve(mergeConflicts: conflicts)
    isSaving = false
    processPendingChanges()
    isSaving = true
  }

  // MARK: What policies do

  /// Takes an object's deletion back.
  func undelete(_ object: NSManagedObject) {
    guard object.state.contains(.deleted) else { return }
    deleted.remove(object)
    object.state.remove([.deleted, .propagated, .touchedDelete, .vanished])
  }

  /// Drops an object's changes.
  func discardChanges(of object: NSManagedObject) {
    if object.state.contains(.updated) {
      updated.remove(object)
      object.state.remove(.updated)
    }
    object.turnIntoFault()
  }

  /// Writes an object's row anew, with its old key.
  func reinsert(_ object: NSManagedObject) {
    updated.remove(object)
    object.state.remove(.updated)
    object.state.insert(.inserted)
    if object.isFault, let snapshot = object.snapshot { object.take(snapshot) }
    object.snapshot = nil
    inserted.append(object)
  }

  /// The store deleted the object, and so it is here.
  func acceptDeletion(of object: NSManagedObject) {
    if object.state.contains(.updated) {
      updated.remove(object)
      object.state.remove(.updated)
    }
    object.state.insert([.deleted, .propagated, .vanished])
    deleted.append(object)
    touch(object, .touchedDelete)
  }

  /// Gives the destinations of one object to another, where they have one-to-many and the like.
  func moveRelationships(from source: NSManagedObject, to target: NSManagedObject) {
    guard source.template === target.template else { return }
    for (index, _) in source.template.toManys.enumerated()
    where source.toManyStorage(ifTouched: index) != nil {
      for member in source.loadedToMany(at: index).members.items {
        target.addToMany(member, at: index)
      }
    }
    for (index, _) in source.template.toOnes.enumerated() {
      if let destination = source.toOne(at: index) { target.setToOne(destination, at: index) }
    }
  }
}

extension NSManagedObject {
  /// Keeps what changed here on top of a newer row.
  final func rebase(onto row: Row, storeWins: Bool = false) {
    guard !state.contains(.fault) else {
      attach(row, generation: context?.generation ?? 0)
      return
    }
    if storeWins, let old = snapshot {
      for slot in changed.slots
      where !isTransient(rowIndex: slot) && row[slot] != old[slot] {
        changed.remove(slot)
      }
    }
    take(row)
  }

  /// Keeps everything that is here on top of a newer row.
  final func rebaseWhole(onto row: Row) {
    fireIfFault()
    for slot in 0..<template.layout.rowWidth
    where !isTransient(rowIndex: slot) && value(at: slot) != row[slot] {
      changed.insert(slot)
    }
    take(row)
  }
}
