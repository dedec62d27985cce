import Foundation

/// Revokes deletions for which a merge policy chooses the store's row.
///
/// The delete rules have been applied before the save: objects were deleted along, and inverses were
/// cleared. If only the deletion itself were revoked, the next attempt would commit those.
extension NSManagedObjectContext {
  /// Cancels an object's deletion and the effects of its delete rules, and gives it the store's row.
  ///
  /// Objects that were deleted along stay deleted if the app has deleted them itself, or if another
  /// deletion deletes them along too. Their own changes are pending again.
  func revokeDeletion(of object: NSManagedObject, onto row: Row) {
    var revoked = [object]
    while let next = revoked.popLast() {
      guard next.state.contains(.deleted) else { continue }
      undelete(next)
      revoked += deletedAlong(with: next)
      restoreInverses(of: next, keepsChanges: next !== object)
      guard next !== object, !next.state.contains(.inserted),
        !next.changed.isEmpty || !next.changedToManys.isEmpty
      else { continue }
      next.state.insert(.updated)
      updated.append(next)
      noteState(of: next)
    }
    retractingInverses(of: object) {
      object.turnIntoFault()
      object.rebase(onto: row)
    }
  }

  /// The deleted objects that an object's cascade rules have deleted, and no other deletion.
  private func deletedAlong(with object: NSManagedObject) -> [NSManagedObject] {
    guard !deletedByCascade.isEmpty else { return [] }
    var found: [NSManagedObject] = []
    for (index, link) in object.template.toOnes.enumerated()
    where link.slot.deleteRule == .cascadeDeleteRule {
      if let destination = object.registeredToOne(at: index) { found.append(destination) }
    }
    for (index, link) in object.template.toManys.enumerated()
    where link.slot.deleteRule == .cascadeDeleteRule {
      found += object.toManyStorage(ifTouched: index)?.members.items ?? []
    }
    return found.filter { destination in
      destination.context === self && destination.state.contains(.deleted)
        && !destination.state.contains(.vanished)
        && deletedByCascade.contains(ObjectIdentifier(destination))
        && !isDeletedByOthers(destination)
    }
  }

  /// Whether an object is the destination of a cascade rule of an object that is still deleted.
  private func isDeletedByOthers(_ object: NSManagedObject) -> Bool {
    func cascades(_ link: ObjectTemplate.Link) -> Bool {
      link.slot.inverse?.deleteRule == .cascadeDeleteRule
    }
    for (index, link) in object.template.toOnes.enumerated() where cascades(link) {
      if object.registeredToOne(at: index)?.state.contains(.deleted) ?? false { return true }
    }
    for (index, link) in object.template.toManys.enumerated() where cascades(link) {
      let members = object.toManyStorage(ifTouched: index)?.members.items ?? []
      if members.contains(where: { $0.state.contains(.deleted) }) { return true }
    }
    return false
  }

  /// Restores the relationships to an object that its deletion cleared.
  ///
  /// Where the object keeps its changes, a changed relationship gets its inverse again; any other one
  /// is as the store has it.
  private func restoreInverses(of object: NSManagedObject, keepsChanges: Bool) {
    for (index, link) in object.template.toOnes.enumerated()
    where link.hasInverse && link.slot.deleteRule == .nullifyDeleteRule {
      guard let destination = object.registeredToOne(at: index) else { continue }
      let isChanged = link.slot.rowIndex.map { object.changed.contains($0) } ?? false
      restore(object, in: destination, link, isChanged: keepsChanges && isChanged)
    }
    for (index, link) in object.template.toManys.enumerated()
    where link.hasInverse && link.slot.deleteRule == .nullifyDeleteRule {
      guard let storage = object.toManyStorage(ifTouched: index) else { continue }
      let added = Set(storage.added.map { ObjectIdentifier($0) })
      for member in storage.members.items {
        let isChanged = added.contains(ObjectIdentifier(member))
        restore(object, in: member, link, isChanged: keepsChanges && isChanged)
      }
    }
  }

  private func restore(
    _ object: NSManagedObject,
    in destination: NSManagedObject,
    _ link: ObjectTemplate.Link,
    isChanged: Bool
  ) {
    guard destination.context === self, !destination.state.contains(.deleted) else { return }
    switch (link.slot.inverseIsToMany, isChanged) {
    case (true, true): destination.inverseAdded(object, to: link.inverseIndex)
    case (true, false):
      destination.toManyStorage(ifTouched: link.inverseIndex)?.retract(object)
    case (false, true): destination.storeToOne(object, at: link.inverseIndex)
    case (false, false): destination.retractRemoval(of: object, at: link.inverseIndex)
    }
  }
}

extension NSManagedObject {
  /// Reverts a to-one that the deletion of its stored destination cleared.
  fileprivate final func retractRemoval(of object: NSManagedObject, at index: Int) {
    guard let rowIndex = template.toOnes[index].slot.rowIndex, !state.contains(.fault),
      value(at: rowIndex).isNull, let snapshot, snapshot[rowIndex] == object.rowReference
    else { return }
    retractToOne(at: index)
  }
}
