import Effects
import Foundation
import Synchronization

/// Synchronizes an app's records with a database: fetches remote changes, sends local changes, and
/// schedules both.
///
/// ```swift
/// var configuration = CKSyncEngine.Configuration(
///   database: database,
///   stateSerialization: await notes.state,
///   delegate: notes
/// )
/// configuration.automaticallySync = false  // for tests and tools; an app leaves it on
/// let engine = CKSyncEngine(configuration)
///
/// let zone = CKRecordZone(zoneName: "Notes")
/// let noteID = CKRecord.ID(recordName: "note-1", zoneID: zone.zoneID)
/// await notes.write("Buy milk", to: noteID)
/// engine.state.add(pendingDatabaseChanges: [.saveZone(zone)])
/// engine.state.add(pendingRecordZoneChanges: [.saveRecord(noteID)])
/// try await engine.sendChanges()
/// ```
///
/// The app stores the records; its ``CKSyncEngineDelegate`` receives the fetched records and
/// supplies the records to send. An engine that syncs automatically subscribes to the database,
/// fetches when the service notifies it of changes, sends soon after a change was added to its
/// ``state``, and retries after transient errors. All methods may be called from every thread.
///
/// A change stays pending until the service accepts or refuses it: also after a reply that is not the
/// service's, such as the sign-in page of a network, and after an internal error of the service. A batch
/// that the service finds too large is sent in smaller ones, unless it is atomic.
///
/// **Differs from CloudKit:** if push is turned off in the app's configuration, the engine polls
/// every quarter of an hour. Apple does not document what its engine does after a reply that is not the
/// service's, or with a batch of its own that the service finds too large.
public final class CKSyncEngine: Sendable {
  /// A change of a record as it was pending at a moment.
  package typealias PendingRecordMark = PendingChanges<CKRecord.ID, PendingRecordZoneChange>.Mark

  /// The database to synchronize with.
  public final let database: CKDatabase
  /// The engine's state.
  public final let state: CKSyncEngine.State

  let effects: Effects
  let configuredSubscriptionID: CKSubscription.ID?
  let automaticallySyncs: Bool
  private let link: Mutex<DelegateLink>
  private let turnstile = OperationTurnstile()
  let activity: Mutex<Activity>
  let signals: AsyncStream<Void>.Continuation

  /// The weak reference to the delegate, as CloudKit's engine has one.
  private struct DelegateLink: @unchecked Sendable {
    // Unchecked: delegates are `Sendable`; the compiler can't prove it through `weak`.
    weak var delegate: (any CKSyncEngineDelegate)?
  }

  struct Activity: Sendable {
    var schedule = SyncSchedule()
    /// The account that the service last confirmed.
    var account: AccountPin?
    /// Whether a task is waiting to notify the delegate of a new state.
    var isUpdateDue = false
    /// Whether the service was asked for the subscription since the engine was created.
    var hasCheckedSubscription = false
    var parkedRetries = ParkedRecordRetries()
    /// The changes at which the service fails, although it accepts others.
    var parkedChanges: [PendingRecordMark] = []
    var sendRetries = ParkedRecordRetries()
    var nextNumber = 0
    var operations: [Int: SpawnedTask] = [:]
    /// The task of the running operation.
    var runningTask: Int?
    /// The task that runs the schedule during the engine's lifetime.
    var loop: SpawnedTask?
    /// The task that listens for notifications, as the signed-in user.
    var listener: SpawnedTask?
    var timer: SpawnedTask?
    var accountObserver: AccountObserver?
  }

  // MARK: Creating engines

  /// Creates an engine, which starts at once.
  ///
  /// It asks the service for the signed-in user and reports the user to the delegate. An engine
  /// that syncs automatically then fetches changes and sends the pending ones.
  public init(_ configuration: CKSyncEngine.Configuration) {
    database = configuration.database
    state = State(configuration.stateSerialization?.value ?? SyncEngineState())
    effects = configuration.database.effects
    configuredSubscriptionID = configuration.subscriptionID
    automaticallySyncs = configuration.automaticallySync
    link = Mutex(DelegateLink(delegate: configuration.delegate))
    activity = Mutex(Activity())
    let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    signals = continuation
    state.onTouch { [weak self] touch in self?.stateWasTouched(touch) }
    begin(stream)
  }

  deinit {
    signals.finish()
    let activity = activity.withLock { $0 }
    for task in [activity.loop, activity.listener, activity.timer] { task?.cancel() }
  }

  private func begin(_ stream: AsyncStream<Void>) {
    let observer = AccountObserver(of: database.container) { [weak self] in
      self?.accountMayHaveChanged()
    }
    activity.withLock { activity in
      activity.accountObserver = observer
      if automaticallySyncs {
        activity.schedule.request(.fetch)
        if state.value.hasChangesToSend { activity.schedule.request(.send) }
      }
    }
    if automaticallySyncs {
      let loop = effects.tasks.spawn { [weak self] in
        for await _ in stream {
          guard let engine = self else { return }
          await engine.runSchedule()
        }
      }
      activity.withLock { $0.loop = loop }
      listen()
      signals.yield()
    } else {
      askForAccount()
    }
  }

