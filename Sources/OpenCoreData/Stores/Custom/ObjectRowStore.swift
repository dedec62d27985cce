/// Rows of a store that an app has written, which is told of objects and not only of rows.
protocol ObjectRowStore: RowStore {
  /// Asks the store for the lasting identifiers of objects that are about to be saved.
  func references(for objects: [NSManagedObject]) throws -> [RowReference]

  /// Has the store save the objects behind the changes, all or none.
  func commit(_ changes: RowChanges, of objects: SavedObjects) throws -> RowCommit
}

/// The objects behind the changes of one store.
struct SavedObjects {
  var inserted: [NSManagedObject] = []
  var updated: [NSManagedObject] = []
  var deleted: [NSManagedObject] = []
  /// Objects that did not change and whose versions are to be compared.
  var locked: [NSManagedObject] = []
}
