/// A view of a SQLite store that has reads of its own; its keys, layouts and writes are the store's.
///
/// No read is forwarded: each view decides from which transaction it reads.
protocol ForwardingRowStore: RowStore {
  var store: SQLiteStore { get }
}

extension ForwardingRowStore {
  func number(of entity: NSEntityDescription) throws -> Int32 { try store.number(of: entity) }

  func layout(number: Int32) -> EntityLayout? { store.layout(number: number) }

  func reserveKeys(for entity: NSEntityDescription, count: Int) throws -> Range<Int64> {
    try store.reserveKeys(for: entity, count: count)
  }

  func commit(_ changes: RowChanges) throws -> RowCommit { try store.commit(changes) }

  func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit {
    try store.commit(changes, announcements, before: rest)
  }

  func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void) {
    store.observeCommits(observer)
  }
}
