import Foundation

/// The pending changes of this context in the results of its fetches.
extension NSManagedObjectContext {
  /// The pending changes that can alter the result of a fetch.
  struct PendingChanges {
    var inserted: [NSManagedObject] = []
    var updated: [NSManagedObject] = []
    var hasDeletions = false

    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && !hasDeletions }
    /// Deletions leave the order unchanged.
    var needsSorting: Bool { !inserted.isEmpty || !updated.isEmpty }
  }

  func pendingChanges(_ plan: FetchPlan) -> PendingChanges {
    var pending = PendingChanges()
    pending.hasDeletions = unsaved.deleted.objects.contains(where: plan.covers)
    guard plan.includesPendingChanges else {
      pending.hasDeletions = false
      return pending
    }
    pending.inserted = unsaved.inserted.objects.filter(plan.covers)
    // An object of which only to-manys changed may still be a fault; it matches as before.
    pending.updated = unsaved.updated.objects.filter(plan.covers)
    return pending
  }

  /// Whether there are pending changes that can alter the result of a fetch.
  func hasPendingChanges(_ plan: FetchPlan) -> Bool { !pendingChanges(plan).isEmpty }

  /// The plan by which the stores are read where pending changes are merged into the results afterwards.
  ///
  /// The limit is raised by the number of pending changes of stored objects. There is no limit if the results are
  /// sorted by an attribute of related objects, because a pending change of one of those moves unchanged results.
  func openPlan(_ plan: FetchPlan, _ pending: PendingChanges) -> FetchPlan {
    let gone = pending.hasDeletions ? unsaved.deleted.objects.count(where: plan.covers) : 0
    var open = plan
    if plan.sortsByRelated, unsaved.count > 0 { open.limit = 0 }
    // An object with a permanent identifier is inserted again, and may have a row.
    let inserted = pending.inserted.count { !$0.key.isTemporary }
    return open.widened(by: pending.updated.count + gone + inserted)
  }

  /// Merges the pending changes into the objects of the stores' rows.
  func merged(
    _ stored: [NSManagedObject],
    _ pending: PendingChanges,
    _ plan: FetchPlan
  ) -> [NSManagedObject] {
    guard !pending.isEmpty else { return stored }
    readFaults(among: pending, plan)
    var found: Set<NSManagedObject> = []
    var result: [NSManagedObject] = []
    for object in stored where !object.state.contains(.deleted) {
      if object.state.contains(.updated), !matches(object, plan) { continue }
      if object.state.contains(.inserted) { continue }
      result.append(object)
      if object.state.contains(.updated) { found.insert(object) }
    }
    for object in pending.updated where !found.contains(object) {
      if matches(object, plan) { result.append(object) }
    }
    for object in pending.inserted where matches(object, plan) { result.append(object) }
    return result
  }

  /// Reads the rows of the pending objects that are faults, as only to-manys of them changed, with one query.
  private func readFaults(among pending: PendingChanges, _ plan: FetchPlan) {
    guard plan.predicate != nil else { return }
    let faults = pending.updated.filter(\.isFault)
    if !faults.isEmpty { attachRows(to: faults) }
  }

  // MARK: Batches

  /// The most pending objects that are placed among faults.
  ///
  /// Each is compared with some twenty of them, of which each may load a batch.
  static let placedLimit = 64

  /// Places the pending changes among the faults of the stores' rows, which are read only where they are
  /// compared.
  func placed(
    _ pending: PendingChanges,
    among stored: [NSManagedObject],
    _ plan: FetchPlan
  ) -> [NSManagedObject] {
    readFaults(among: pending, plan)
    let changed = Set(pending.updated.filter { matches($0, plan) })
    var found: Set<NSManagedObject> = []
    var (others, moving): ([Placed], [Placed]) = ([], [])
    for (place, object) in stored.enumerated() {
      if object.state.isDisjoint(with: [.inserted, .updated, .deleted]) {
        others.append(Placed(place: place, object: object))
      } else if changed.contains(object) {
        moving.append(Placed(place: place, object: object))
        found.insert(object)
      }
    }
    let more =
      pending.updated.filter { changed.contains($0) && !found.contains($0) }
      + pending.inserted.filter { matches($0, plan) }
    for object in more {
      moving.append(Placed(place: stored.count + moving.count, object: object))
    }
    return merged(others, moving, plan)
  }

  /// An object with its place in the list before it is sorted.
  private struct Placed {
    let place: Int
    let object: NSManagedObject
  }

  /// Merges changed objects into sorted ones; equal ones stay as they were, as where all of them are sorted.
  private func merged(
    _ others: [Placed],
    _ moving: [Placed],
    _ plan: FetchPlan
  ) -> [NSManagedObject] {
    let order = FetchedResultsTracker(plan: plan)
    func precedes(_ left: Placed, _ right: Placed) -> Bool {
      if order.isBefore(left.object, right.object) { return true }
      return !order.isBefore(right.object, left.object) && left.place < right.place
    }
    var result: [NSManagedObject] = []
    result.reserveCapacity(others.count + moving.count)
    var rest = others[...]
    for item in moving.sorted(by: precedes) {
      var (low, high) = (rest.startIndex, rest.endIndex)
      while low < high {
        let middle = (low + high) / 2
        if precedes(item, rest[middle]) { high = middle } else { low = middle + 1 }
      }
      result += rest[..<low].lazy.map(\.object)
      result.append(item.object)
      rest = rest[low...]
    }
    return result + rest.map(\.object)
  }
}

extension FetchPlan {
  /// Whether the order depends on values of related objects.
  var sortsByRelated: Bool {
    sortDescriptors.contains { descriptor in descriptor.sortKey.map { $0.keys.count > 1 } ?? true }
  }
}
