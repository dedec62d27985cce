import Foundation

/// Revokes deletions for which a merge policy chooses the store's row.
///
/// The delete rules have been applied before the save: objects were deleted by cascade, and inverses were
/// cleared. If only the deletion itself were revoked, the next attempt would commit those effects.
extension NSManagedObjectContext {
  /// A member whose to-one had a pending value that the deletion of its owner cleared.
  private struct MovedMember {
    let member: NSManagedObject
    let index: Int
  }

  /// Cancels an object's deletion and the effects of its delete rules, and gives it the store's row.
  ///
  /// Objects that were deleted by its cascade stay deleted if the app has deleted them itself, or if another
  /// deletion cascades to them too. Their own changes are pending again, and so are those of members
  /// that the app had moved to the object.
  func revokeDeletion(of object: NSManagedObject, onto row: Row) {
    let family = [object] + deletedAlong(with: object)
    for member in family {
      undelete(member)
      noteRevoked(member)
    }
    var moved: [MovedMember] = []
    for member in family {
      moved += restoreInverses(of: member, keepsChanges: member !== object)
      guard member !== object, !member.state.contains(.inserted) else { continue }
      trackRestored(member)
    }
    retractingInverses(of: object) {
      object.turnIntoFault()
      object.rebase(onto: row)
    }
    for move in moved { restore(move, to: object) }
    // The app did not make this change, so it must not be undoable.
    for object in unsaved.revoked { object.forgetTurn() }
  }

  /// The objects that a save has revoked a deletion for, without those that it has changed.
  func takeRevoked(besides changes: ChangedObjects) -> [NSManagedObject] {
    guard !unsaved.revoked.isEmpty else { return [] }
    defer { unsaved.revoked = [] }
    let others = [changes.inserted, changes.updated, changes.deleted, changes.refreshed].joined()
    var seen = Set(others.map { ObjectIdentifier($0) })
    return unsaved.revoked.filter { object in
      object.context === self && seen.insert(ObjectIdentifier(object)).inserted
    }
  }

  /// Shows an object again in fetched results and views, which the deletion had removed it from.
  private func noteRevoked(_ object: NSManagedObject) {
    touch(object, .touchedRefresh)
    unsaved.revoked.append(object)
  }

  /// Makes the changes of an object pending that is not deleted any more.
  private func trackRestored(_ object: NSManagedObject) {
    guard !object.changed.isEmpty || !object.changedToManys.isEmpty,
      unsaved.update(object)
    else { return }
    noteState(of: object)
  }

  // MARK: Cascades

  /// The deleted objects that an object's cascade rules have deleted, directly or by the rules of
  /// those, and no other deletion.
  private func deletedAlong(with object: NSManagedObject) -> [NSManagedObject] {
    guard !unsaved.deletedByCascade.isEmpty else { return [] }
    let family = reachedByCascade(from: [object]) { _ in true }
    var known = Set(family.map { ObjectIdentifier($0) })
    known.insert(ObjectIdentifier(object))
    // Members of the family may cascade to each other: only deletions outside of it count.
    let held = family.filter { isDeletedByOthers($0, than: known) }
    var others = Set(held.map { ObjectIdentifier($0) })
    for other in reachedByCascade(from: held, while: { known.contains(ObjectIdentifier($0)) }) {
      others.insert(ObjectIdentifier(other))
    }
    return family.filter { !others.contains(ObjectIdentifier($0)) }
  }

  /// The objects deleted by cascade that rules of the given objects lead to, each once.
  private func reachedByCascade(
    from objects: [NSManagedObject],
    while isWanted: (NSManagedObject) -> Bool
  ) -> [NSManagedObject] {
    var found: [NSManagedObject] = []
    var seen = Set(objects.map { ObjectIdentifier($0) })
    var next = objects
    while let object = next.popLast() {
      for destination in cascadeDestinations(of: object)
      where destination.context === self && destination.state.contains(.deleted)
        && !destination.state.contains(.vanished)
        && unsaved.deletedByCascade.contains(ObjectIdentifier(destination))
        && isWanted(destination)
        && seen.insert(ObjectIdentifier(destination)).inserted
      {
        found.append(destination)
        next.append(destination)
      }
    }
    return found
  }

  private func cascadeDestinations(of object: NSManagedObject) -> [NSManagedObject] {
    var found: [NSManagedObject] = []
    for (index, link) in object.template.toOnes.enumerated()
    where link.slot.deleteRule == .cascadeDeleteRule {
      if let destination = object.registeredToOne(at: index) { found.append(destination) }
    }
    for (index, link) in object.template.toManys.enumerated()
    where link.slot.deleteRule == .cascadeDeleteRule {
      // The members are not loaded if an undo action has deleted the object: its rules were not applied again.
      found += object.loadedToMany(at: index).members.items
    }
    return found
  }

