/// Invariants of a context between two calls of the app; the tests check them after each step of a
/// random program.
extension NSManagedObjectContext {
  /// The broken invariants, a sentence each; to be called on the context's lane outside a save.
  package func brokenInvariants() -> [String] {
    var broken = brokenChanges()
    if isSaving { broken.append("a save is in progress") }
    if isProcessing { broken.append("a turn is being processed") }
    if untrackedDepth != 0 { broken.append("changes are not tracked, at depth \(untrackedDepth)") }
    broken += registry.brokenInvariants(of: self)
    broken += retainedObjects.compactMap { key, object in
      object.key == key ? nil : "an object is retained under another key than its own"
    }
    return broken
  }

  private func brokenChanges() -> [String] {
    var broken = inserted.brokenInvariants("inserted")
    broken += updated.brokenInvariants("updated")
    broken += deleted.brokenInvariants("deleted")
    for object in inserted.objects where !object.state.contains(.inserted) {
      broken.append("an object among the inserted ones is not marked as inserted")
    }
    for object in inserted.objects where object.state.contains(.deleted) {
      broken.append("an object among the inserted ones is marked as deleted")
    }
    for object in updated.objects where !object.state.contains(.updated) {
      broken.append("an object among the updated ones is not marked as updated")
    }
    for object in updated.objects where !object.state.isDisjoint(with: [.inserted, .deleted]) {
      broken.append("an object among the updated ones is marked as inserted or deleted")
    }
    for object in deleted.objects where !object.state.contains(.deleted) {
      broken.append("an object among the deleted ones is not marked as deleted")
    }
    for object in inserted.objects + updated.objects + deleted.objects
    where object.context !== self {
      broken.append("a changed object belongs to another context or to none")
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
