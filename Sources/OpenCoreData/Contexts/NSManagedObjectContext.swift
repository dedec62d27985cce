import Effects
import Foundation
import Synchronization

/// The objects that an app reads and changes until it saves them.
///
/// ```swift
/// let context = container.newBackgroundContext()
/// context.transactionAuthor = "import"
/// try await context.perform {
///   for title in ["One", "Two"] {
///     let post = Post(context: context)
///     post.title = title
///   }
///   try context.save()
/// }
/// ```
///
/// A context is used on its own queue: call it inside `perform` or `performAndWait`, or on the main
/// thread where it is a main-queue context.
///
/// A subclass may override what this file declares; the implementations are in the extensions.
open class NSManagedObjectContext: NSObject, @unchecked Sendable {
  // Sendable: confined to its lane. State that other threads need is constant or guarded by `lock`.

  // MARK: State

  /// How the context's work is scheduled.
  public let concurrencyType: NSManagedObjectContextConcurrencyType
  let isChecked = DebugOptions.checksConcurrency
  let lock = NSLock()
  private var guardedLane: Lane?
  private var guardedCoordinator: NSPersistentStoreCoordinator?
  private var guardedParent: NSManagedObjectContext?
  private var guardedAutomaticMerging = false
  private var guardedName: String?

  let registry = ObjectRegistry()
  let handle = WeakHandle<NSManagedObjectContext>()
  /// The commit counter of the context's own coordinator; read for every fault, so kept outside the
  /// lock.
  private(set) final var commits: CommitCounter?
  private(set) final var coordinatorNumber: UInt32 = 0
  /// Whether there is a parent; read for every fault, so kept outside the lock too.
  private(set) final var isChild = false
  final var lastClass: (type: ObjectIdentifier, entity: NSEntityDescription)?
  /// The objects that `retainsRegisteredObjects` keeps in memory.
  final var retainedObjects = RetainedObjects(isOn: false)
  /// The changes that are not saved.
  var unsaved = UnsavedChanges()
  /// What the current turn is doing and has changed.
  final var turnState = TurnState()
  /// The first read that failed since the last save.
  var readFailure: ReadFailure?
  /// Whether a transformable value that this process cannot decode is a failed read, and not nil.
  var refusesUnreadableValues = false
  /// The permanent keys of objects that this context or its children know by their temporary ones.
  var formerKeys = FormerKeys()
  /// Permanent keys that the parent assigned and this context has not taken yet; used by any
  /// thread.
  let permanentKeyQueue = PermanentKeyQueue()
  /// The permanent keys that have not been passed to the children yet.
  var permanentKeys: [(former: Int64, key: ObjectKey)] = []
  var recordsPermanentKeys = false
  /// The child contexts; guarded by the lock.
  private var guardedChildren: [WeakContext] = []
  /// The query generation that the context reads; nil for the newest state.
  var pinnedGeneration: NSQueryGenerationToken?
  /// The rows of incremental stores for this context, by the bindings' numbers.
  var incrementalRows: [Int32: IncrementalRows] = [:]
  /// The last fetches with a batch size, whose faults are loaded a batch at a time.
  var fetchBatches: [FetchBatches] = []
  /// The state that the objects of each entity share.
  var sharedStates = ContextSharedStates()
  /// A reused buffer for the members of one to-many while they are loaded.
  var memberBuffer: [RowMember] = []
  /// Members of relationships that the turn is likely to read again.
  var sharedMembers = SharedMembers()
  /// The session through which the current turn reads one store.
  var readSession: StoreSession?
  var readSessionBinding: StoreBinding?
  /// Whether a save may have changed members of relationships whose owners it does not name, because the app
  /// refreshed an owner, set a primitive value, or a merge policy took edits back; read on any thread.
  let leavesOutOwners = Atomic(false)
  var isSaving = false
  /// The number of saves to the stores that were begun.
  var saveCount = 0
  /// The sets of the save in progress.
  var sets: NotificationSets?
  /// The save on whose objects `didSave()` is being called.
  var saveAnnouncement: SaveAnnouncement?
  /// The turns whose notifications are being posted, the innermost last.
  var announcedTurns = AnnouncedTurns()
  var entitiesByClass: [ObjectIdentifier: NSEntityDescription] = [:]
  /// Nil without an undo manager.
  var undoRecorder: UndoRecorder?
  private var userInfoStorage: NSMutableDictionary?
  /// Nil without observers.
  var observers: ContextObservers?

