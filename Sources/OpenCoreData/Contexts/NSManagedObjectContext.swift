import Effects
import Foundation

/// A space in which an app works with objects until it saves them.
///
/// A context is used on its own lane: call it inside `perform` or `performAndWait`, or on the main
/// thread where it is a main-queue context.
///
/// A subclass may override what this file declares; what a method does stands in the extensions.
open class NSManagedObjectContext: NSObject, @unchecked Sendable {
  // Sendable: confined to its lane. What other threads need of it is constant or guarded by `lock`.

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
  /// Of the context's own coordinator: found at every fault, so kept apart from the lock.
  private(set) final var commits: CommitCounter?
  private(set) final var coordinatorNumber: UInt32 = 0
  /// Whether there is a parent; asked at every fault, so kept apart from the lock too.
  private(set) final var isChild = false
  /// The same as `retainsRegisteredObjects`, which subclasses may override: asked for each object.
  private(set) final var keepsObjects = false
  final var lastClass: (type: ObjectIdentifier, entity: NSEntityDescription)?
  var retainedObjects: [ObjectKey: NSManagedObject] = [:]
  var inserted = TrackedObjects()
  var updated = TrackedObjects()
  var deleted = TrackedObjects()
  /// What this turn touched, in order.
  var touched: [NSManagedObject] = []
  /// What was deleted and has not passed its delete rules on yet.
  var unpropagated: [NSManagedObject] = []
  /// Stores that the app chose for new objects.
  var assignments: [ObjectIdentifier: StoreBinding] = [:]
  /// Objects whose rows another context deleted and this save writes again.
  var reinserted: [NSManagedObject] = []
  /// What keeps the delete rules of some objects waiting.
  var deletionFailure: ReadFailure?
  /// The first read that failed since the last save.
  var readFailure: ReadFailure?
  /// Objects that the app wants compared with the store at the next save.
  var conflictChecks: [NSManagedObject] = []
  /// The lasting keys of objects that this context or its children know by their temporary ones.
  var formerKeys = FormerKeys()
  /// Lasting keys that the parent gave out and this context has yet to take, from any thread.
  let arrivingKeys = ArrivingKeys()
  /// Those of them that the children have not been told of.
  var lastingKeys: [(former: Int64, key: ObjectKey)] = []
  var notesLastingKeys = false
  /// The contexts that save into this one; guarded by the lock.
  private var guardedChildren: [WeakContext] = []
  /// What the context reads instead of what is newest.
  var pinnedGeneration: NSQueryGenerationToken?
  /// The rows of incremental stores as this context asks for them, by the bindings' numbers.
  var incrementalRows: [Int32: IncrementalRows] = [:]
  /// The last fetches with a batch size, whose faults load a batch at a time.
  var fetchBatches: [FetchBatches] = []
  /// What the objects of each entity have in common.
  var homes = ContextHomes()
  /// Memory for the members of one to-many while they are loaded.
  var memberBuffer: [RowMember] = []
  /// What a turn is likely to meet again.
  var sharedMembers = SharedMembers()
  /// What the current turn reads a store through, and which store that is.
  var readSession: StoreSession?
  var readSessionBinding: StoreBinding?
  var performDepth = 0
  var isSaving = false
  /// The sets of the save that is going on.
  var sets: NotificationSets?
  var isProcessing = false
  var isTurnScheduled = false
  /// Above 0 while changes are none of the app's, such as those in `awakeFromFetch()`.
  var untrackedDepth = 0
  var entitiesByClass: [ObjectIdentifier: NSEntityDescription] = [:]
  /// There with an undo manager alone.
  var undoRecorder: UndoRecorder?
  private var userInfoStorage: NSMutableDictionary?
  /// There with observers alone.
  var observers: ContextObservers?

  /// What records changes so that they can be undone; nil, as it is at first, for no undo.
  ///
  /// What each turn changed is registered as one operation when the turn ends, or when
  /// `processPendingChanges()` is called.
  open var undoManager: UndoManager? {
    get { undoRecorder?.manager }
    set {
      guard newValue !== undoRecorder?.manager else { return }
      processPendingChanges()
      undoRecorder = newValue.map { UndoRecorder($0, self) }
    }
  }

