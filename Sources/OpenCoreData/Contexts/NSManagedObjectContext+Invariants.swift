/// The invariants of a context between two calls of the app.
///
/// Debug builds check the changes before a save and after a merge; the tests check everything after each step
/// of a random program.
extension NSManagedObjectContext {
  /// The broken invariants, a sentence each; to be called on the context's lane outside a save.
  package func brokenInvariants() -> [String] {
    var broken = unsaved.brokenInvariants(of: self)
    if isSaving { broken.append("a save is in progress") }
    broken += turnState.brokenInvariants()
    broken += registry.brokenInvariants(of: self)
    broken += retainedObjects.brokenInvariants()
    return broken
  }
}

extension UnsavedChanges {
  /// The broken invariants, a sentence each, of a context's changes; they hold during a save and a merge too.
  func brokenInvariants(of context: NSManagedObjectContext) -> [String] {
    var broken = inserted.brokenInvariants("inserted")
    broken += updated.brokenInvariants("updated")
    broken += deleted.brokenInvariants("deleted")
    func require(_ objects: TrackedObjects, _ sentence: String, _ holds: (ObjectState) -> Bool) {
      if !objects.objects.allSatisfy({ holds($0.state) }) { broken.append(sentence) }
    }
    require(inserted, "an object among the inserted ones is not marked so, or is marked as deleted")
    {
      $0.contains(.inserted) && $0.isDisjoint(with: [.updated, .deleted])
    }
    require(
      updated,
      "an object among the updated ones is not marked so, or is marked otherwise too"
    ) {
      $0.contains(.updated) && $0.isDisjoint(with: [.inserted, .deleted])
    }
    require(deleted, "an object among the deleted ones is not marked so, or is marked as updated") {
      $0.contains(.deleted) && !$0.contains(.updated)
    }
    if objects.contains(where: { $0.context !== context }) {
      broken.append("a changed object belongs to another context or to none")
    }
    if deletionFailure != nil, unpropagated.isEmpty {
      broken.append("a failure of delete rules is kept, and no object waits for its rules")
    }
    return broken
  }
}

extension TrackedObjects {
  /// The broken invariants of the list, a sentence each.
  fileprivate func brokenInvariants(_ name: String) -> [String] {
    objects.enumerated().compactMap { index, object in
      object.trackingIndex == index
        ? nil : "an \(name) object at \(index) has the index \(object.trackingIndex)"
    }
  }
}

extension ObjectRegistry {
  /// The broken invariants, a sentence each, of the objects of a context.
  fileprivate func brokenInvariants(of context: NSManagedObjectContext) -> [String] {
    var broken = brokenTable()
    for object in objects {
      if object.context !== context {
        broken.append("a registered object belongs to another context or to none")
      } else if self.object(object.key) !== object {
        broken.append("an object is registered under another key than its own")
      }
    }
    return broken
  }
}
