import Foundation

extension NSManagedObjectContext {
  /// The rows of a store as this context may ask for them; nil once the store was removed.
  func rows(of binding: StoreBinding) -> (any RowStore)? {
    if isSaving { return newestRows(of: binding) }
    if let pinnedGeneration { return pinnedRows(of: binding, pinnedGeneration) }
    return session(of: binding) ?? newestRows(of: binding)
  }

  /// The rows of a store as they are now, whatever the context is pinned to.
  func newestRows(of binding: StoreBinding) -> (any RowStore)? {
    guard binding.isContextual else { return binding.rows }
    return incrementalRows(of: binding)
  }

  /// An incremental store is told which context asks, so each context has rows of its own.
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

  /// Lasting references of new objects, where the store itself gives them; else nil.
  func customReferences(
    for objects: [NSManagedObject],
    in binding: StoreBinding
  ) throws -> [RowReference]? {
    guard binding.isCustom, let rows = rows(of: binding) as? any ObjectRowStore else { return nil }
    return try rows.references(for: objects)
  }

  /// Has a store save what a plan says.
  func commit(_ plan: SavePlan, to rows: any RowStore) throws -> RowCommit {
    guard plan.binding.isCustom, let rows = rows as? any ObjectRowStore else {
      return try rows.commit(plan.changes)
    }
    if let store = plan.binding.persistentStore, store.isReadOnly { throw store.readOnlyError }
    var objects = plan.objects
    objects.locked = conflictChecks.filter { $0.binding === plan.binding }
    return try rows.commit(plan.changes, of: objects)
  }

  /// Tells an incremental store that this context uses an object.
  func noteRegistered(_ object: NSManagedObject, _ binding: StoreBinding) {
    guard !object.key.isTemporary else { return }
    incrementalRows(of: binding)?.register(object.objectID)
  }

  /// Tells an incremental store that this context no longer uses an object.
  func noteUnregistered(_ object: NSManagedObject) {
    guard let binding = object.binding, binding.isContextual else { return }
    incrementalRows[binding.number]?.unregister([object.objectID])
  }
}
