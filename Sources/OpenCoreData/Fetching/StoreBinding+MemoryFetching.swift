extension StoreBinding {
  /// Whether a fetch is answered by filtering and sorting objects, as the store is one in memory
  /// and SQL has no words for it: a predicate or an order in Swift, a transient property.
  ///
  /// A store of the type SQLite refuses such a fetch, even one that has no file.
  func leavesToGraph(_ fetch: RowFetch) -> Bool {
    guard let store = rows as? SQLiteStore, store.type == NSInMemoryStoreType else { return false }
    return !store.translates(fetch)
  }
}

extension SQLiteStore {
  /// Whether a fetch can be said in SQL.
  fileprivate func translates(_ fetch: RowFetch) -> Bool {
    do {
      let statement = try FetchStatement(store: self, request: fetch)
      switch fetch.kind {
      case .rows, .references: _ = try statement.references()
      case .count: _ = try statement.count()
      case .dictionaries(let shape): _ = try DictionaryStatement(statement, shape: shape)
      }
      return true
    } catch {
      return !(error is PredicateNotTranslatable)
    }
  }
}
