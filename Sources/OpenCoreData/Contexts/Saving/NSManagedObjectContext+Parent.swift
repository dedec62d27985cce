import Foundation

/// Contexts that save into another context.
///
/// A child reads rows that are made of its parent's objects, including the parent's pending
/// changes, and its saves change the parent's objects. The stores are changed when the parent is
/// saved.
extension NSManagedObjectContext {
  /// Passes the changes to the parent, which keeps them until it is saved.
  func save(into parent: NSManagedObjectContext) throws {
    try validateChanges()
    let cleared = ClearedReferences(unsaved.deleted.objects)
    let edited = editedAndCascaded()
    try parent.performForChild {
      var own: [ObjectIdentifier: NSManagedObject] = [:]
      // The parent cannot change objects that it cannot read: everything that the changes need is
      // read first, and if that fails no change is passed on.
      try parent.reportingReadFailure {
        for object in unsaved.updated.objects {
          guard let target = parent.ownObject(object.key) else { throw missingInParent(object) }
          prepare(target, for: object, cleared) { parent.ownObject($0.key) }
          own[ObjectIdentifier(object)] = target
        }
        for object in edited {
          guard let target = parent.ownObject(object.key) else { continue }
          prepare(target, for: object, cleared) { parent.ownObject($0.key) }
          // An object that the parent has deleted, or has no row of, receives no changes.
          guard !target.state.contains(.deleted) else { continue }
          own[ObjectIdentifier(object)] = target
        }
      }
      for object in unsaved.inserted.objects {
        let made = object.template.type.make(
          entity: object.template.layout.entity,
          in: parent,
          key: object.key
        )
        own[ObjectIdentifier(object)] = made
      }
      func counterpart(_ object: NSManagedObject) -> NSManagedObject? {
        own[ObjectIdentifier(object)] ?? parent.ownObject(object.key)
      }
      for object in unsaved.inserted.objects + unsaved.updated.objects + edited {
        guard let target = own[ObjectIdentifier(object)] else { continue }
        push(object, into: target, cleared, counterpart)
      }
      deleteObjects(of: parent)
      parent.processPendingChanges()
    }
    let changes = clearSavedChanges()
    for object in changes.inserted + changes.updated { rebaseOnParent(object) }
    announceSaved(changes)
    isSaving = false
    for object in changes.inserted { registry.insert(object) }
    postSave(changes)
    notifyChildren(changes)
    parent.performForChild { parent.notifyChildren(changes, except: self) }
    for object in changes.deleted { forgetDeleted(object) }
  }

  /// The changed objects that a rule has deleted.
  ///
  /// Their changes are passed on before their deletion: they are pending in the parent again if a
  /// merge policy revokes the deletion of their owner there.
  private func editedAndCascaded() -> [NSManagedObject] {
    guard !unsaved.deletedByCascade.isEmpty else { return [] }
    return unsaved.deleted.objects.filter { object in
      unsaved.deletedByCascade.contains(ObjectIdentifier(object))
        && object.state.isDisjoint(with: [.inserted, .vanished, .fault])
        && (!object.changed.isEmpty || !object.changedToManys.isEmpty)
    }
  }

  /// Deletes the parent's objects for the objects that are deleted here.
  ///
  /// An object that a rule has deleted here counts as deleted by a rule there too, and is restored with
  /// its owner if a merge policy revokes that deletion.
  private func deleteObjects(of parent: NSManagedObjectContext) {
    var cascaded: [NSManagedObject] = []
    for object in unsaved.deleted.objects where !object.state.contains(.vanished) {
      guard let target = parent.ownObject(object.key) else { continue }
      if unsaved.deletedByCascade.contains(ObjectIdentifier(object)) {
        cascaded.append(target)
      } else {
        parent.delete(target)
      }
    }
    for target in cascaded where !target.state.contains(.deleted) {
      parent.delete(target)
      guard target.context === parent, target.state.contains(.deleted) else { continue }
      parent.unsaved.deletedByCascade.insert(ObjectIdentifier(target))
    }
  }

  /// The error of a change whose object the parent no longer has, because it was reset or undid the
  /// insertion.
  private func missingInParent(_ object: NSManagedObject) -> NSError {
    CoreDataError.make(
      NSManagedObjectReferentialIntegrityError,
      "The parent context no longer has the object \(object.objectID), so its changes cannot be saved "
        + "into it.",
      [NSAffectedObjectsErrorKey: [object]]
    )
  }

