/// Rows of a store that an app has written, which is told of objects and not only of rows.
protocol ObjectRowStore: RowStore {
  /// Asks the store for the lasting identifiers of objects that are about to be saved.
  func references(for objects: [NSManagedObject]) throws -> [RowReference]

  /// Has the store save the objects behind the changes, all or none.
  func commit(_ changes: RowChanges, of objects: SavedObjects) throws -> RowCommit
}

extension ObjectRowStore {
  /// An app's store is asked for one row at a time.
  func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    var result: [RowReference: Row] = [:]
    for reference in references {
      if case .row(let row) = try row(reference) { result[reference] = row }
    }
    return result
  }
}

/// The objects behind the changes of one store.
struct SavedObjects {
  var inserted: [NSManagedObject] = []
  var updated: [NSManagedObject] = []
  var deleted: [NSManagedObject] = []
  /// Objects that did not change and whose versions are to be compared.
  var locked: [NSManagedObject] = []
}