  /// Who writes, for the persistent history.
  open var transactionAuthor: String?
  /// What happens when objects were changed in the store since they were read: an `NSMergePolicy`.
  open var mergePolicy: Any = NSMergePolicy.error
  /// Whether deletions are passed on at the end of the turn, and not before.
  open var propagatesDeletesAtEndOfEvent = true
  /// Whether a fault whose row is gone becomes a deleted object, and is no fatal error.
  ///
  /// **Differs from Core Data:** a store that could not be read is no row that is gone, and raises no
  /// exception where this is true. The object stays a fault whose values read as nil, a relationship
  /// stays unloaded and reads as empty, and the context's next save throws the error once. A change
  /// that could not be kept, such as a value that was set on the fault, fails every save until
  /// `rollback()` or `reset()`.
  open var shouldDeleteInaccessibleFaults = true
  /// How old cached values may be, in seconds, when a fault is loaded; below 0, as at first, is any
  /// age, and 0 reads the store each time.
  ///
  /// **Differs from Core Data:** the age counts from when this context read the object last; what
  /// another context read is taken for too old.
  open var stalenessInterval: TimeInterval = -1 {
    didSet { if stalenessInterval <= 0 { readTimes = [:] } }
  }
  /// When objects were read, in seconds of uptime; only where an age was set.
  var readTimes: [ObjectKey: Double] = [:]
  /// Beyond so many of them those that are too old are dropped.
  var readTimesLimit = NSManagedObjectContext.fewReadTimes
  /// Whether the context keeps all its objects alive.
  open var retainsRegisteredObjects = false {
    didSet {
      keepsObjects = retainsRegisteredObjects
      retainedObjects = [:]
      if retainsRegisteredObjects {
        for object in registry.objects { retainedObjects[object.key] = object }
      }
    }
  }

  /// Creates a context.
  public init(concurrencyType ct: NSManagedObjectContextConcurrencyType) {
    concurrencyType = ct
    super.init()
    handle.hold(self)
  }

  /// Creates a context of the kind `confinementConcurrencyType`, as code from before queues does.
  public override convenience init() {
    self.init(concurrencyType: .confinementConcurrencyType)
  }

  /// Creates a context.
  public convenience init(_ type: ConcurrencyType) {
    self.init(concurrencyType: type.rawValue)
  }

  deinit {
    handle.clear()
    for home in homes.all { home.leaveContext() }
    // The objects may outlive the context; what they knew of it is cut, and so are their cycles.
    for object in registry.objects + inserted.objects + updated.objects + deleted.objects {
      object.toOneObjects = []
      object.dropToManys()
    }
  }

  // MARK: Settings

  /// A name for people, which the persistent history keeps with each transaction.
  open var name: String? {
    get { lock.withLock { guardedName } }
    set { lock.withLock { guardedName = newValue } }
  }

  /// A place for the app's own notes.
  open var userInfo: NSMutableDictionary {
    if let userInfoStorage { return userInfoStorage }
    let made = NSMutableDictionary()
    userInfoStorage = made
    return made
  }

  /// The coordinator of the stores; a context with a parent has its parent's.
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

  /// Whether saves of the parent, or of other contexts of the coordinator, are merged at once.
  open var automaticallyMergesChangesFromParent: Bool {
    get { lock.withLock { guardedAutomaticMerging } }
    set { lock.withLock { guardedAutomaticMerging = newValue } }
  }

  /// Where the context's work runs.
  var lane: Lane {
    // The main queue is the same for all, so no lock is needed to find it.
    if concurrencyType == .mainQueueConcurrencyType { return .main }
    let effects = persistentStoreCoordinator?.effects ?? .live
    return lock.withLock {
      if let guardedLane { return guardedLane }
      // Blocks of an app wait: for a busy store, or for a semaphore that a task signals. On the pool of
      // Swift's tasks, which has a thread for each processor, that would stop everything `async`.
      let made = effects.waitingLane(guardedName ?? "NSManagedObjectContext")
      guardedLane = made
      return made
    }
  }

  /// Whether a fault whose row is gone becomes a deleted object, and is no fatal error.
  open func shouldHandleInaccessibleFault(
    _ fault: NSManagedObject,
    for oid: NSManagedObjectID,
    triggeredByProperty property: NSPropertyDescription?
  ) -> Bool {
    shouldDeleteInaccessibleFaults
  }

  // MARK: Working on the lane

  /// Queues a block on the context's lane and returns at once.
  open func perform(_ block: @escaping () -> Void) {
    let work = LaneTransfer(block)
    lane.async { self.turn { work.value() } }
  }

