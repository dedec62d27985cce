import Foundation

/// Reads of a child context: rows, members and fetches are those of its parent, with the parent's
/// pending changes.
extension NSManagedObjectContext {
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
      return .row(childRow(of: object, key))
    }
  }

  /// It has no value of a transient property, as a row of a store has none.
  private func childRow(of object: NSManagedObject, _ key: ObjectKey) -> Row {
    var values = object.values
    for slot in object.template.transientIndexes { values[slot] = .null }
    return Row(
      reference: key.reference,
      version: object.snapshot?.version ?? 0,
      values: values
    )
  }

  /// An object that a fetch found for a child, with its values where the child asked for them.
  private struct FoundForChild {
    let key: ObjectKey
    let template: ObjectTemplate
    let binding: StoreBinding?
    var row: Row?
  }

  private func found(
    _ plan: FetchPlan,
    withRowsOf needsRow: (ObjectKey) -> Bool
  ) throws -> [FoundForChild] {
    try performForChild {
      let objects = try objects(plan)
      let read = objects.map { needsRow($0.key) }
      attachRows(to: zip(objects, read).filter { $0.1 && $0.0.isFault }.map(\.0))
      return try zip(objects, read).map { object, needsRow in
        let key = object.key
        var found = FoundForChild(key: key, template: object.template, binding: object.binding)
        if needsRow {
          try reportingReadFailure { object.fireIfFault() }
          if !object.state.contains(.deleted) { found.row = childRow(of: object, key) }
        }
        return found
      }
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
      if !unsaved.updated.isEmpty, member.hasLeft(object, toMany: index) {
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
    if !pending.isEmpty { open = openPlan(plan, pendingChanges(plan)) }
    // The parent's lane may look up this context's objects, because this context's lane waits for it.
    let found = try parent.found(open) { key in
      let known = registeredObject(key)
      return known?.isFault ?? true ? !plan.returnsObjectsAsFaults : plan.refreshesObjects
    }
    var objects = found.map { found in
      let object =
        registeredObject(found.key)
        ?? makeFault(found.key, template: found.template, binding: found.binding)
      if let row = found.row { take(row, for: object) }
      return object
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

  /// Gives an object its parent's values; unsaved changes of this context stay.
  private func take(_ row: Row, for object: NSManagedObject) {
    let wasFault = object.isFault
    if !wasFault, object.snapshot.map({ $0.values == row.values }) ?? false { return }
    object.take(row)
    if wasFault, object.template.awakesFromFetch { untracked { object.awakeFromFetch() } }
  }

  private func childChanges(_ plan: FetchPlan) -> [NSManagedObject] {
    guard plan.includesPendingChanges else { return [] }
    return unsaved.objects.filter(plan.covers)
  }
}
