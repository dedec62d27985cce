import Effects
import Foundation
import Synchronization

/// Brings contexts and stores together.
///
/// ```swift
/// let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
/// let store = try coordinator.addPersistentStore(type: .sqlite, at: storeURL)
///
/// let context = NSManagedObjectContext(.privateQueue)
/// context.persistentStoreCoordinator = coordinator
/// ```
open class NSPersistentStoreCoordinator: NSObject, @unchecked Sendable {
  // Sendable: `lock` guards all mutable state.

  /// The model of the objects.
  public let managedObjectModel: NSManagedObjectModel
  /// The effects of the coordinator and of its contexts.
  package let effects: Effects
  private let lock = NSRecursiveLock()
  private var guardedBindings: [StoreBinding] = []
  private var stores: [NSPersistentStore] = []
  private var contexts: [NSManagedObjectContext.WeakContext] = []
  private var guardedName: String?
  /// Above 0, and used by no other coordinator of the process.
  let number = NSPersistentStoreCoordinator.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  /// Counts the commits to all of the stores.
  let commits = CommitCounter()
  private let lane: Lane

  private static let lastNumber = Atomic<UInt32>(0)

  /// Creates a coordinator for a model, which cannot be changed from now on.
  public required convenience init(managedObjectModel model: NSManagedObjectModel) {
    self.init(managedObjectModel: model, effects: .live)
  }

  /// Creates a coordinator for a model without entities.
  public override convenience init() {
    self.init(managedObjectModel: NSManagedObjectModel())
  }

  /// Creates a coordinator with other effects than the system's.
  package init(managedObjectModel model: NSManagedObjectModel, effects: Effects) {
    managedObjectModel = model
    self.effects = effects
    // Blocks of apps may wait for a disk, or for tasks of the pool.
    lane = effects.waitingLane("NSPersistentStoreCoordinator")
    super.init()
    ManagedObjectModels.register(model)
  }

  /// A name for use in debugging.
  open var name: String? {
    get { lock.withLock { guardedName } }
    set { lock.withLock { guardedName = newValue } }
  }

  /// The stores in the order in which they were added.
  open var persistentStores: [NSPersistentStore] { lock.withLock { stores } }

  // MARK: Bindings

  /// The number of commits to all of the stores.
  var commitCount: UInt32 { commits.value }

  var bindings: [StoreBinding] { lock.withLock { guardedBindings } }

  func binding(number: Int32) -> StoreBinding? {
    lock.withLock { guardedBindings.first { $0.number == number } }
  }

  func binding(identifier: String) -> StoreBinding? {
    lock.withLock { guardedBindings.first { $0.identifier == identifier } }
  }

  func binding(of store: NSPersistentStore) -> StoreBinding? {
    lock.withLock { guardedBindings.first { $0.persistentStore === store } }
  }

  func holds(_ binding: StoreBinding) -> Bool {
    lock.withLock { guardedBindings.contains { $0 === binding } }
  }

  /// The stores that may hold objects of an entity or of its subentities.
  func bindings(of entity: NSEntityDescription) throws -> [StoreBinding] {
    let all = bindings
    if all.count == 1 { return all }
    return all.filter { $0.holdsAny(of: entity) }
  }

  /// The first store that can hold new objects of an entity.
  func binding(forInsertionOf entity: NSEntityDescription) -> StoreBinding? {
    bindings.first { $0.holds(entity) && !($0.persistentStore?.isReadOnly ?? true) }
  }

  /// The identifier of a row in one of the coordinator's stores.
  package func objectID(
    _ store: NSPersistentStore,
    _ reference: RowReference
  ) -> NSManagedObjectID? {
    guard let binding = binding(of: store),
      let template = binding.template(number: reference.entityNumber)
    else { return nil }
    return NSManagedObjectID(
      key: ObjectKey(store: binding.number, reference: reference),
      binding: binding,
      template: template
    )
  }

  /// The SQLite store in a file; without a URL, the only SQLite store.
  package func sqliteStore(for url: URL? = nil) -> SQLiteStore? {
    let found = persistentStores.compactMap { $0 as? SQLiteStore }
    guard let url else { return found.count == 1 ? found[0] : nil }
    return found.first { $0.url?.standardizedFileURL == url.standardizedFileURL }
  }

  // MARK: Adding and removing

  /// Adds a store that is open already.
  package func add(_ store: any NSPersistentStore & RowStore) {
    add(StoreBinding(store: store, rows: store, model: managedObjectModel), of: store)
  }

  /// Adds a store of an app's own class that has been loaded.
  func add(_ store: any CustomStore, _ binding: StoreBinding) {
    binding.takeIdentifier()
    add(binding, of: store)
  }

  private func add(_ binding: StoreBinding, of store: NSPersistentStore) {
    lock.withLock {
      guardedBindings.append(binding)
      binding.holder.store(number, ordering: .relaxed)
      stores.append(store)
    }
    store.didAdd(to: self)
    observeCommits(of: binding)
    postStoresDidChange(NSAddedPersistentStoresKey, store)
  }

