import Foundation

extension NSManagedObjectContext {
  /// Brings an object back that was deleted, whether that was saved or not.
  func revive(_ object: NSManagedObject) {
    if object.context === self {
      if object.state.contains(.deleted) { insert(object) }
      touch(object, .touchedInsert)
      return
    }
    guard object.context == nil else { return }
    object.context = self
    if object.ownValues.isEmpty { object.ownValues = object.snapshot?.values ?? [] }
    if object.ownValues.isEmpty { object.ownValues = object.template.defaults }
    object.snapshot = nil
    object.state.remove([.vanished, .propagated, .prefetched, .fault])
    for slot in object.ownValues.indices { object.changed.insert(slot) }
    for (index, storage) in object.toManyStorages.enumerated() {
      guard let storage else { continue }
      storage.becomeNew()
      object.changedToManys.insert(index)
    }
    if !object.key.isTemporary { registry.insert(object) }
    retainedObjects.insert(object)
    unsaved.insert(
      object,
      marks: isChecked ? [.needsWillSave, .guarded] : .needsWillSave
    )
    touch(object, .touchedInsert)
    noteState(of: object)
    scheduleTurn()
  }

  /// Removes an object; references to it are restored by their own undo actions.
  ///
  /// If `isCascaded`, the object counts as deleted by a delete rule: a merge policy that revokes its owner's
  /// deletion restores it.
  func removeForUndo(_ object: NSManagedObject, isCascaded: Bool) {
    guard object.context === self, !object.state.contains(.deleted) else { return }
    moveToDeleted(object)
    // Its relationships are undone by their own actions.
    object.state.insert(.propagated)
    if isCascaded { unsaved.deletedByCascade.insert(ObjectIdentifier(object)) }
    scheduleTurn()
  }

  /// The objects that are gone: another context may have deleted them since.
  func lost(among objects: [NSManagedObject]) -> Set<ObjectIdentifier> {
    var gone: Set<ObjectIdentifier> = []
    var stored: [NSManagedObject] = []
    for object in objects {
      if object.context !== self || object.state.contains(.vanished) {
        gone.insert(ObjectIdentifier(object))
      } else if !object.state.contains(.inserted) {
        stored.append(object)
      }
    }
    guard !stored.isEmpty else { return gone }
    do {
      let areThere = try haveRowsNow(stored)
      for (object, isThere) in zip(stored, areThere) where !isThere {
        gone.insert(ObjectIdentifier(object))
      }
    } catch {
      // Objects that could not be read may exist.
      couldNotRead("look for the members of a relationship", error)
    }
    return gone
  }

  /// Whether each object has a row in the stores, or an object in the parent; values that are
  /// loaded here prove neither.
  private func haveRowsNow(_ objects: [NSManagedObject]) throws -> [Bool] {
    var absent: Set<ObjectIdentifier> = []
    let isSingle = { (object: NSManagedObject) in
      self.isChild || object.binding?.isContextual ?? true
    }
    for object in objects where isSingle(object) {
      if case .absent = try row(for: object) { absent.insert(ObjectIdentifier(object)) }
    }
    for (binding, objects) in groupedByBinding(objects.filter { !isSingle($0) }) {
      guard let rows = rows(of: binding) else { throw removedStoreError }
      forgetStale(objects, in: rows)
      let found = try rows.rows(objects.references, .cached)
      for (object, row) in zip(objects, found) where row == nil {
        absent.insert(ObjectIdentifier(object))
      }
    }
    return objects.map { !absent.contains(ObjectIdentifier($0)) }
  }
}
