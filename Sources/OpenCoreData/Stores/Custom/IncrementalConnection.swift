import Foundation

/// The shared state of one incremental store for all contexts: its entities, its lock, its
/// observers.
final class IncrementalConnection: @unchecked Sendable {
  // Sendable: `lock` guards the mutable state, and the store is called with it held.

  let entities: CustomStoreEntities
  private weak var store: NSIncrementalStore?
  private let lock = NSRecursiveLock()
  private var observers: [@Sendable (StoreCommit) -> Void] = []

  init(store: NSIncrementalStore, entities: CustomStoreEntities) {
    self.store = store
    self.entities = entities
  }

  /// Calls the store; the calls are serialized.
  func withStore<Result>(
    _ body: (NSIncrementalStore, StoreBinding) throws -> Result
  ) throws -> Result {
    try lock.withLock {
      guard let store, let binding = store.binding else {
        throw CoreDataError.make(
          NSPersistentStoreOperationError,
          "The store was removed from its coordinator."
        )
      }
      return try body(store, binding)
    }
  }

  func observe(_ observer: @escaping @Sendable (StoreCommit) -> Void) {
    lock.withLock { observers.append(observer) }
  }

  func announce(_ commit: StoreCommit) {
    for observer in lock.withLock({ observers }) { observer(commit) }
  }
}