  /// The manager that records changes so that they can be undone; nil, the default, for no undo.
  ///
  /// Pending changes are registered as one operation when they are processed: at the end of the current block or
  /// event, or when `processPendingChanges()` is called.
  open var undoManager: UndoManager? {
    get { undoRecorder?.manager }
    set {
      guard newValue !== undoRecorder?.manager else { return }
      processPendingChanges()
      undoRecorder = newValue.map { UndoRecorder($0, self) }
    }
  }

  /// The author that the persistent history records for saves of this context.
  open var transactionAuthor: String?
  /// The policy for objects that were changed in the store since they were read: an `NSMergePolicy`.
  open var mergePolicy: Any = NSMergePolicy.error
  /// Whether delete rules are applied at the end of the current event, and not before.
  open var propagatesDeletesAtEndOfEvent = true
  /// Whether a fault whose row was deleted becomes a deleted object; otherwise it is a fatal error.
  ///
  /// **Differs from Core Data:** a store that could not be read does not count as a deleted row,
  /// and raises no exception where this is true. The object stays a fault whose values read as nil,
  /// a relationship stays unloaded and reads as empty, and the context's next save throws the error
  /// once. A change that was lost, such as a value that was set on the fault, fails every save
  /// until `rollback()` or `reset()`.
  open var shouldDeleteInaccessibleFaults = true
  /// The maximum age in seconds of cached values when a fault is loaded; below 0, the default, is
  /// any age, and 0 reads the store each time.
  ///
  /// **Differs from Core Data:** the age counts from when this context last read the object; values
  /// that another context read count as too old.
  open var stalenessInterval: TimeInterval = -1 {
    didSet { if stalenessInterval <= 0 { readTimes = [:] } }
  }
  /// When objects were read, in seconds of uptime; recorded only if a staleness interval is set.
  var readTimes: [ObjectKey: Double] = [:]
  /// The number of read times at which expired ones are dropped.
  var readTimesLimit = NSManagedObjectContext.fewReadTimes
  /// Whether the context retains all its objects.
  open var retainsRegisteredObjects = false {
    didSet {
      // Released after the access: the deinitializer of an object may ask the context.
      let former = retainedObjects
      defer { withExtendedLifetime(former) {} }
      retainedObjects = RetainedObjects(isOn: retainsRegisteredObjects, registry.objects)
    }
  }

  /// Creates a context.
  public init(concurrencyType ct: NSManagedObjectContextConcurrencyType) {
    concurrencyType = ct
    super.init()
    handle.hold(self)
  }

  /// Creates a context of type `confinementConcurrencyType`, for code older than context queues.
  public override convenience init() {
    self.init(concurrencyType: .confinementConcurrencyType)
  }

  /// Creates a context.
  public convenience init(_ type: ConcurrencyType) {
    self.init(concurrencyType: type.rawValue)
  }

  deinit {
    handle.clear()
    for shared in sharedStates.all { shared.leaveContext() }
    // The objects may outlive the context; their references to it and to each other are cleared.
    for object in registry.objects + unsaved.objects {
      object.cutRelationships()
    }
  }

  // MARK: Settings

  /// A name for developers, which the persistent history records with each transaction.
  open var name: String? {
    get { lock.withLock { guardedName } }
    set { lock.withLock { guardedName = newValue } }
  }

  /// A dictionary for the app's own values.
  open var userInfo: NSMutableDictionary {
    if let userInfoStorage { return userInfoStorage }
    let made = NSMutableDictionary()
    userInfoStorage = made
    return made
  }

  /// The coordinator of the stores; a context with a parent uses its parent's.
  open var persistentStoreCoordinator: NSPersistentStoreCoordinator? {
    get { lock.withLock { guardedCoordinator } ?? parent?.persistentStoreCoordinator }
    set {
      precondition(parent == nil, "The context has a parent, so it cannot have a coordinator.")
      lock.withLock { guardedCoordinator = newValue }
      commits = newValue?.commits
      coordinatorNumber = newValue?.number ?? 0
      entitiesByClass = [:]
      lastClass = nil
      newValue?.register(self)
    }
  }

