import Foundation

/// The changes of one save to one store, with the objects of the rows.
final class SavePlan {
  let binding: StoreBinding
  private let builder = RowBuilder()
  var changes = RowChanges()
  /// The inserted objects, in the order of their insertion.
  private var inserted: [NSManagedObject] = []
  private var updated: [NSManagedObject] = []
  private var deleted: [NSManagedObject] = []

  init(binding: StoreBinding, author: String?, contextName: String?) {
    self.binding = binding
    changes.author = author
    changes.contextName = contextName
  }

  /// The objects of the changes.
  var objects: SavedObjects {
    SavedObjects(inserted: inserted, updated: updated, deleted: deleted)
  }

  // MARK: Building

  /// Reserves capacity for a context's changes, most of which usually belong to one store.
  func reserveCapacity(inserted: Int, updated: Int) {
    changes.inserted.reserveCapacity(inserted)
    self.inserted.reserveCapacity(inserted)
    changes.updated.reserveCapacity(updated)
    self.updated.reserveCapacity(updated)
  }

  /// Adds an inserted object, or one whose row is written again.
  ///
  /// The links of an object whose row is written again are written from this side, regardless of which side of the
  /// relationship usually writes them.
  func insert(_ object: NSManagedObject, again: Bool = false) throws {
    try resolveToOnes(of: object)
    changes.inserted.append(
      RowChanges.Insertion(
        reference: object.key.reference,
        layout: object.template.layout,
        row: row(of: object, version: 1)
      )
    )
    inserted.append(object)
    try addToManys(of: object, makesLinks: again)
  }

  func update(_ object: NSManagedObject) throws {
    var rows: [Int] = []
    if !object.changed.isEmpty {
      try resolveToOnes(of: object)
      rows = object.changed.slots
      let snapshot = object.snapshot
      rows.removeAll { slot in
        object.isTransient(rowIndex: slot)
          || snapshot.map { object.isUnchanged(slot, in: $0) } ?? false
      }
    }
    let toManys = try addToManys(of: object)
    guard !rows.isEmpty || !toManys.isEmpty else { return }
    guard let snapshot = object.snapshot else { return conflict(object, toManys) }
    changes.updated.append(
      RowChanges.Update(
        reference: object.key.reference,
        layout: object.template.layout,
        expectedVersion: snapshot.version,
        changed: rows,
        changedToManys: toManys.slots,
        row: row(of: object, version: snapshot.version + 1)
      )
    )
    updated.append(object)
  }

  /// Makes the save report a conflict for a fault of which only the inverse changed and whose row
  /// was deleted: it expects a version that no row has.
  private func conflict(_ object: NSManagedObject, _ toManys: SlotSet) {
    let layout = object.template.layout
    changes.updated.append(
      RowChanges.Update(
        reference: object.key.reference,
        layout: layout,
        expectedVersion: -1,
        changed: [],
        changedToManys: toManys.slots,
        values: [RowValue](repeating: .null, count: layout.rowWidth)
      )
    )
    updated.append(object)
  }

  /// The object's values as one row, from which they are bound and cached.
  private func row(of object: NSManagedObject, version: Int64) -> Row {
    if object.ownValues.isEmpty, let snapshot = object.snapshot {
      return Row(reference: object.key.reference, version: version, values: snapshot.values)
    }
    return object.ownValues.withUnsafeBufferPointer {
      builder.row(reference: object.key.reference, version: version, values: $0)
    }
  }

  func delete(_ object: NSManagedObject) {
    for (index, link) in object.template.toManys.enumerated()
    where !link.hasInverse || link.slot.inverseIsToMany {
      for member in object.loadedToMany(at: index).committedMembers where !member.key.isTemporary {
        // If both ends are deleted, only one of them removes the link.
        if member.state.contains(.deleted), link.hasInverse, !link.writesLinks { continue }
        changes.links.append(
          RowChanges.Link(
            relationship: link.slot.description,
            source: object.key.reference,
            destination: member.key.reference,
            isInsertion: false
          )
        )
      }
    }
    guard let snapshot = object.snapshot else { return }
    changes.deleted.append(
      RowChanges.Deletion(
        reference: object.key.reference,
        layout: object.template.layout,
        expectedVersion: snapshot.version
      )
    )
    deleted.append(object)
  }

  /// Compares the row, although nothing of it changed.
  func check(_ object: NSManagedObject) {
    guard let snapshot = object.snapshot else { return }
    changes.checks.append(
      RowChanges.Check(reference: object.key.reference, expectedVersion: snapshot.version)
    )
  }

  /// Sets the references to objects that had no row when the to-one was set.
  private func resolveToOnes(of object: NSManagedObject) throws {
    guard !object.toOneObjects.isEmpty else { return }
    for link in object.template.toOnes {
      guard let destination = object.toOneObjects[link.slot.index],
        let rowIndex = link.slot.rowIndex, object.changed.contains(rowIndex)
      else { continue }
      try requireRow(destination, of: object, link)
      object.values[rowIndex] = destination.rowReference
    }
  }

  /// Makes a destination whose row was deleted a conflict, also if it was never read.
  private func expectRow(of destination: NSManagedObject) {
    changes.checks.append(
      RowChanges.Check(reference: destination.key.reference, expectedVersion: -1)
    )
  }

