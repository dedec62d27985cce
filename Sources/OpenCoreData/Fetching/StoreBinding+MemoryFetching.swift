extension StoreBinding {
  /// Whether a fetch has to filter and sort objects in memory, because the store is in memory and
  /// SQL can't express it: a predicate or an order in Swift, a transient property.
  ///
  /// A store of the type SQLite refuses such a fetch, even one without a file.
  func leavesToGraph(_ fetch: RowFetch) -> Bool {
    guard let store = rows as? SQLiteStore, store.type == NSInMemoryStoreType else { return false }
    return !store.translates(fetch)
  }
}

extension SQLiteStore {
  /// Whether SQL can express a fetch.
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
