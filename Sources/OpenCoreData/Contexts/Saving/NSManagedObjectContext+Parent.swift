import Foundation

/// Contexts that save into another context.
///
/// A child reads rows that are made of its parent's objects, including the parent's pending
/// changes, and its saves change the parent's objects. The stores are changed when the parent is
/// saved.
extension NSManagedObjectContext {
  /// Merges this context's changes into the children that merge automatically; called on this
  /// context's lane.
  ///
  /// A child may have objects of rows that this context has none of.
  func notifyChildren(
    _ changes: ChangedObjects,
    _ unannounced: UnannouncedRows = UnannouncedRows(),
    except source: NSManagedObjectContext? = nil
  ) {
    let children = children
    guard !children.isEmpty else { return }
    let rows = ChangedRows(
      inserted: (changes.inserted + unannounced.inserted).map(\.key),
      updated: (changes.updated + changes.refreshed).map(\.key) + unannounced.updated,
      deleted: changes.deleted.map(\.key) + unannounced.deleted
    )
    for child in children where child !== source && child.automaticallyMergesChangesFromParent {
      child.enqueueMerge(rows)
    }
  }

  // MARK: The parent's side

  /// The object of a key, regardless of its state; called on this context's lane.
  func ownObject(_ key: ObjectKey) -> NSManagedObject? {
    let key = lasting(key)
    if let known = registeredObject(key) { return known }
    if key.isTemporary {
      // The object may be a pending one of the parent's own parent.
      return parent.flatMap { _ in faultOfParent(key) }
    }
    guard let binding = persistentStoreCoordinator?.binding(number: key.store),
      let template = binding.template(number: key.reference.entityNumber)
    else { return nil }
    return makeFault(key, template: template, binding: binding)
  }

  /// A row made of an object's current values in this context.
  func rowForChild(_ key: ObjectKey) throws -> RowAnswer {
    try performForChild {
      guard let object = ownObject(key) else {
        let isHeld = persistentStoreCoordinator?.binding(number: key.store) != nil
        if key.isTemporary || isHeld { return .absent }
        throw removedStoreError
      }
      guard !object.state.contains(.deleted) else { return .absent }
      try reportingReadFailure { object.fireIfFault() }
      guard !object.state.contains(.deleted) else { return .absent }
      return .row(
        Row(
          reference: key.reference,
          version: object.snapshot?.version ?? 0,
          values: object.values
        )
      )
    }
  }

  // MARK: The child's side

  /// The fault of an object that the parent has not saved yet.
  func faultOfParent(_ key: ObjectKey) -> NSManagedObject? {
    guard let parent else { return nil }
    let template = parent.performForChild { parent.ownObject(key)?.template }
    return template.map { makeFault(key, template: $0, binding: nil) }
  }

  func fulfillToManyFromParent(at index: Int, of object: NSManagedObject) {
    guard let parent else { return }
    let key = object.key
    let members: [(ObjectKey, ObjectTemplate, StoreBinding?)]
    do {
      members = try parent.performForChild {
        try parent.reportingReadFailure {
          parent.ownObject(key).map { own in
            own.loadedToMany(at: index).members.items.map { ($0.key, $0.template, $0.binding) }
          } ?? []
        }
      }
    } catch {
      let name = object.template.toManys[index].slot.name
      return couldNotRead("fulfill the relationship '\(name)'", error)
    }
    let found = members.map { key, template, binding in
      registeredObject(key) ?? makeFault(key, template: template, binding: binding)
    }
    var (stayed, left): ([NSManagedObject], [NSManagedObject]) = ([], [])
    for member in found {
      if !updated.isEmpty, member.hasLeft(object, toMany: index) {
        left.append(member)
      } else {
        stayed.append(member)
      }
    }
    let settled = object.toManyStorage(at: index).load(stayed, left: left)
    object.forgetForUndo(settled, at: index)
  }

  func objects(_ plan: FetchPlan, from parent: NSManagedObjectContext) throws -> [NSManagedObject] {
    var open = plan
    let pending = childChanges(plan)
    if !pending.isEmpty {
      open.limit = 0
      open.offset = 0
    }
    let found = try parent.performForChild {
      try parent.objects(open).map { ($0.key, $0.template, $0.binding) }
    }
    var objects = found.map { key, template, binding in
      registeredObject(key) ?? makeFault(key, template: template, binding: binding)
    }
    guard !pending.isEmpty else { return objects }
    func matches(_ object: NSManagedObject) -> Bool {
      plan.predicate?.evaluate(with: object) ?? true
    }
    objects.removeAll { object in
      object.state.contains(.deleted) || object.state.contains(.updated) && !matches(object)
    }
    let known = Set(objects)
    for object in pending where !object.state.contains(.deleted) && !known.contains(object) {
      if matches(object) { objects.append(object) }
    }
    return plan.window(objects.sorted(using: plan.sortDescriptors) { $0 })
  }

  private func childChanges(_ plan: FetchPlan) -> [NSManagedObject] {
    guard plan.includesPendingChanges else { return [] }
    return (inserted.objects + updated.objects + deleted.objects).filter(plan.covers)
  }

  // MARK: Saving

  /// Passes the changes to the parent, which keeps them until it is saved.
  func save(into parent: NSManagedObjectContext) throws {
    try validateChanges()
    let cleared = ClearedReferences(deleted.objects)
    try parent.performForChild {
      var own: [ObjectIdentifier: NSManagedObject] = [:]
      // The parent cannot change objects that it cannot read: everything that the changes need is
      // read first, and if that fails no change is passed on.
      try parent.reportingReadFailure {
        for object in updated.objects {
          guard let target = parent.ownObject(object.key) else { throw missingInParent(object) }
          prepare(target, for: object, cleared) { parent.ownObject($0.key) }
          own[ObjectIdentifier(object)] = target
        }
      }
      for object in inserted.objects {
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
      for object in inserted.objects + updated.objects {
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

  /// Deletes the parent's objects of those that are deleted here.
  ///
  /// What a rule has deleted here counts as deleted by a rule there too, and comes back with its owner
  /// if a merge policy revokes that deletion.
  private func deleteObjects(of parent: NSManagedObjectContext) {
    var cascaded: [NSManagedObject] = []
    for object in deleted.objects where !object.state.contains(.vanished) {
      guard let target = parent.ownObject(object.key) else { continue }
      if deletedByCascade.contains(ObjectIdentifier(object)) {
        cascaded.append(target)
      } else {
        parent.delete(target)
      }
    }
    for target in cascaded where !target.state.contains(.deleted) {
      parent.delete(target)
      guard target.context === parent, target.state.contains(.deleted) else { continue }
      parent.deletedByCascade.insert(ObjectIdentifier(target))
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

  // MARK: Permanent keys

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
      registry.remove(object.key)
      if retainsRegisteredObjects { retainedObjects[object.key] = nil }
      object.become(key, persistentStoreCoordinator?.binding(number: key.store))
      registry.insert(object)
      if retainsRegisteredObjects { retainedObjects[key] = object }
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
      context.inserted.noteKey(of: object)
    } else {
      context.registry.insert(object)
    }
    return object
  }
}