  private func requireRow(
    _ destination: NSManagedObject,
    of object: NSManagedObject,
    _ link: ObjectTemplate.Link
  ) throws {
    // A row that was found deleted when it was read is a conflict, which a policy may resolve.
    if destination.context != nil, destination.state.contains(.vanished),
      destination.binding === object.binding, !destination.key.isTemporary
    {
      return expectRow(of: destination)
    }
    let isGone = destination.context == nil || destination.state.contains(.deleted)
    if !isGone, destination.binding === object.binding, !destination.key.isTemporary { return }
    guard !isGone, destination.binding != nil, !destination.key.isTemporary else {
      throw ValidationError.make(
        NSManagedObjectValidationError,
        object,
        link.slot.name,
        value: destination,
        "The object has a dangling reference to an invalid object: \(link.slot.name) leads to one "
          + "that was deleted or is in no context."
      )
    }
    throw ValidationError.make(
      NSManagedObjectExternalRelationshipError,
      object,
      link.slot.name,
      value: destination,
      "Illegal attempt to establish a relationship '\(link.slot.name)' between objects in "
        + "different stores."
    )
  }

  /// Adds the rows of join tables and the order of members; returns the to-manys that changed.
  @discardableResult
  private func addToManys(
    of object: NSManagedObject,
    makesLinks: Bool = false
  ) throws -> SlotSet {
    var changed = SlotSet()
    guard object.hasToManys else { return changed }
    for (index, link) in object.template.toManys.enumerated() {
      guard let storage = object.toManyStorage(ifTouched: index), storage.hasChanges else {
        continue
      }
      changed.insert(index)
      let isJoined = !link.hasInverse || link.slot.inverseIsToMany
      if link.writesLinks || makesLinks && isJoined { try addLinks(of: object, storage, link) }
      guard link.slot.isOrdered else { continue }
      // Deleted members have no place in the order; new ones among them were refused above.
      let members = object.loadedToMany(at: index).members.items.filter { member in
        member.context != nil && !member.state.contains(.deleted)
      }
      for member in members { try requireRow(member, of: object, link) }
      changes.orders.append(
        RowChanges.Order(
          relationship: link.slot.description,
          source: object.key.reference,
          destinations: members.map(\.key.reference)
        )
      )
    }
    return changed
  }

  private func addLinks(
    of object: NSManagedObject,
    _ storage: ToManyStorage,
    _ link: ObjectTemplate.Link
  ) throws {
    func add(_ member: NSManagedObject, isInsertion: Bool) {
      changes.links.append(
        RowChanges.Link(
          relationship: link.slot.description,
          source: object.key.reference,
          destination: member.key.reference,
          isInsertion: isInsertion
        )
      )
    }
    for member in storage.added where !member.state.contains(.deleted) {
      try requireRow(member, of: object, link)
      add(member, isInsertion: true)
    }
    for member in storage.removed.items where !member.key.isTemporary {
      // A deleted object removes its own rows of the join table, where it knows of the
      // relationship.
      if member.state.contains(.deleted), link.hasInverse { continue }
      add(member, isInsertion: false)
    }
  }

  // MARK: Applying

  /// Attaches the rows, as they are in the store now, to their objects.
  func apply(_ commit: RowCommit) {
    // Stores usually return the rows in the order in which they received them.
    var next = 0
    var others: [RowReference: Row] = [:]
    let count = updated.count + inserted.count
    for row in commit.rows {
      if next < count, self.object(at: next).key.reference == row.reference {
        apply(row, to: self.object(at: next))
        next += 1
      } else {
        others[row.reference] = row
      }
    }
    guard !others.isEmpty else { return }
    for object in updated + inserted {
      if let row = others[object.key.reference] { apply(row, to: object) }
    }
  }

  /// The object of a written row, by its index in the order of writing.
  private func object(at place: Int) -> NSManagedObject {
    place < updated.count ? updated[place] : inserted[place - updated.count]
  }

  private func apply(_ row: Row, to object: NSManagedObject) {
    if object.isFault {
      object.snapshot = row
      object.state.insert(.prefetched)
      return
    }
    let kept = object.template.transientIndexes.isEmpty ? [] : object.ownValues
    object.snapshot = row
    object.ownValues = []
    guard !kept.isEmpty else { return }
    for index in object.template.transientIndexes { object.values[index] = kept[index] }
  }
}

extension NSManagedObjectContext {
  /// Groups the pending changes by store.
  func savePlans(_ coordinator: NSPersistentStoreCoordinator) throws -> [SavePlan] {
    var plans: [SavePlan] = []
    let author = transactionAuthor
    let contextName = name
    func plan(_ object: NSManagedObject) throws -> SavePlan {
      guard let binding = object.binding else {
        throw CoreDataError.make(
          NSManagedObjectReferentialIntegrityError,
          "The object \(object.objectID) belongs to no store."
        )
      }
      if let last = plans.last, last.binding === binding { return last }
      if let known = plans.first(where: { $0.binding === binding }) { return known }
      let made = SavePlan(binding: binding, author: author, contextName: contextName)
      made.reserveCapacity(inserted: unsaved.inserted.count, updated: unsaved.updated.count)
      plans.append(made)
      return made
    }
    let again = Set(unsaved.reinserted.map { ObjectIdentifier($0) })
    for object in unsaved.inserted.objects {
      let isAgain = !again.isEmpty && again.contains(ObjectIdentifier(object))
      try plan(object).insert(object, again: isAgain)
    }
    for object in unsaved.updated.objects { try plan(object).update(object) }
    for object in unsaved.deleted.objects
    where !object.state.contains(.vanished) && !object.state.contains(.inserted) {
      try plan(object).delete(object)
    }
    for object in unsaved.conflictChecks
    where object.context === self && !object.isPending && object.binding != nil {
      try plan(object).check(object)
    }
    return plans
  }
}