  /// Makes the parent read everything that ``push(_:into:_:)`` will need of an object.
  private func prepare(
    _ target: NSManagedObject,
    for object: NSManagedObject,
    _ cleared: ClearedReferences,
    _ counterpart: (NSManagedObject) -> NSManagedObject?
  ) {
    let attributes = object.template.layout.attributes.count
    if !object.changed.isEmpty { target.fireIfFault() }
    for slot in object.changed.slots where slot >= attributes {
      let index = slot - attributes
      let link = target.template.toOnes[index]
      guard link.hasInverse else { continue }
      let destination = cleared.destination(of: object, at: index)
      let ends = [target.toOne(at: index), destination.flatMap(counterpart)]
      for case let end? in ends {
        if link.slot.inverseIsToMany {
          prepareMembers(of: end, at: link.inverseIndex)
        } else {
          end.fireIfFault()
          end.toOne(at: link.inverseIndex)?.fireIfFault()
        }
      }
    }
    for index in object.changedToManys.slots {
      guard let storage = object.toManyStorage(ifTouched: index) else { continue }
      if storage.isOrdered, storage.isReordered || storage.isNewlyMade {
        _ = target.loadedToMany(at: index)
      } else {
        prepareMembers(of: target, at: index)
      }
      let link = target.template.toManys[index]
      guard link.hasInverse, link.slot.inverseIsToMany else { continue }
      for member in storage.added + storage.removed.items {
        if let own = counterpart(member) { prepareMembers(of: own, at: link.inverseIndex) }
      }
    }
  }

  /// Reads the members of an observed relationship, because its observers receive them.
  private func prepareMembers(of owner: NSManagedObject, at index: Int) {
    if owner.state.contains(.observed) { _ = owner.loadedToMany(at: index) }
  }

  private func push(
    _ object: NSManagedObject,
    into target: NSManagedObject,
    _ cleared: ClearedReferences,
    _ counterpart: (NSManagedObject) -> NSManagedObject?
  ) {
    let layout = object.template.layout
    for slot in object.changed.slots {
      if slot < layout.attributes.count {
        target.fireIfFault()
        if let bytes = object.unreadableBytes(at: slot) {
          target.setStoredBytes(bytes, at: slot)
        } else if layout.attributes[slot].holdsObjects {
          target.setAttributeValue(object.attributeValue(at: slot), at: slot)
        } else {
          target.setRowValue(object.value(at: slot), at: slot)
        }
      } else {
        let index = slot - layout.attributes.count
        let destination = cleared.destination(of: object, at: index).flatMap(counterpart)
        // An object that the parent is about to delete is no destination, as its delete rule
        // demands.
        let isGone = destination?.state.contains(.deleted) ?? false
        target.setToOne(isGone ? nil : destination, at: index)
      }
    }
    for index in object.changedToManys.slots {
      guard let storage = object.toManyStorage(ifTouched: index) else { continue }
      push(storage, at: index, of: object.template.toManys[index], into: target, counterpart)
    }
  }

  /// Passes only the added and removed members: members that the parent added or removed since are
  /// kept as the parent has them.
  private func push(
    _ storage: ToManyStorage,
    at index: Int,
    of link: ObjectTemplate.Link,
    into target: NSManagedObject,
    _ counterpart: (NSManagedObject) -> NSManagedObject?
  ) {
    // A to-one inverse has already passed the members to the parent.
    if !link.hasInverse || link.slot.inverseIsToMany || link.slot.isOrdered {
      for member in storage.removed.items {
        if let own = counterpart(member) { target.inverseRemoved(own, from: index) }
      }
      for member in storage.added where !member.state.contains(.deleted) {
        guard let own = counterpart(member), !own.state.contains(.deleted) else { continue }
        target.inverseAdded(own, to: index)
      }
    }
    guard storage.isOrdered, storage.isReordered || storage.isNewlyMade else { return }
    let wanted = storage.members.items.compactMap(counterpart)
    let known = target.loadedToMany(at: index)
    let order = MemberOrder.order(of: known.members.items, as: wanted)
    if known.isLoaded, !known.members.items.elementsEqual(order, by: ===) {
      target.reorderToMany(order, at: index)
    }
  }

  private func rebaseOnParent(_ object: NSManagedObject) {
    guard !object.state.contains(.fault) else { return }
    object.snapshot = Row(
      reference: object.key.reference,
      version: object.snapshot?.version ?? 0,
      values: object.values
    )
  }

  // MARK: Announcing

  /// Merges this context's changes into the children that merge automatically; called on this
  /// context's lane.
  ///
  /// A child may have objects of rows that have no object in this context.
  func notifyChildren(
    _ changes: ChangedObjects,
    _ unannounced: UnannouncedRows = UnannouncedRows(),
    reportingOwners: Bool = true,
    except source: NSManagedObjectContext? = nil
  ) {
    let children = children
    guard !children.isEmpty else { return }
    var rows = ChangedRows(
      inserted: (changes.inserted + unannounced.inserted).map(\.key),
      updated: (changes.updated + changes.refreshed).map(\.key) + unannounced.updated,
      deleted: changes.deleted.map(\.key) + unannounced.deleted
    )
    rows.reportsOwners = reportingOwners
    for child in children where child !== source && child.automaticallyMergesChangesFromParent {
      child.enqueueMerge(rows)
    }
  }
}

extension NSManagedObject {
  /// Creates the parent's object for one that a child inserted; both have the same key.
  static func make(
    entity: NSEntityDescription,
    in context: NSManagedObjectContext,
    key: ObjectKey
  ) -> NSManagedObject {
    let object = make(entity: entity, in: context, awakes: false)
    let coordinator = context.persistentStoreCoordinator
    object.become(key, key.isTemporary ? nil : coordinator?.binding(number: key.store))
    if key.isTemporary {
      context.unsaved.noteKey(of: object)
    } else {
      context.registry.insert(object)
    }
    return object
  }
}