  /// Starts a listener for notifications; it replaces the previous one.
  func listen() {
    let listener = SyncEngineListener(engine: self).start()
    let old = activity.withLock { activity in
      let old = activity.listener
      activity.listener = listener
      return old
    }
    old?.cancel()
  }

  // MARK: Explicit syncing

  /// Fetches the changes on the service now.
  ///
  /// Returns when the delegate has received all of them. Throws the error: a `partialFailure` if
  /// single zones could not be fetched. The delegate must not call it while it handles an event,
  /// since it waits for the delegate.
  public final func fetchChanges(
    _ options: CKSyncEngine.FetchChangesOptions = .init()
  ) async throws {
    let context = FetchChangesContext(reason: .manual, options: options)
    try await operate { engine throws(CKError) in try await engine.fetch(context) }
  }

  /// Sends the pending changes now.
  ///
  /// Returns when all outcomes were reported to the delegate. Throws the error: a `partialFailure`
  /// if single changes were refused. The delegate must not call it while it handles an event, since
  /// it waits for the delegate.
  public final func sendChanges(
    _ options: CKSyncEngine.SendChangesOptions = .init()
  ) async throws {
    let context = SendChangesContext(reason: .manual, options: options)
    try await operate { engine throws(CKError) in try await engine.send(context) }
  }

  /// Cancels the running and the waiting operations; returns when they have ended.
  ///
  /// A request that was sent may still succeed. Changes that were not sent stay pending. An engine that syncs
  /// automatically continues the cancelled work with the next change, notification or scheduled retry.
  public final func cancelOperations() async {
    let isOwnTask = self.isOwnTask
    let tasks = activity.withLock { activity in
      activity.schedule.cancel()
      return Array(activity.operations.values)
    }
    for task in tasks { task.cancel() }
    // The delegate may cancel the operation that is waiting for it.
    guard !isOwnTask else { return }
    for task in tasks { await task.finish() }
  }

  private var isOwnTask: Bool {
    let task = withUnsafeCurrentTask { $0?.hashValue }
    return task != nil && activity.withLock { $0.runningTask } == task
  }

  // MARK: Operations

  /// Runs the body when all earlier operations have ended.
  func operate(
    _ body: @escaping @Sendable (CKSyncEngine) async throws(CKError) -> Void
  ) async throws(CKError) {
    guard !isOwnTask else {
      throw CKError(
        .invalidArguments,
        "A sync engine's delegate asked to sync while the engine waited for it.",
        remedy: "Start a task for it, or let the engine sync by itself."
      )
    }
    let box = OutcomeBox()
    let number = activity.withLock { activity in
      activity.nextNumber += 1
      return activity.nextNumber
    }
    let task = effects.tasks.spawn { [self] in
      box.set(await runInTurn(body))
      activity.withLock { $0.operations[number] = nil }
    }
    activity.withLock { activity in
      if box.value == nil { activity.operations[number] = task }
    }
    await withTaskCancellationHandler {
      await task.finish()
    } onCancel: {
      task.cancel()
    }
    try box.value?.get()
  }

  /// The outcome of an operation, passed from its task to the waiting caller.
  private final class OutcomeBox: Sendable {
    private let outcome = Mutex<Result<Void, CKError>?>(nil)
    var value: Result<Void, CKError>? { outcome.withLock { $0 } }
    func set(_ value: Result<Void, CKError>) { outcome.withLock { $0 = value } }
  }

  func runInTurn(
    _ body: @Sendable (CKSyncEngine) async throws(CKError) -> Void
  ) async -> Result<Void, CKError> {
    guard await turnstile.enter() else {
      return .failure(CKError(transport: CancellationError()))
    }
    let task = withUnsafeCurrentTask { $0?.hashValue }
    activity.withLock { $0.runningTask = task }
    defer {
      activity.withLock { $0.runningTask = nil }
      turnstile.leave()
    }
    do throws(CKError) {
      try await body(self)
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  // MARK: The delegate

  var delegate: (any CKSyncEngineDelegate)? { link.withLock { $0.delegate } }

  /// Passes an event to the delegate and waits until it was handled.
  func deliver(_ event: Event) async {
    await delegate?.handleEvent(event, syncEngine: self)
  }

  /// Reports the state to the delegate, if it changed.
  func deliverState() async {
    guard let update = state.takeUpdate() else { return }
    await deliver(.stateUpdate(Event.StateUpdate(stateSerialization: update)))
  }
}

extension CKSyncEngine: CustomStringConvertible {
  /// The engine in words, for logs.
  public final var description: String {
    "<CKSyncEngine: \(RecordFormatter.address(of: self)); database=\(database)>"
  }
}
