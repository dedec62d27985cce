import Foundation

extension NSManagedObjectContext {
  /// Makes faults of inserted rows, and adds them to the loaded relationships of their owners.
  ///
  /// Rows that were deleted since are left out: the notification of an insertion may arrive after
  /// that of the deletion, and a history is merged one transaction after the other.
  func mergeInsertions(
    _ keys: [ObjectKey],
    showingToOwners: Bool
  ) -> (new: [NSManagedObject], known: [NSManagedObject]) {
    var insertions: (new: [NSManagedObject], known: [NSManagedObject]) = ([], [])
    for key in keys {
      if let object = registry.object(key) {
        guard object.state.isDisjoint(with: [.inserted, .deleted]) else { continue }
        insertions.known.append(object)
      } else if let binding = persistentStoreCoordinator?.binding(number: key.store),
        let template = binding.template(number: key.reference.entityNumber)
      {
        insertions.new.append(makeFault(key, template: template, binding: binding))
      }
    }
    leaveOutVanished(&insertions)
    let objects = insertions.new + insertions.known
    if isChild {
      // A child's faults have no rows of their own.
      if showingToOwners { showToOwners(objects.map(\.key)) }
    } else {
      for object in objects where object.snapshot != nil {
        invalidateInverses(of: object, before: nil)
      }
    }
    return insertions
  }

  private func leaveOutVanished(
    _ insertions: inout (new: [NSManagedObject], known: [NSManagedObject])
  ) {
    let objects = insertions.new + insertions.known
    guard !objects.isEmpty else { return }
    do {
      let vanished = zip(objects, try haveRows(objects)).filter { !$0.1 }.map(\.0)
      guard !vanished.isEmpty else { return }
      let gone = Set(vanished.map { ObjectIdentifier($0) })
      for object in insertions.new where gone.contains(ObjectIdentifier(object)) { forget(object) }
      insertions.new.removeAll { gone.contains(ObjectIdentifier($0)) }
      insertions.known.removeAll { gone.contains(ObjectIdentifier($0)) }
    } catch {
      // A row that could not be read is not absent.
      couldNotPrefetch("read the rows of a merge", error)
    }
  }

  /// The objects of those rows that a plan finds, without regard to its offset and limit.
  ///
  /// No object is made of other rows, if the store can find the matches; else of a portion at a time. The store
  /// cannot where unsaved changes of this context may decide, as those of an object to which a row refers.
  func matchingObjects(of keys: [ObjectKey], for plan: FetchPlan) throws -> [NSManagedObject] {
    var (stored, others): ([ObjectKey], [ObjectKey]) = ([], [])
    let asksStores =
      !isChild && unsaved.inserted.isEmpty && unsaved.updated.isEmpty
      && unsaved.deleted.isEmpty
    for key in keys {
      guard let (_, binding) = template(of: key, for: plan) else { continue }
      if asksStores, countsRows(plan, binding) { stored.append(key) } else { others.append(key) }
    }
    var result = try existingObjects(of: storedMatches(of: stored, plan), for: plan)
    for start in stride(from: 0, to: others.count, by: Self.rowsOfOnePortion) {
      let portion = others[start..<min(start + Self.rowsOfOnePortion, others.count)]
      result += try existingObjects(of: Array(portion), for: plan).filter { matches($0, plan) }
    }
    return result
  }

  /// The objects of those rows that exist and whose entity a plan fetches.
  private func existingObjects(
    of keys: [ObjectKey],
    for plan: FetchPlan
  ) throws -> [NSManagedObject] {
    let objects = keys.compactMap { key in
      template(of: key, for: plan).map { template, binding in
        makeFault(key, template: template, binding: binding)
      }
    }
    return zip(objects, try haveRows(objects)).filter(\.1).map(\.0)
  }

  /// The template of a key; nil if a plan does not fetch its entity.
  func template(
    of key: ObjectKey,
    for plan: FetchPlan
  ) -> (template: ObjectTemplate, binding: StoreBinding)? {
    guard let binding = persistentStoreCoordinator?.binding(number: key.store),
      let template = binding.template(number: key.reference.entityNumber),
      plan.covers(template.layout)
    else { return nil }
    return (template, binding)
  }

  /// Whether each object is loaded, or has a row in the stores or an object in the parent.
  private func haveRows(_ objects: [NSManagedObject]) throws -> [Bool] {
    if isChild, let parent {
      // The parent's lane may be waiting for this merge, where a handler of its save requested it.
      let faults = objects.filter { $0.state.contains(.fault) }.map(\.key)
      let stored = try storedKeys(faults)
      let others = faults.filter { !stored.contains($0) }
      let held = others.isEmpty ? [] : try parent.holds(others)
      let absent = Set(zip(others, held).filter { !$0.1 }.map(\.0))
      return objects.map { !absent.contains($0.key) }
    }
    try attachRows(to: objects, isSaving: false)
    return objects.map { object in
      object.state.isDisjoint(with: .fault) || object.state.contains(.prefetched)
        // Rows of a contextual store are read one by one, when their objects are.
        || object.binding?.isContextual ?? true
    }
  }

  /// The keys that have rows in the stores.
  private func storedKeys(_ keys: [ObjectKey]) throws -> Set<ObjectKey> {
    var result: Set<ObjectKey> = []
    let permanent = keys.filter { !$0.isTemporary }
    for (store, keys) in Dictionary(grouping: permanent, by: \.store) {
      guard let binding = persistentStoreCoordinator?.binding(number: store),
        !binding.isContextual, let rows = rows(of: binding)
      else { continue }
      let found = try rows.rows(keys.map(\.reference), .uncached)
      for (key, row) in zip(keys, found) where row != nil { result.insert(key) }
    }
    return result
  }

  /// Whether each key has an object here, or could have one; called by a child context.
  private func holds(_ keys: [ObjectKey]) throws -> [Bool] {
    try performForChild {
      let objects = keys.map(ownObject)
      var answers = try haveRows(objects.compactMap(\.self)).makeIterator()
      return objects.map { object in
        guard let object else { return false }
        let hasRow = answers.next() ?? false
        return hasRow && !object.state.contains(.deleted)
      }
    }
  }
}
