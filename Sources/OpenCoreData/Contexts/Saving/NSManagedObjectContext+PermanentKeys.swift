import Foundation

/// Permanent keys of objects that other contexts of a chain of parents know by temporary ones.
extension NSManagedObjectContext {
  func obtainIdentifiersFromParent(
    _ parent: NSManagedObjectContext,
    for objects: [NSManagedObject]
  ) throws {
    let coordinator = try requireCoordinator()
    try obtainKeys(for: objects.filter { $0.state.contains(.inserted) }, coordinator)
    // Objects already saved into the parent get their identifiers there.
    let keys = objects.filter { $0.key.isTemporary && $0.context === self }.map(\.key)
    guard !keys.isEmpty else { return }
    try parent.performForChild {
      try parent.obtainPermanentIDs(for: keys.compactMap { parent.ownObject($0) })
    }
  }

  /// The current key of an object.
  func lasting(_ key: ObjectKey) -> ObjectKey {
    key.isTemporary ? formerKeys[key.reference.key] ?? key : key
  }

  func recordPermanentKey(_ key: ObjectKey, of former: Int64) {
    formerKeys.note(key, of: former)
    permanentKeys.append((former, key))
  }

  /// Passes permanent keys to the children, which know the objects by their temporary ones.
  func sendKeysToChildren() {
    guard !permanentKeys.isEmpty else { return }
    let keys = permanentKeys
    permanentKeys = []
    for child in descendants {
      child.permanentKeyQueue.add(keys)
      if child.lane.isCurrent {
        child.takePermanentKeys()
      } else {
        // Queued before any later work of the child. If the child is running, it takes the keys
        // itself before it creates an object for one of them.
        child.lane.async { [weak child] in child?.takePermanentKeys() }
      }
    }
  }

  /// All contexts below this one, nearer ones first.
  private var descendants: [NSManagedObjectContext] {
    let children = children
    return children + children.flatMap(\.descendants)
  }

  func takePermanentKeys() {
    for (former, key) in permanentKeyQueue.takeAll() {
      let object = registeredObject(
        ObjectKey(store: 0, reference: RowReference(entityNumber: 0, key: former))
      )
      formerKeys.note(key, of: former)
      guard let object, object.key.isTemporary, registry.object(key) == nil else { continue }
      let temporary = object.key
      registry.remove(temporary)
      object.become(key, persistentStoreCoordinator?.binding(number: key.store))
      registry.insert(object)
      retainedObjects.move(object, from: temporary)
    }
  }
}
