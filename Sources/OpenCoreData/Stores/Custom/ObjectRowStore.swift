/// The rows of an app's own store, which needs objects and not only rows.
protocol ObjectRowStore: RowStore {
  /// Obtains permanent identifiers for objects that are about to be saved.
  func references(for objects: [NSManagedObject]) throws -> [RowReference]

  /// Makes the store save the objects of the changes, all or none.
  func commit(_ changes: RowChanges, of objects: SavedObjects) throws -> RowCommit
}

extension ObjectRowStore {
  /// Reads one row at a time from an app's store.
  func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    var result: [RowReference: Row] = [:]
    for reference in references {
      if case .row(let row) = try row(reference) { result[reference] = row }
    }
    return result
  }
}

/// The objects of the changes to one store.
struct SavedObjects {
  var inserted: [NSManagedObject] = []
  var updated: [NSManagedObject] = []
  var deleted: [NSManagedObject] = []
  /// Unchanged objects whose versions are compared.
  var locked: [NSManagedObject] = []
}
