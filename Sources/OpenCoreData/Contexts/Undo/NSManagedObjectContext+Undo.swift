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
    object.state.insert(
      isChecked ? [.inserted, .needsWillSave, .guarded] : [.inserted, .needsWillSave]
    )
    for slot in object.ownValues.indices { object.changed.insert(slot) }
    for (index, storage) in object.toManyStorages.enumerated() {
      guard let storage else { continue }
      storage.becomeNew()
      object.changedToManys.insert(index)
    }
    if !object.key.isTemporary { registry.insert(object) }
    if retainsRegisteredObjects { retainedObjects[object.key] = object }
    inserted.append(object)
    touch(object, .touchedInsert)
    noteState(of: object)
    scheduleTurn()
  }

  /// Removes an object; references to it are restored by their own undo actions.
  func removeForUndo(_ object: NSManagedObject) {
    guard object.context === self, !object.state.contains(.deleted) else { return }
    moveToDeleted(object)
    // Its relationships are undone by their own actions.
    object.state.insert(.propagated)
    scheduleTurn()
  }
}
