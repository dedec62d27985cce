import Foundation

extension NSManagedObjectContext {
  /// The rows of a store as this context reads them; nil once the store was removed.
  func rows(of binding: StoreBinding) -> (any RowStore)? {
    if isSaving { return newestRows(of: binding) }
    if let pinnedGeneration { return pinnedRows(of: binding, pinnedGeneration) }
    return session(of: binding) ?? newestRows(of: binding)
  }

  /// The newest rows of a store, also if the context is pinned to a query generation.
  func newestRows(of binding: StoreBinding) -> (any RowStore)? {
    guard binding.isContextual else { return binding.rows }
    return incrementalRows(of: binding)
  }

  /// Each context has rows of its own, because an incremental store is passed the context that
  /// asks.
  private func incrementalRows(of binding: StoreBinding) -> IncrementalRows? {
    guard let shared = binding.rows as? IncrementalRows else {
      incrementalRows[binding.number] = nil
      return nil
    }
    if let known = incrementalRows[binding.number] { return known }
    let made = IncrementalRows(connection: shared.connection, context: self)
    incrementalRows[binding.number] = made
    return made
  }

  /// Permanent references of new objects, if the store assigns them itself; otherwise nil.
  func customReferences(
    for objects: [NSManagedObject],
    in binding: StoreBinding
  ) throws -> [RowReference]? {
    guard binding.isCustom, let rows = rows(of: binding) as? any ObjectRowStore else { return nil }
    return try rows.references(for: objects)
  }

  /// Commits a plan to its store.
  func commit(_ plan: SavePlan, to rows: any RowStore) throws -> RowCommit {
    guard plan.binding.isCustom, let rows = rows as? any ObjectRowStore else {
      return try rows.commit(plan.changes)
    }
    if let store = plan.binding.persistentStore, store.isReadOnly { throw store.readOnlyError }
    var objects = plan.objects
    objects.locked = unsaved.conflictChecks.filter { $0.binding === plan.binding }
    return try rows.commit(plan.changes, of: objects)
  }

  /// Notifies an incremental store that this context uses an object.
  func noteRegistered(_ object: NSManagedObject, _ binding: StoreBinding) {
    guard !object.key.isTemporary else { return }
    incrementalRows(of: binding)?.register(object.objectID)
  }

  /// Notifies an incremental store that this context no longer uses an object.
  func noteUnregistered(_ object: NSManagedObject) {
    guard let binding = object.binding, binding.isContextual else { return }
    incrementalRows[binding.number]?.unregister([object.objectID])
  }
}