  /// The context that this one saves into.
  open var parent: NSManagedObjectContext? {
    get { lock.withLock { guardedParent } }
    set {
      precondition(
        lock.withLock { guardedCoordinator } == nil,
        "The context has a coordinator, so it cannot have a parent."
      )
      precondition(newValue !== self, "A context cannot be its own parent.")
      lock.withLock { guardedParent = newValue }
      isChild = newValue != nil
      newValue?.adoptChild(self)
    }
  }

  /// The contexts that save into this one.
  var children: [NSManagedObjectContext] {
    lock.withLock { guardedChildren.isEmpty ? [] : guardedChildren.compactMap(\.context) }
  }

  private func adoptChild(_ child: NSManagedObjectContext) {
    lock.withLock {
      guardedChildren.removeAll { $0.context == nil }
      guardedChildren.append(WeakContext(context: child))
    }
  }

  /// Whether saves of the parent, or of other contexts of the coordinator, are merged
  /// automatically.
  open var automaticallyMergesChangesFromParent: Bool {
    get { lock.withLock { guardedAutomaticMerging } }
    set { lock.withLock { guardedAutomaticMerging = newValue } }
  }

  /// The lane on which the context's work runs.
  var lane: Lane {
    // The main lane is the same for all contexts, so it needs no lock.
    if concurrencyType == .mainQueueConcurrencyType { return .main }
    let effects = persistentStoreCoordinator?.effects ?? .live
    return lock.withLock {
      if let guardedLane { return guardedLane }
      // Blocks of an app may block their thread: for a locked store, or for a semaphore that a task
      // signals. On Swift's cooperative pool, which has a thread for each processor, that would
      // stop every task.
      let made = effects.waitingLane(guardedName ?? "NSManagedObjectContext")
      guardedLane = made
      return made
    }
  }

  /// Whether a fault whose row was deleted becomes a deleted object; otherwise it is a fatal error.
  open func shouldHandleInaccessibleFault(
    _ fault: NSManagedObject,
    for oid: NSManagedObjectID,
    triggeredByProperty property: NSPropertyDescription?
  ) -> Bool {
    shouldDeleteInaccessibleFaults
  }

  // MARK: Working on the lane

  /// Enqueues a block on the context's queue and returns immediately.
  open func perform(_ block: @escaping () -> Void) {
    let work = LaneTransfer(block)
    lane.async { self.turn { work.value() } }
  }

  /// Runs a block on the context's queue and waits until it is done.
  ///
  /// A block may call it again. It runs on the calling thread, unless this is a main-queue context.
  ///
  /// On the main thread, a block of a main-queue context is a part of the current event: pending changes are processed
  /// at the event's end, or by a save or fetch.
  ///
  /// **Differs from Core Data:** on any other queue the outermost block ends a turn, as one of `perform(_:)` does:
  /// pending changes are processed and `NSManagedObjectContextObjectsDidChange` is posted when it returns.
  open func performAndWait(_ block: () -> Void) {
    runAndWait(block)
  }

  // MARK: Finding objects

  /// The results of a request whose type is not known.
  open func fetch(_ request: NSFetchRequest<any NSFetchRequestResult>) throws -> [Any] {
    requireLane()
    return try results(of: request)
  }

  /// The number of objects that a request finds.
  open func count(for request: NSFetchRequest<any NSFetchRequestResult>) throws -> Int {
    requireLane()
    return try erasedCount(of: request)
  }

  /// Runs a request other than a fetch or a save.
  ///
  /// It reads and changes the stores, not the objects of this context.
  @discardableResult
  open func execute(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
    try run(request)
  }

  /// The object of an identifier, a fault if it is not registered yet; its row may not exist.
  open func object(with objectID: NSManagedObjectID) -> NSManagedObject {
    knownObjectOrFault(objectID)
  }

  /// The object of an identifier if it is registered; does not read the store.
  open func registeredObject(for objectID: NSManagedObjectID) -> NSManagedObject? {
    knownObject(objectID)
  }

