import Foundation

/// Contexts that save into another context.
///
/// A child reads rows that are made of its parent's objects, changes that wait there included, and
/// its saves change the parent's objects. The stores learn of it when the parent is saved.
extension NSManagedObjectContext {
  func adoptChild(_ child: NSManagedObjectContext) {
    performAndWait {
      children.removeAll { $0.context == nil }
      children.append(WeakContext(context: child))
    }
  }

  /// Tells those children that want to know of what this context has now; on this context's lane.
  func tellChildren(_ changes: ChangedObjects, except source: NSManagedObjectContext? = nil) {
    guard !children.isEmpty else { return }
    let rows = ChangedRows(
      inserted: changes.inserted.map(\.key),
      updated: changes.updated.map(\.key) + changes.refreshed.map(\.key),
      deleted: changes.deleted.map(\.key)
    )
    for child in children.compactMap(\.context)
    where child !== source && child.automaticallyMergesChangesFromParent {
      child.enqueueMerge(rows)
    }
  }

  // MARK: The parent's side

  /// The object of a key, whatever its state; called on this context's lane.
  private func ownObject(_ key: ObjectKey) -> NSManagedObject? {
    if let known = registeredObject(key) { return known }
    if key.isTemporary {
      // It may be a change of a parent further up.
      return parent.flatMap { _ in faultOfParent(key) }
    }
    guard let binding = persistentStoreCoordinator?.binding(number: key.store),
      let template = binding.template(number: key.reference.entityNumber)
    else { return nil }
    return makeFault(key, template: template, binding: binding)
  }

  /// A row made of an object's values as they are here now.
  func rowForChild(_ key: ObjectKey) -> Row? {
    performAndWait {
      guard let object = ownObject(key), !object.state.contains(.deleted) else { return nil }
      object.fireIfFault()
      guard !object.state.contains(.deleted) else { return nil }
      return Row(
        reference: key.reference,
        version: object.snapshot?.version ?? 0,
        values: object.values
      )
    }
  }

  // MARK: The child's side

  /// An object that the parent has not saved yet, as a fault.
  func faultOfParent(_ key: ObjectKey) -> NSManagedObject? {
    guard let parent else { return nil }
    let template = parent.performAndWait { parent.ownObject(key)?.template }
    return template.map { makeFault(key, template: $0, binding: nil) }
  }

  func fulfillToManyFromParent(at index: Int, of object: NSManagedObject) {
    guard let parent else { return }
    let key = object.key
    let members = parent.performAndWait {
      parent.ownObject(key).map { own in
        own.loadedToMany(at: index).members.items.map { ($0.key, $0.template, $0.binding) }
      } ?? []
    }
    object.toManyStorage(at: index).load(
      members.map { key, template, binding in
        registeredObject(key) ?? makeFault(key, template: template, binding: binding)
      }
    )
  }

  func objects(_ plan: FetchPlan, from parent: NSManagedObjectContext) throws -> [NSManagedObject] {
    var open = plan
    let pending = childChanges(plan)
    if !pending.isEmpty {
      open.limit = 0
      open.offset = 0
    }
    let found = try parent.performAndWait {
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

  /// Passes the changes to the parent, which keeps them until it is saved itself.
  func save(into parent: NSManagedObjectContext) throws {
    try validateForParent()
    parent.performAndWait {
      var own: [ObjectIdentifier: NSManagedObject] = [:]
      for object in inserted.objects {
        let made = object.template.type.make(
          entity: object.template.layout.entity,
          in: parent,
          key: object.key
        )
        own[ObjectIdentifier(object)] = made
      }
      for object in updated.objects {
        own[ObjectIdentifier(object)] = parent.ownObject(object.key)
      }
      func counterpart(_ object: NSManagedObject) -> NSManagedObject? {
        own[ObjectIdentifier(object)] ?? parent.ownObject(object.key)
      }
      for object in inserted.objects + updated.objects {
        guard let target = own[ObjectIdentifier(object)] else { continue }
        push(object, into: target, counterpart)
      }
      for object in deleted.objects where !object.state.contains(.vanished) {
        if let target = parent.ownObject(object.key) { parent.delete(target) }
      }
      parent.processPendingChanges()
    }
    let changes = clearSavedChanges()
    for object in changes.inserted + changes.updated { rebaseOnParent(object) }
    for object in changes.inserted { object.didSave() }
    for object in changes.updated { object.didSave() }
    for object in changes.deleted { object.didSave() }
    isSaving = false
    for object in changes.inserted { registry.insert(object) }
    postSave(changes)
    tellChildren(changes)
    parent.performAndWait { parent.tellChildren(changes, except: self) }
    for object in changes.deleted { forget(object) }
  }

  private func validateForParent() throws {
    var failures: [NSError] = []
    func collect(_ body: () throws -> Void) {
      do { try body() } catch { failures.append(error as NSError) }
    }
    for object in deleted.objects { collect { try object.validateForDelete() } }
    for object in inserted.objects { collect { try object.validateForInsert() } }
    for object in updated.objects where !object.state.contains(.fault) {
      collect { try object.validateForUpdate() }
    }
    try ValidationError.raise(failures)
  }

  private func push(
    _ object: NSManagedObject,
    into target: NSManagedObject,
    _ counterpart: (NSManagedObject) -> NSManagedObject?
  ) {
    let layout = object.template.layout
    for slot in object.changed.slots {
      if slot < layout.attributes.count {
        target.fireIfFault()
        if layout.attributes[slot].holdsObjects {
          target.setAttributeValue(object.attributeValue(at: slot), at: slot)
        } else {
          target.setRowValue(object.value(at: slot), at: slot)
        }
      } else {
        let index = slot - layout.attributes.count
        target.setToOne(object.toOne(at: index).flatMap(counterpart), at: index)
      }
    }
    for index in object.changedToManys.slots {
      let members = object.loadedToMany(at: index).members.items.filter {
        !$0.state.contains(.deleted)
      }
      target.setToMany(members.compactMap(counterpart), at: index)
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
  }
}

extension NSManagedObject {
  /// Creates a parent's object for one that a child inserted; both have one key.
  static func make(
    entity: NSEntityDescription,
    in context: NSManagedObjectContext,
    key: ObjectKey
  ) -> NSManagedObject {
    let object = make(entity: entity, in: context, awakes: false)
    object.key = key
    object.identifier = nil
    if !key.isTemporary {
      object.binding = context.persistentStoreCoordinator?.binding(number: key.store)
      context.registry.insert(object)
    }
    return object
  }
}