  /// Runs a block on the context's lane and waits until it is done.
  ///
  /// A block may call it again. It runs on the calling thread, unless this is a main-queue context.
  open func performAndWait(_ block: () -> Void) {
    lane.sync { turn(block) }
  }

  // MARK: Finding objects

  /// The results of a request whose type is not known.
  open func fetch(_ request: NSFetchRequest<any NSFetchRequestResult>) throws -> [Any] {
    requireLane()
    return try results(of: request)
  }

  /// How many objects a request finds.
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

  /// The object of an identifier, a fault where it is not known yet; its row may not exist.
  open func object(with objectID: NSManagedObjectID) -> NSManagedObject {
    knownObjectOrFault(objectID)
  }

  /// The object of an identifier where the context has it; a store is not asked.
  open func registeredObject(for objectID: NSManagedObjectID) -> NSManagedObject? {
    knownObject(objectID)
  }

  /// The object of an identifier; an error where its row does not exist.
  open func existingObject(with objectID: NSManagedObjectID) throws -> NSManagedObject {
    try objectWithRow(objectID)
  }

  /// The objects that the context knows and that are alive.
  open var registeredObjects: Set<NSManagedObject> {
    requireLane()
    return Set(registry.objects).union(inserted.objects)
  }

  // MARK: Changing objects

  /// The objects that wait to be saved for the first time.
  open var insertedObjects: Set<NSManagedObject> {
    requireLane()
    return inserted.set
  }

  /// The objects with changes that wait to be saved.
  open var updatedObjects: Set<NSManagedObject> {
    requireLane()
    return updated.set
  }

  /// The objects that the next save deletes.
  open var deletedObjects: Set<NSManagedObject> {
    requireLane()
    return deleted.set
  }

  /// Whether anything waits to be saved.
  open var hasChanges: Bool {
    requireLane()
    return hasUnsavedChanges
  }

  /// Inserts an object that has no context yet.
  open func insert(_ object: NSManagedObject) {
    insert(object, awakes: true)
  }

  /// Marks an object for deletion; its delete rules are applied when the turn ends.
  open func delete(_ object: NSManagedObject) {
    markDeleted(object)
  }

  /// Chooses the store of an object that has not been saved yet.
  open func assign(_ object: Any, to store: NSPersistentStore) {
    chooseStore(store, for: object)
  }

  /// Turns an object into a fault, or takes newer values below the changes that wait.
  open func refresh(_ object: NSManagedObject, mergeChanges flag: Bool) {
    refreshObject(object, mergeChanges: flag)
  }

  /// Turns all objects into faults that have no changes, and refreshes the others.
  open func refreshAllObjects() {
    refreshRegisteredObjects()
  }

  /// Has an object compared with its row at the next save, though it did not change.
  ///
  /// Where the row was changed or deleted since it was read, the save meets a conflict and asks the
  /// merge policy. Objects with changes are always compared.
  open func detectConflicts(for object: NSManagedObject) {
    checkConflicts(of: object)
  }

  /// Takes over what another context has saved.
  open func mergeChanges(fromContextDidSave notification: Notification) {
    mergeSave(notification)
  }

  /// Propagates deletions and notifies observers of the turn's changes.
  open func processPendingChanges() {
    processTurn()
  }

  // MARK: Saving and dropping

  /// Gives objects their lasting identifiers before they are saved.
  open func obtainPermanentIDs(for objects: [NSManagedObject]) throws {
    try obtainLastingIDs(for: objects)
  }

  /// Saves what changed: to the stores, or to the parent where there is one.
  ///
  /// Each store is written in one transaction. Nothing is written where validation fails or where
  /// rows were changed meanwhile and the merge policy does not resolve the conflict.
  open func save() throws {
    try saveChanges()
  }

  /// Undoes the changes of the group that ended last, or of the turns since then.
  ///
  /// It does nothing without an undo manager. Objects that were deleted come back with the
  /// identifiers that they had, and where the deletion was saved they are inserted again.
  open func undo() {
    requireLane()
    processPendingChanges()
    undoManager?.undo()
    processPendingChanges()
  }

  /// Does again what was undone last.
  open func redo() {
    requireLane()
    processPendingChanges()
    undoManager?.redo()
    processPendingChanges()
  }

  /// Drops everything that waits to be saved.
  open func rollback() {
    dropUnsavedChanges()
  }

  /// Forgets all objects; what waits to be saved is lost.
  open func reset() {
    forgetAllObjects()
  }
}