  /// The object of an identifier; throws if its row does not exist.
  ///
  /// An object that the next save deletes is returned: `isDeleted` is true.
  open func existingObject(with objectID: NSManagedObjectID) throws -> NSManagedObject {
    try objectWithRow(objectID)
  }

  /// The registered objects that are still in memory.
  open var registeredObjects: Set<NSManagedObject> {
    requireLane()
    return Set(registry.objects).union(unsaved.inserted.objects)
  }

  // MARK: Changing objects

  /// The objects that the next save inserts.
  open var insertedObjects: Set<NSManagedObject> {
    requireLane()
    return unsaved.inserted.set
  }

  /// The objects with changes that the next save writes.
  open var updatedObjects: Set<NSManagedObject> {
    requireLane()
    return unsaved.updated.set
  }

  /// The objects that the next save deletes.
  open var deletedObjects: Set<NSManagedObject> {
    requireLane()
    return unsaved.deleted.set
  }

  /// Whether there are unsaved changes.
  open var hasChanges: Bool {
    requireLane()
    return hasUnsavedChanges
  }

  /// Inserts an object that has no context yet.
  open func insert(_ object: NSManagedObject) {
    insert(object, awakes: true)
  }

  /// Marks an object for deletion; its delete rules are applied when pending changes are processed.
  open func delete(_ object: NSManagedObject) {
    markDeleted(object)
  }

  /// Chooses the store of an object that has never been saved.
  open func assign(_ object: Any, to store: NSPersistentStore) {
    chooseStore(store, for: object)
  }

  /// Turns an object into a fault, or updates its values and keeps its unsaved changes.
  open func refresh(_ object: NSManagedObject, mergeChanges flag: Bool) {
    refreshObject(object, mergeChanges: flag)
  }

  /// Turns all objects without changes into faults, and refreshes the others.
  open func refreshAllObjects() {
    refreshRegisteredObjects()
  }

  /// Compares an object with its row at the next save, even if it has no changes.
  ///
  /// If the row was changed or deleted since it was read, the save asks the merge policy to resolve
  /// the conflict. Objects with changes are always compared.
  open func detectConflicts(for object: NSManagedObject) {
    checkConflicts(of: object)
  }

  /// Merges the changes that another context has saved.
  ///
  /// Outside of this context's `perform`, the calling thread enters its queue, and waits for a block that runs
  /// there. Such a block must not wait in turn for the calling thread, as with a semaphore or with
  /// `DispatchQueue.main.sync`: both would wait forever. A handler of a save's notification can call it in
  /// `perform(_:)` of this context, which does not wait.
  ///
  /// **Differs from Core Data:** an object that the other context deleted leaves this one with the merge, after the
  /// handlers of its notifications have seen it as deleted. There it stays among `deletedObjects`, and `hasChanges`
  /// is true, until this context is saved.
  open func mergeChanges(fromContextDidSave notification: Notification) {
    mergeSave(notification)
  }

  /// Applies delete rules and notifies observers of the pending changes.
  open func processPendingChanges() {
    processTurn()
  }

  // MARK: Saving and dropping

  /// Assigns permanent identifiers to objects before they are saved.
  open func obtainPermanentIDs(for objects: [NSManagedObject]) throws {
    try assignPermanentIDs(for: objects)
  }

  /// Saves the changes: to the stores, or to the parent where there is one.
  ///
  /// Each store is written in one transaction. Nothing is written if validation fails, or if rows
  /// were changed since they were read and the merge policy does not resolve the conflict.
  open func save() throws {
    try saveChanges()
  }

  /// Undoes the changes of the last undo group, or the changes since it was closed.
  ///
  /// It does nothing without an undo manager. Deleted objects are restored with their identifiers;
  /// if the deletion was saved, they are inserted again.
  open func undo() {
    requireLane()
    processPendingChanges()
    undoManager?.undo()
    processPendingChanges()
  }

  /// Redoes the last undone changes.
  open func redo() {
    requireLane()
    processPendingChanges()
    undoManager?.redo()
    processPendingChanges()
  }

  /// Discards all unsaved changes.
  open func rollback() {
    dropUnsavedChanges()
  }

  /// Forgets all objects; unsaved changes are lost.
  open func reset() {
    forgetAllObjects()
  }
}
