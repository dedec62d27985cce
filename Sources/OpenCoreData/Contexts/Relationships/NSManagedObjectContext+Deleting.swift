import Foundation

extension NSManagedObjectContext {
  /// Applies the delete rules of deleted objects, one level of relationships after the other.
  ///
  /// The relationships of one level are loaded with one query for each relationship, not one for
  /// each object. An object whose relationships could not be read stays queued: no rule is applied
  /// to unknown members.
  func propagateDeletions() {
    // A rule that deletes another object adds it to the next wave.
    guard !unsaved.unpropagated.isEmpty, !turnState.isPropagating else { return }
    turnState.isPropagating = true
    defer { turnState.isPropagating = false }
    let before = readFailure
    readFailure = nil
    var unread: [NSManagedObject] = []
    while !unsaved.unpropagated.isEmpty {
      let wave = unsaved.takeUnpropagated()
      loadRelationships(of: wave)
      for object in wave where !object.state.contains(.propagated) {
        guard canPropagate(object) else {
          unread.append(object)
          continue
        }
        object.state.insert(.propagated)
        propagate(object)
      }
    }
    // The read failure fails every save until the rules can be applied.
    unsaved.keepUnpropagated(unread, readFailure)
    if !unread.isEmpty, readFailure?.losesChanges != true { readFailure = nil }
    readFailure = before ?? readFailure
  }

  /// Queues a deleted object whose row was changed since: its delete rules apply to the members that
  /// other contexts added too.
  func propagateAgain(_ object: NSManagedObject) {
    guard object.state.contains(.propagated) else { return }
    object.state.remove(.propagated)
    object.forEachToMany { $0.unload() }
    unsaved.unpropagated.append(object)
  }

  /// Whether all relationships of an object that have a delete rule are loaded.
  private func canPropagate(_ object: NSManagedObject) -> Bool {
    let template = object.template
    if object.state.contains(.fault),
      template.toOnes.contains(where: { $0.slot.deleteRule != .noActionDeleteRule })
    {
      object.fireIfFault()
      // An object whose row was deleted needs no rules.
      if object.state.contains(.propagated) { return true }
      if object.state.contains(.fault) { return false }
    }
    for (index, link) in template.toManys.enumerated()
    where link.slot.deleteRule != .noActionDeleteRule && !object.hasLoadedToMany(at: index) {
      guard object.loadedToMany(at: index).isLoaded else { return false }
    }
    return true
  }

  private func loadRelationships(of wave: [NSManagedObject]) {
    attachRows(to: wave)
    for (template, objects) in grouped(wave) {
      for (index, link) in template.toManys.enumerated() where needsMembers(link) {
        let unloaded = objects.filter { !$0.toManyStorage(at: index).isLoaded }
        if !unloaded.isEmpty { fulfillToMany(at: index, of: unloaded) }
      }
    }
  }

  /// Without an action the members are only needed to remove their rows in a join table.
  private func needsMembers(_ link: ObjectTemplate.Link) -> Bool {
    link.slot.deleteRule != .noActionDeleteRule || !link.hasInverse || link.slot.inverseIsToMany
  }

  func grouped(
    _ objects: [NSManagedObject]
  ) -> [(template: ObjectTemplate, objects: [NSManagedObject])] {
    guard let first = objects.first?.template else { return [] }
    if objects.allUncounted({ $0.template === first }) { return [(first, objects)] }
    // Changes usually concern few entities.
    var order: [(template: ObjectTemplate, objects: [NSManagedObject])] = []
    for object in objects {
      let template = object.template
      if let place = order.firstIndex(where: { $0.template === template }) {
        order[place].objects.append(object)
      } else {
        order.append((template, [object]))
      }
    }
    return order
  }

  private func propagate(_ object: NSManagedObject) {
    object.markNullified()
    for (index, link) in object.template.toOnes.enumerated() {
      guard link.slot.deleteRule != .noActionDeleteRule,
        let destination = object.toOne(at: index), !destination.state.contains(.deleted)
      else { continue }
      apply(link, from: object, to: destination)
    }
    for (index, link) in object.template.toManys.enumerated()
    where link.slot.deleteRule != .noActionDeleteRule {
      for destination in object.loadedToMany(at: index).members.items
      where !destination.state.contains(.deleted) {
        apply(link, from: object, to: destination)
      }
    }
  }

  private func apply(
    _ link: ObjectTemplate.Link,
    from object: NSManagedObject,
    to destination: NSManagedObject
  ) {
    switch link.slot.deleteRule {
    case .cascadeDeleteRule:
      delete(destination)
      unsaved.deletedByCascade.insert(ObjectIdentifier(destination))
    case .nullifyDeleteRule:
      guard link.hasInverse else { return }
      if link.slot.inverseIsToMany {
        destination.inverseRemoved(object, from: link.inverseIndex)
      } else if destination.toOne(at: link.inverseIndex) === object
        || isSaving && takesNewerReference(destination, to: object, at: link.inverseIndex)
      {
        destination.storeToOne(nil, at: link.inverseIndex)
      }
    case .denyDeleteRule, .noActionDeleteRule:
      // Deny is checked by validation, when all deletions are known.
      break
    }
  }

  /// Gives a member its newest row if that refers to an object and the row that is known here, which
  /// is older, does not; returns whether it did.
  ///
  /// Another context has added the member to the object since.
  private func takesNewerReference(
    _ member: NSManagedObject,
    to object: NSManagedObject,
    at index: Int
  ) -> Bool {
    guard !isChild, let rowIndex = member.template.toOnes[index].slot.rowIndex,
      !member.changed.contains(rowIndex), !member.state.contains(.inserted),
      let binding = member.binding, let rows = newestRows(of: binding)
    else { return false }
    do {
      rows.forget([member.key.reference])
      guard case .row(let row) = try rows.row(member.key.reference),
        row[rowIndex] == object.rowReference
      else { return false }
      untracked { member.rebase(onto: row) }
      return true
    } catch {
      couldNotRead("read the newest values of '\(member.objectID)'", error)
      return false
    }
  }
}