  func observeCommits(of binding: StoreBinding) {
    // The closure has the binding's number: a weak reference would slow down every object that has the binding.
    binding.rows?.observeCommits { [weak self, number = binding.number] commit in
      guard let self, let binding = self.binding(number: number) else { return }
      storeDidCommit(commit, binding)
    }
  }

  /// Replaces a store with another.
  ///
  /// The binding, and with it all identifiers, is kept if the rows have the same entity numbers and
  /// keys.
  ///
  /// The caller stops all writes to the old store; it calls ``postExchange(of:for:)`` when writes
  /// continue.
  func exchange(
    _ old: NSPersistentStore,
    _ binding: StoreBinding,
    for new: NSPersistentStore,
    _ opened: StoreBinding
  ) {
    old.willRemove(from: self)
    let formerRows = binding.rows
    let keepsKeys = opened.numbersRows(as: binding)
    if keepsKeys { binding.takeOver(opened) } else { opened.takeIdentifier() }
    lock.withLock {
      stores = stores.map { $0 === old ? new : $0 }
      if !keepsKeys {
        guardedBindings = guardedBindings.map { $0 === binding ? opened : $0 }
        opened.holder.store(number, ordering: .relaxed)
      }
    }
    if !keepsKeys { binding.detach() }
    new.didAdd(to: self)
    observeCommits(of: keepsKeys ? binding : opened)
    (old as? SQLiteStore)?.close()
    (formerRows as? AtomicRows)?.close()
  }

  /// Posted before a store is copied and exchanged, while handlers can still save to it.
  func postExchangeWillBegin(with old: NSPersistentStore) {
    NotificationCenter.default.post(
      name: .NSPersistentStoreCoordinatorWillRemoveStore,
      object: old
    )
  }

  func postExchange(of old: NSPersistentStore, for new: NSPersistentStore) {
    NotificationCenter.default.post(
      name: .NSPersistentStoreCoordinatorStoresDidChange,
      object: self,
      userInfo: [
        NSAddedPersistentStoresKey: [new], NSRemovedPersistentStoresKey: [old],
        NSUUIDChangedPersistentStoresKey: [old, new],
      ]
    )
  }

  /// Removes a store; its objects can no longer be loaded or saved.
  ///
  /// The contexts forget the objects, without their values, and post `NSManagedObjectContextObjectsDidChange`
  /// with `NSInvalidatedAllObjectsKey`, or with `NSInvalidatedObjectsKey` where they have objects of other stores
  /// too: at once on the thread that removes the store if it works on the context's queue, and on the queue
  /// otherwise.
  ///
  /// **Differs from Core Data:** objects with changes stay, so that the next save throws an error instead of
  /// losing the changes; they leave with `rollback()` or `reset()`. A context of `confinementConcurrencyType` keeps all.
  open func remove(_ store: NSPersistentStore) throws {
    guard let binding = binding(of: store) else {
      throw CoreDataError.make(
        NSPersistentStoreOperationError,
        "The store \(store.url?.path ?? "") does not belong to this coordinator."
      )
    }
    NotificationCenter.default.post(
      name: .NSPersistentStoreCoordinatorWillRemoveStore,
      object: store
    )
    store.willRemove(from: self)
    lock.withLock {
      guardedBindings.removeAll { $0 === binding }
      binding.holder.store(0, ordering: .relaxed)
      stores.removeAll { $0 === store }
    }
    binding.detach()
    (store as? SQLiteStore)?.close()
    for context in rootContexts { context.storeWasRemoved(binding) }
    postStoresDidChange(NSRemovedPersistentStoresKey, store)
  }

  private func postStoresDidChange(_ key: String, _ store: NSPersistentStore) {
    NotificationCenter.default.post(
      name: .NSPersistentStoreCoordinatorStoresDidChange,
      object: self,
      userInfo: [key: [store]]
    )
  }

  // MARK: Contexts

  func register(_ context: NSManagedObjectContext) {
    lock.withLock {
      contexts.removeAll { $0.context == nil || $0.context === context }
      contexts.append(NSManagedObjectContext.WeakContext(context: context))
    }
  }

  private var rootContexts: [NSManagedObjectContext] {
    lock.withLock { contexts.compactMap(\.context) }.filter { $0.parent == nil }
  }

  private var mergingContexts: [NSManagedObjectContext] {
    rootContexts.filter(\.automaticallyMergesChangesFromParent)
  }

  /// Called on the committing thread after each commit to a store, by a context or another writer.
  private func storeDidCommit(_ commit: StoreCommit, _ binding: StoreBinding) {
    commits.increment()
    // Contexts announce their own saves, after they have taken the new rows themselves.
    guard !commit.isContextSave, commit.mergesIntoContexts else { return }
    let rows = changedRows(binding, commit.inserted, commit.updated, commit.deleted)
    for context in mergingContexts { context.enqueueMerge(rows) }
  }

