import Foundation

/// Writes rows again that another context deleted, where a merge policy keeps the object's values.
extension NSManagedObjectContext {
  /// Writes an object's row again, with its former key and all values that are known here.
  ///
  /// An object that was never read here has no values to write, so its deletion is accepted.
  func reinsert(_ object: NSManagedObject) throws {
    guard object.snapshot != nil else { return acceptDeletion(of: object) }
    // Before anything is changed: where it cannot be read, the update stays pending.
    let gone = try deletedMembers(of: object)
    unsaved.reinsert(object)
    if object.isFault, let snapshot = object.snapshot { object.take(snapshot) }
    // If only a to-many changed, the snapshot has the values.
    if object.ownValues.isEmpty, let snapshot = object.snapshot {
      object.ownValues = snapshot.values
    }
    object.snapshot = nil
    restoreLinks(of: object, without: gone)
    noteState(of: object)
  }

  /// The members of an object's relationships that another context has deleted too.
  private func deletedMembers(of object: NSManagedObject) throws -> Set<ObjectIdentifier> {
    var linked: [NSManagedObject] = []
    object.forEachToMany { storage in
      guard keepsMembers(storage, of: object) else { return }
      linked += storage.members.items.filter { !$0.key.isTemporary }
    }
    var gone: Set<ObjectIdentifier> = []
    for (binding, members) in groupedByBinding(linked) {
      guard let rows = newestRows(of: binding) else { throw removedStoreError }
      let references = members.references
      rows.forget(references)
      for (member, row) in zip(members, try rows.rows(references, .cached)) where row == nil {
        gone.insert(ObjectIdentifier(member))
      }
    }
    return gone
  }

  /// Inserts links to all known members but those that are gone, because the rows of the join table were
  /// deleted with the row.
  ///
  /// A to-one on the other side keeps the value in the store.
  private func restoreLinks(of object: NSManagedObject, without gone: Set<ObjectIdentifier>) {
    object.forEachToMany { storage in
      guard keepsMembers(storage, of: object) else { return storage.unload() }
      storage.forget(gone)
      storage.becomeNew()
      object.changedToManys.insert(Int(storage.index))
    }
  }

  /// Whether the object's own row, or its links, have the members of a relationship.
  private func keepsMembers(_ storage: ToManyStorage, of object: NSManagedObject) -> Bool {
    let link = object.template.toManys[Int(storage.index)]
    return storage.isLoaded && (!link.hasInverse || link.slot.inverseIsToMany)
  }

  /// Restores the destinations of objects that are written again, also of those for which an earlier save failed
  /// to.
  func restoreReinserted() throws {
    guard !unsaved.unrestored.isEmpty else { return }
    try restoreDestinations(of: unsaved.unrestored)
    for object in unsaved.unrestored { try object.validateForInsert() }
    unsaved.noteRestored()
  }

  /// Clears the to-ones of objects that are written again whose destinations were deleted too, and
  /// makes both sides of each one-to-one agree.
  ///
  /// The deletion has cleared a partner's side of a one-to-one: it is set again, unless the partner
  /// has got another object since, which keeps it.
  private func restoreDestinations(of objects: ArraySlice<NSManagedObject>) throws {
    var destinations: [ObjectIdentifier: NSManagedObject] = [:]
    for object in objects {
      for index in object.template.toOnes.indices {
        guard let destination = object.toOne(at: index) else { continue }
        destinations[ObjectIdentifier(destination)] = destination
      }
    }
    let stored = destinations.values.filter {
      $0.context === self && !$0.key.isTemporary && !$0.state.contains(.inserted)
    }
    var found: [ObjectIdentifier: Row] = [:]
    for (binding, members) in groupedByBinding(stored) {
      guard let rows = newestRows(of: binding) else { throw removedStoreError }
      let references = members.references
      rows.forget(references)
      for (member, row) in zip(members, try rows.rows(references, .cached)) {
        if let row { found[ObjectIdentifier(member)] = row }
      }
    }
    for object in objects {
      for (index, link) in object.template.toOnes.enumerated() {
        guard let destination = object.toOne(at: index), !destination.state.contains(.inserted),
          // Objects that this save deletes are left to its delete rules.
          destination.state.isDisjoint(with: .deleted) || destination.state.contains(.vanished)
        else { continue }
        if let row = found[ObjectIdentifier(destination)], !destination.state.contains(.vanished) {
          agree(object, index, link, with: destination, row)
        } else {
          object.storeToOne(nil, at: index)
        }
      }
    }
  }

  private func agree(
    _ object: NSManagedObject,
    _ index: Int,
    _ link: ObjectTemplate.Link,
    with partner: NSManagedObject,
    _ row: Row
  ) {
    guard link.hasInverse, !link.slot.inverseIsToMany,
      let rowIndex = partner.template.toOnes[link.inverseIndex].slot.rowIndex,
      !partner.changed.contains(rowIndex), row[rowIndex] != object.rowReference
    else { return }
    guard row[rowIndex].isNull else { return object.storeToOne(nil, at: index) }
    partner.rebase(onto: row)
    partner.storeToOne(object, at: link.inverseIndex)
  }
}
