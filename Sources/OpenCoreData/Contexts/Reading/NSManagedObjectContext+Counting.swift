import Foundation

/// Counts of matches, which make no object of a row.
///
/// The store counts its rows. Rows of objects that the context has changed are subtracted if they match as stored, and
/// added if they match as changed. For a child context the store is its parent.
extension NSManagedObjectContext {
  /// The number of objects that a request finds.
  func count(_ plan: FetchPlan) throws -> Int {
    processChangesForFetch()
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    if parent == nil, bindings.count == 1, !hasPendingChanges(plan) {
      return try storedCount(plan, bindings[0], limited: true)
    }
    guard bindings.allSatisfy({ countsRows(plan, $0) }) else { return try objects(plan).count }
    return plan.window(count: try matchCount(plan, bindings))
  }

  /// Whether a store answers the fetch of a plan, and for some of its objects, by itself.
  func countsRows(_ plan: FetchPlan, _ binding: StoreBinding) -> Bool {
    !binding.isContextual
      && !binding.leavesToGraph(plan.rowFetch(.count, sorted: false, limited: false))
  }

  /// The number of objects that match in this context, without regard to offset and limit.
  private func matchCount(_ plan: FetchPlan, _ bindings: [StoreBinding]) throws -> Int {
    processChangesForFetch()
    let below =
      try parent.map { parent in
        try parent.performForChild { try parent.matchCount(plan, bindings) }
      } ?? bindings.reduce(0) { try $0 + storedCount(plan, $1, limited: false) }
    let pending = pendingChanges(plan)
    guard !pending.isEmpty else { return below }
    let removed = pending.hasDeletions ? unsaved.deleted.objects.filter(plan.covers) : []
    let replaced = Set((pending.updated + removed).map(\.key))
    // Faults among them are of objects of which only to-manys have changed.
    if plan.predicate != nil { attachRows(to: pending.updated.filter(\.isFault)) }
    let present = (pending.updated + pending.inserted).count { matches($0, plan) }
    return try below - matchCount(below: Array(replaced), plan) + present
  }

  func matches(_ object: NSManagedObject, _ plan: FetchPlan) -> Bool {
    !object.state.contains(.deleted) && plan.predicate?.evaluate(with: object) ?? true
  }

  /// How many of some objects match in the parent, or in the stores.
  private func matchCount(below keys: [ObjectKey], _ plan: FetchPlan) throws -> Int {
    guard !keys.isEmpty else { return 0 }
    if let parent {
      return try parent.performForChild { try parent.matchCount(of: keys, plan) }
    }
    return try storedMatchCount(of: keys, plan)
  }

  /// How many of some objects match in this context.
  private func matchCount(of keys: [ObjectKey], _ plan: FetchPlan) throws -> Int {
    var (unchanged, count): ([ObjectKey], Int) = ([], 0)
    for key in keys.map(lasting) {
      guard let object = registeredObject(key),
        !object.state.isDisjoint(with: [.inserted, .updated, .deleted])
      else {
        unchanged.append(key)
        continue
      }
      if matches(object, plan) { count += 1 }
    }
    return try count + matchCount(below: unchanged, plan)
  }

  // MARK: Stores

  /// The number of objects that match in a store.
  private func storedCount(
    _ plan: FetchPlan,
    _ binding: StoreBinding,
    limited: Bool
  ) throws -> Int {
    guard let store = rows(of: binding) else { return 0 }
    let fetch = plan.rowFetch(.count, sorted: false, limited: limited)
    if binding.leavesToGraph(fetch) { return try evaluated(plan, binding, limited: limited).count }
    guard case .count(let count) = try store.fetch(fetch) else { return 0 }
    return count
  }

  /// How many of some objects match as the stores have them.
  private func storedMatchCount(of keys: [ObjectKey], _ plan: FetchPlan) throws -> Int {
    var count = 0
    try eachPortion(of: keys, plan) { count += try storedCount($0, $1, limited: false) }
    return count
  }

  /// The keys of the objects whose stored rows match.
  func storedMatches(of keys: [ObjectKey], _ plan: FetchPlan) throws -> [ObjectKey] {
    var found: [ObjectKey] = []
    try eachPortion(of: keys, plan) { plan, binding in
      let fetch = plan.rowFetch(.references, sorted: false, limited: false)
      for reference in try rows(of: binding)?.referenceList(fetch) ?? ReferenceList() {
        found.append(ObjectKey(store: binding.number, reference: reference))
      }
    }
    return found
  }

  /// SQLite binds a parameter for each object, of which a statement has a limited number (sqlite.org/limits.html).
  private static let objectsOfOneFetch = 5_000

  /// Passes plans that each find some of the objects, in the store where these are.
  private func eachPortion(
    of keys: [ObjectKey],
    _ plan: FetchPlan,
    _ body: (FetchPlan, StoreBinding) throws -> Void
  ) throws {
    let stored = keys.compactMap { key -> (ObjectKey, ObjectTemplate, StoreBinding)? in
      guard !key.isTemporary, let (template, binding) = template(of: key, for: plan),
        plan.isAffected(binding)
      else { return nil }
      return (key, template, binding)
    }
    for (_, group) in Dictionary(grouping: stored, by: \.0.store) {
      for start in stride(from: 0, to: group.count, by: Self.objectsOfOneFetch) {
        let portion = group[start..<min(start + Self.objectsOfOneFetch, group.count)]
        let identifiers = portion.map { key, template, binding in
          NSManagedObjectID(key: key, binding: binding, template: template)
        }
        var plan = plan
        let isOneOfThem = NSPredicate(format: "SELF IN %@", identifiers)
        plan.predicate = NSCompoundPredicate(
          andPredicateWithSubpredicates: [isOneOfThem] + (plan.predicate.map { [$0] } ?? [])
        )
        try body(plan, group[0].2)
      }
    }
  }
}
