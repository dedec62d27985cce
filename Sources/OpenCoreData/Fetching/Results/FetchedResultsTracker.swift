import Foundation

/// Updates a list of results while objects change, without fetching again.
///
/// A changed object keeps its position if it is still in order there, so that objects with equal
/// sort keys are not shuffled.
struct FetchedResultsTracker {
  let plan: FetchPlan

  struct Outcome {
    var objects: [NSManagedObject]
    /// The objects in the list whose values changed.
    var touched: Set<NSManagedObject>
    /// The objects of the old list that have another position in the new one, or whose sort keys
    /// changed in this turn.
    var displaced: Set<NSManagedObject>
  }

  /// The changes of a turn of the context.
  struct Turn {
    var changed: Set<NSManagedObject> = []
    var deleted: Set<NSManagedObject> = []
    /// Objects that did not change, but may be missing in the list.
    var known: Set<NSManagedObject> = []

    /// Objects that were found for rows of a merge.
    init(known: [NSManagedObject]) {
      self.known = Set(known)
    }

    init(_ userInfo: [AnyHashable: Any]) {
      func objects(_ key: String) -> Set<NSManagedObject> {
        userInfo[key] as? Set<NSManagedObject> ?? []
      }
      deleted = objects(NSDeletedObjectsKey).union(objects(NSInvalidatedObjectsKey))
      changed = objects(NSInsertedObjectsKey).union(objects(NSUpdatedObjectsKey))
        .union(objects(NSRefreshedObjectsKey)).subtracting(deleted)
    }
  }

  /// The list after a turn; nil if the turn does not affect it.
  func list(_ current: inout SectionedResults, after turn: Turn) -> Outcome? {
    var arrivals: [NSManagedObject] = []
    var touched: Set<NSManagedObject> = []
    var gone: Set<NSManagedObject> = []
    for object in turn.deleted where current.index(of: object) != nil { gone.insert(object) }
    func matches(_ object: NSManagedObject) -> Bool {
      object.managedObjectContext != nil && !object.isDeleted
        && plan.predicate?.evaluate(with: object) ?? true
    }
    for object in turn.known where plan.covers(object) {
      if current.index(of: object) == nil, matches(object) { arrivals.append(object) }
    }
    for object in turn.changed where plan.covers(object) {
      switch (current.index(of: object) != nil, matches(object)) {
      case (true, true): touched.insert(object)
      case (true, false): gone.insert(object)
      case (false, true): arrivals.append(object)
      case (false, false): continue
      }
    }
    guard !arrivals.isEmpty || !touched.isEmpty || !gone.isEmpty else { return nil }
    var outcome = Outcome(objects: [], touched: touched, displaced: [])
    let stayed = settled(current.objects.filter { !gone.contains($0) }, &outcome)
    let placed = (arrivals.sorted { $0.key.precedes($1.key) } + outcome.displaced)
      .sorted(using: plan.sortDescriptors) { $0 }
    outcome.objects = merged(stayed, placed)
    outcome.displaced.formUnion(rekeyed(among: touched))
    return outcome
  }

  /// The objects whose own properties that the list is sorted by changed in this turn: they are
  /// reported as moves, also where their positions are as before.
  func rekeyed(among touched: Set<NSManagedObject>) -> Set<NSManagedObject> {
    let names = Set(plan.sortDescriptors.compactMap { $0.sortKey?.keys.first })
    return touched.filter { object in
      object.context != nil && !names.isDisjoint(with: object.namesChangedInTurn)
    }
  }

  /// The members that are still in order; the others are recorded as displaced.
  private func settled(
    _ members: [NSManagedObject],
    _ outcome: inout Outcome
  ) -> [NSManagedObject] {
    guard !outcome.touched.isEmpty else { return members }
    var result: [NSManagedObject] = []
    result.reserveCapacity(members.count)
    var nextUntouched = 0
    for (index, object) in members.enumerated() {
      guard outcome.touched.contains(object) else {
        result.append(object)
        continue
      }
      nextUntouched = max(nextUntouched, index + 1)
      while nextUntouched < members.count, outcome.touched.contains(members[nextUntouched]) {
        nextUntouched += 1
      }
      let followsLast = result.last.map { !isBefore(object, $0) } ?? true
      let precedesNext =
        nextUntouched == members.count || !isBefore(members[nextUntouched], object)
      if followsLast, precedesNext {
        result.append(object)
      } else {
        outcome.displaced.insert(object)
      }
    }
    return result
  }

  /// Merges two sorted lists; of two equal objects the one that was in the list comes first.
  private func merged(
    _ stayed: [NSManagedObject],
    _ placed: [NSManagedObject]
  ) -> [NSManagedObject] {
    guard !placed.isEmpty else { return stayed }
    var result: [NSManagedObject] = []
    result.reserveCapacity(stayed.count + placed.count)
    var rest = stayed[...]
    for object in placed {
      let place = upperBound(of: object, in: rest)
      result += rest[rest.startIndex..<place]
      result.append(object)
      rest = rest[place...]
    }
    return result + rest
  }

  private func upperBound(
    of object: NSManagedObject,
    in list: ArraySlice<NSManagedObject>
  ) -> Int {
    var low = list.startIndex
    var high = list.endIndex
    while low < high {
      let middle = (low + high) / 2
      if isBefore(object, list[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  func isBefore(_ left: NSManagedObject, _ right: NSManagedObject) -> Bool {
    for descriptor in plan.sortDescriptors {
      switch descriptor.compare(left, to: right) {
      case .orderedAscending: return true
      case .orderedDescending: return false
      case .orderedSame: continue
      }
    }
    return false
  }
}

extension ObjectKey {
  /// The order of insertion: saved objects by their keys, then new ones by their creation.
  fileprivate func precedes(_ other: ObjectKey) -> Bool {
    (isTemporary ? 1 : 0, abs(reference.key)) < (
      other.isTemporary ? 1 : 0, abs(other.reference.key)
    )
  }
}
