import Foundation

/// Rows that a save changes indirectly, besides the rows of its own objects.
///
/// They referred to a row that the save deletes, or have derived attributes that its triggers
/// compute. A context that does not learn of them conflicts with its own coordinator at its next
/// save.
extension NSManagedObjectContext {
  func indirectlyChangedRows(_ plan: SavePlan, _ commit: RowCommit) -> [RowReference] {
    let (inserted, updated) = (plan.changes.inserted, plan.changes.updated)
    guard commit.rows.count > inserted.count + updated.count else { return [] }
    let own = Set(inserted.map(\.reference) + updated.map(\.reference))
    return commit.rows.map(\.reference).filter { !own.contains($0) }
  }

  /// Refreshes the objects of indirectly changed rows, and returns an object for each row.
  func refreshRows(_ indirect: [(StoreBinding, [RowReference])]) -> [NSManagedObject] {
    var keys: [ObjectKey] = []
    var objects: [NSManagedObject] = []
    for (binding, rows) in indirect {
      for reference in rows {
        let key = ObjectKey(store: binding.number, reference: reference)
        if registry.object(key) != nil { keys.append(key) }
        if let object = object(for: reference, binding) { objects.append(object) }
      }
    }
    guard !keys.isEmpty else { return objects }
    var changes = ChangedObjects()
    var unannounced = UnannouncedRows()
    changes.refreshed = mergeUpdates(keys, &unannounced)
    NotificationCenter.default.post(
      name: .NSManagedObjectContextObjectsDidChange,
      object: self,
      userInfo: changes.userInfo
    )
    return objects
  }
}
