/// The kind of a change in the history.
public enum NSPersistentHistoryChangeType: Int, Sendable, Hashable, CaseIterable {
  /// The object was inserted.
  case insert = 0
  /// The object was updated.
  case update = 1
  /// The object was deleted.
  case delete = 2
}

/// The kind of a history request's result.
public enum NSPersistentHistoryResultType: Int, Sendable, Hashable, CaseIterable {
  /// Whether the request succeeded.
  case statusOnly = 0
  /// The identifiers of the changed objects.
  case objectIDs = 1
  /// The number of transactions.
  case count = 2
  /// The transactions without their changes.
  case transactionsOnly = 3
  /// The changes without their transactions.
  case changesOnly = 4
  /// The transactions with their changes.
  case transactionsAndChanges = 5
}