  /// Whether an object is the destination of a cascade rule of a deleted object outside of a family.
  private func isDeletedByOthers(
    _ object: NSManagedObject,
    than family: Set<ObjectIdentifier>
  ) -> Bool {
    func cascades(_ link: ObjectTemplate.Link) -> Bool {
      link.slot.inverse?.deleteRule == .cascadeDeleteRule
    }
    func isOther(_ owner: NSManagedObject) -> Bool {
      owner.state.contains(.deleted) && !family.contains(ObjectIdentifier(owner))
    }
    for (index, link) in object.template.toOnes.enumerated() where cascades(link) {
      if let owner = object.registeredToOne(at: index), isOther(owner) { return true }
    }
    for (index, link) in object.template.toManys.enumerated() where cascades(link) {
      let members = object.toManyStorage(ifTouched: index)?.members.items ?? []
      if members.contains(where: isOther) { return true }
    }
    return false
  }

  // MARK: Cleared inverses

  /// Restores the relationships to an object that its deletion cleared; returns the members that had
  /// been moved to it.
  ///
  /// Where the object keeps its changes, a changed relationship gets its inverse again; any other one
  /// is as the store has it.
  private func restoreInverses(
    of object: NSManagedObject,
    keepsChanges: Bool
  ) -> [MovedMember] {
    var moved: [MovedMember] = []
    func restore(_ member: NSManagedObject, _ link: ObjectTemplate.Link, isChanged: Bool) {
      guard member.context === self, !member.state.contains(.deleted) else { return }
      noteRevoked(member)
      switch (link.slot.inverseIsToMany, isChanged && keepsChanges) {
      case (true, true): member.inverseAdded(object, to: link.inverseIndex)
      case (true, false): member.toManyStorage(ifTouched: link.inverseIndex)?.retract(object)
      case (false, true): member.storeToOne(object, at: link.inverseIndex)
      case (false, false):
        guard !member.retractRemoval(of: object, at: link.inverseIndex), !keepsChanges,
          member.hasClearedToOne(at: link.inverseIndex)
        else { return }
        moved.append(MovedMember(member: member, index: link.inverseIndex))
      }
    }
    for (index, link) in object.template.toOnes.enumerated()
    where link.hasInverse && link.slot.deleteRule == .nullifyDeleteRule {
      guard let destination = object.registeredToOne(at: index) else { continue }
      let isChanged = link.slot.rowIndex.map { object.changed.contains($0) } ?? false
      restore(destination, link, isChanged: isChanged)
    }
    for (index, link) in object.template.toManys.enumerated()
    where link.hasInverse && link.slot.deleteRule == .nullifyDeleteRule {
      guard let storage = object.toManyStorage(ifTouched: index) else { continue }
      let added = Set(storage.added.map { ObjectIdentifier($0) })
      for member in storage.members.items {
        restore(member, link, isChanged: added.contains(ObjectIdentifier(member)))
      }
    }
    return moved
  }

  /// Moves a member again to the object whose deletion cleared its to-one.
  ///
  /// The move is a change of the member alone, and not of the owner's row. In a one-to-one both sides change, and so
  /// do the former partners of both.
  private func restore(_ move: MovedMember, to object: NSManagedObject) {
    let link = move.member.template.toOnes[move.index]
    let formerOwner = move.member.toOne(at: move.index)
    let formerMember = link.slot.inverseIsToMany ? nil : object.toOne(at: link.inverseIndex)
    move.member.setToOne(object, at: move.index)
    for changed in [move.member, object, formerOwner, formerMember] {
      if let changed { trackRestored(changed) }
    }
  }
}

extension NSManagedObject {
  /// Reverts a to-one that the deletion of its stored destination cleared; returns whether it did.
  fileprivate final func retractRemoval(of object: NSManagedObject, at index: Int) -> Bool {
    guard let rowIndex = template.toOnes[index].slot.rowIndex, hasClearedToOne(at: index),
      let snapshot, snapshot[rowIndex] == object.rowReference
    else { return false }
    retractToOne(at: index)
    return true
  }

  /// Whether a to-one was changed, and is nil.
  fileprivate final func hasClearedToOne(at index: Int) -> Bool {
    guard let rowIndex = template.toOnes[index].slot.rowIndex, !state.contains(.fault) else {
      return false
    }
    return changed.contains(rowIndex) && value(at: rowIndex).isNull
  }
}