  /// Called by a context after its save; `beside` are rows that the commit changed beside those of the
  /// context.
  func contextDidSave(
    _ saved: NSManagedObjectContext,
    _ binding: StoreBinding,
    _ changes: RowChanges,
    and beside: [RowReference]
  ) {
    let others = mergingContexts.filter { $0 !== saved }
    guard !others.isEmpty else { return }
    var rows = changedRows(
      binding,
      changes.inserted.map(\.reference),
      changes.updated.map(\.reference) + beside,
      changes.deleted.map(\.reference)
    )
    rows.reportsOwners = changes.haveOwnersOfAll
    for context in others { context.enqueueMerge(rows) }
  }

  private func changedRows(
    _ binding: StoreBinding,
    _ inserted: [RowReference],
    _ updated: [RowReference],
    _ deleted: [RowReference]
  ) -> ChangedRows {
    func keys(_ references: [RowReference]) -> [ObjectKey] {
      references.map { ObjectKey(store: binding.number, reference: $0) }
    }
    return ChangedRows(inserted: keys(inserted), updated: keys(updated), deleted: keys(deleted))
  }

  // MARK: Identifiers

  /// The identifier that a URL represents; nil if the URL belongs to none of the stores.
  open func managedObjectID(forURIRepresentation url: URL) -> NSManagedObjectID? {
    guard url.scheme == "x-coredata", let host = url.host, !host.isEmpty else { return nil }
    let parts = url.pathComponents.filter { $0 != "/" }
    // Hosts are compared without case: Foundation may change them to lower case.
    guard parts.count == 2, parts[1].hasPrefix("p"),
      let binding = bindings.first(where: {
        $0.identifier.caseInsensitiveCompare(host) == .orderedSame
      }),
      let key = binding.key(named: String(parts[1].dropFirst())),
      let entity = managedObjectModel.entitiesByName[parts[0]]
    else { return nil }
    let template = ObjectTemplate.of(entity)
    guard let number = try? binding.number(of: template) else { return nil }
    return NSManagedObjectID(
      key: ObjectKey(
        store: binding.number,
        reference: RowReference(entityNumber: number, key: key)
      ),
      binding: binding,
      template: template
    )
  }

  /// The identifier that a URL's text stands for.
  open func managedObjectID(for string: String) -> NSManagedObjectID? {
    URL(string: string).flatMap { managedObjectID(forURIRepresentation: $0) }
  }

  // MARK: Performing

  /// Enqueues a block on the coordinator's queue and returns at once.
  public func perform(_ block: @escaping () -> Void) {
    let work = LaneTransfer(block)
    lane.async { work.value() }
  }

  /// Runs a block on the coordinator's queue and waits until it is done.
  public func performAndWait(_ block: () -> Void) {
    lane.sync(block)
  }

  /// Runs a block on the coordinator's queue and returns its result.
  @discardableResult
  public func performAndWait<T>(_ block: () throws -> T) rethrows -> T {
    try lane.sync(block)
  }

  /// Runs a block on the coordinator's queue and suspends until it is done.
  @discardableResult
  nonisolated(nonsending) public func perform<T, Failure: Error>(
    _ block: @escaping () throws(Failure) -> T
  ) async throws(Failure) -> T {
    let work = LaneTransfer(block)
    let lane = lane
    let done = await withCheckedContinuation {
      (continuation: CheckedContinuation<LaneTransfer<Result<T, Failure>>, Never>) in
      lane.async { continuation.resume(returning: LaneTransfer(Result(catching: work.value))) }
    }
    return try done.value.get()
  }
}

/// Counts commits without a lock.
///
/// It is apart from the coordinator, so that contexts can check whether their rows are old without
/// a reference to the coordinator.
final class CommitCounter: Sendable {
  private let count = Atomic<UInt32>(0)

  var value: UInt32 { count.load(ordering: .relaxed) }

  func increment() {
    count.wrappingAdd(1, ordering: .relaxed)
  }
}

extension NSNotification.Name {
  /// Posted after stores were added to or removed from a coordinator.
  public static let NSPersistentStoreCoordinatorStoresDidChange = NSNotification.Name(
    "NSPersistentStoreCoordinatorStoresDidChangeNotification"
  )
  /// Never posted: Core Data announced with it that iCloud exchanges a store, which it no longer does.
  ///
  /// `NSPersistentStoreCoordinatorWillRemoveStore` is posted before a store is removed or exchanged.
  public static let NSPersistentStoreCoordinatorStoresWillChange = NSNotification.Name(
    "NSPersistentStoreCoordinatorStoresWillChangeNotification"
  )
  /// Posted before a store is removed from its coordinator.
  public static let NSPersistentStoreCoordinatorWillRemoveStore = NSNotification.Name(
    "NSPersistentStoreCoordinatorWillRemoveStoreNotification"
  )
}
