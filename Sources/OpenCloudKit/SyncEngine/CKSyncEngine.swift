import Effects
import Foundation
import Synchronization

/// Keeps an app's records in step with a database: fetches what changed there, sends what changed
/// here, and knows when to do it.
///
/// The app keeps the records; its ``CKSyncEngineDelegate`` is given what was fetched and gives what
/// is to be sent. An engine that syncs by itself subscribes to the database, fetches when the
/// service tells of changes, sends soon after something was added to its ``state``, and tries again
/// what failed for a passing reason. All methods may be called from every thread.
///
/// **Differs from CloudKit:** where an app's service has push turned off, the engine asks every
/// quarter of an hour instead.
public final class CKSyncEngine: Sendable {
  /// The database that is kept in step with.
  public final let database: CKDatabase
  /// What the engine remembers.
  public final let state: CKSyncEngine.State

  let effects: Effects
  let configuredSubscriptionID: CKSubscription.ID?
  private let automaticallySyncs: Bool
  private let link: Mutex<DelegateLink>
  private let turnstile = OperationTurnstile()
  private let activity: Mutex<Activity>
  private let signals: AsyncStream<Void>.Continuation

  /// The delegate, held as CloudKit holds it.
  private struct DelegateLink: @unchecked Sendable {
    // Unchecked: delegates are `Sendable`; the compiler can't see it through `weak`.
    weak var delegate: (any CKSyncEngineDelegate)?
  }

  private struct Activity: Sendable {
    var schedule = SyncSchedule()
    /// The account that the service confirmed last.
    var account: AccountPin?
    /// Whether a task waits to tell the delegate of a new state.
    var isUpdateDue = false
    var parkedRetries = ParkedRecordRetries()
    var nextNumber = 0
    var operations: [Int: SpawnedTask] = [:]
    /// The operation that runs, by its task.
    var runningTask: Int?
    /// Works off the schedule as long as the engine lives.
    var loop: SpawnedTask?
    /// Hears of changes, as the person who is signed in.
    var listener: SpawnedTask?
    var timer: SpawnedTask?
    var accountObserver: AccountObserver?
  }

  /// How long changes of the state are collected before the delegate is told, and how long pending
  /// changes before they are sent: enough for a burst, unnoticed by people.
  private static let collectingTime = 0.1

  // MARK: Making engines

  /// Creates an engine, which begins at once.
  ///
  /// It asks who is signed in and tells of it. One that syncs by itself then fetches what changed
  /// and sends what is pending.
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

  /// Begins to hear of changes; whoever heard before is let go of.
  private func listen() {
    let listener = SyncEngineListener(engine: self).start()
    let old = activity.withLock { activity in
      let old = activity.listener
      activity.listener = listener
      return old
    }
    old?.cancel()
  }

  // MARK: Syncing by hand

  /// Fetches what changed on the service, now.
  ///
  /// Returns when the delegate has been given all of it. Throws what went wrong: a
  /// `partialFailure` where single zones could not be fetched. It must not be called by the
  /// delegate while it handles an event, since it waits for the delegate.
  public final func fetchChanges(
    _ options: CKSyncEngine.FetchChangesOptions = .init()
  ) async throws {
    let context = FetchChangesContext(reason: .manual, options: options)
    try await operate { engine throws(CKError) in try await engine.fetch(context) }
  }

  /// Sends what is pending, now.
  ///
  /// Returns when the delegate has been told of all of it. Throws what went wrong: a
  /// `partialFailure` where single changes were refused. It must not be called by the delegate
  /// while it handles an event, since it waits for the delegate.
  public final func sendChanges(
    _ options: CKSyncEngine.SendChangesOptions = .init()
  ) async throws {
    let context = SendChangesContext(reason: .manual, options: options)
    try await operate { engine throws(CKError) in try await engine.send(context) }
  }

  /// Cancels what runs and what waits to run; returns when it has ended.
  ///
  /// A request under way may still succeed. The next change, notification or call syncs again.
  public final func cancelOperations() async {
    let isOwnTask = self.isOwnTask
    let tasks = activity.withLock { Array($0.operations.values) }
    for task in tasks { task.cancel() }
    // The delegate may cancel the very operation that waits for it.
    guard !isOwnTask else { return }
    for task in tasks { await task.finish() }
  }

  private var isOwnTask: Bool {
    let task = withUnsafeCurrentTask { $0?.hashValue }
    return task != nil && activity.withLock { $0.runningTask } == task
  }

  // MARK: Operations

  /// Runs the body when its turn has come.
  private func operate(
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

  /// The outcome of an operation, handed from its task to the one that waits.
  private final class OutcomeBox: Sendable {
    private let outcome = Mutex<Result<Void, CKError>?>(nil)
    var value: Result<Void, CKError>? { outcome.withLock { $0 } }
    func set(_ value: Result<Void, CKError>) { outcome.withLock { $0 = value } }
  }

  private func runInTurn(
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

  // MARK: Syncing by itself

  /// Works off the schedule until there is nothing to do now.
  private func runSchedule() async {
    while !Task.isCancelled {
      let step = activity.withLock { activity in
        let step = activity.schedule.step(at: effects.clock.uptime)
        if case .run(let work) = step { activity.schedule.begin(work) }
        return step
      }
      switch step {
      case .rest: return
      case .wait(let seconds): return setTimer(seconds)
      case .run(let work): await run(work)
      }
    }
  }

  private func run(_ work: SyncSchedule.Work) async {
    do throws(CKError) {
      try await operate { engine throws(CKError) in
        switch work {
        case .fetch:
          try await engine.ensureSubscription()
          try await engine.fetch(FetchChangesContext(reason: .scheduled, options: .init()))
        case .send:
          try await engine.send(SendChangesContext(reason: .scheduled, options: .init()))
        }
      }
      activity.withLock { $0.schedule.succeed() }
    } catch {
      if work == .fetch, error.isOfRecordsOnly {
        // Those records have pauses of their own, which hold nothing else up.
        return activity.withLock { $0.schedule.succeed() }
      }
      // A zone whose token has expired waits for its changes to be sent.
      let hasMore =
        work == .send
        ? state.value.hasChangesToSend
        : error.withPartialErrors.contains { $0.code == .changeTokenExpired }
      let jitter = effects.randomness.fraction()
      activity.withLock { activity in
        let time = effects.clock.uptime
        activity.schedule.fail(work, error, at: time, jitter: jitter)
        if hasMore { activity.schedule.request(work) }
      }
    }
  }

  private func setTimer(_ seconds: Double) {
    let clock = effects.clock
    let signals = self.signals
    let timer = effects.tasks.spawn {
      // A timer that was cancelled has been replaced.
      guard (try? await clock.sleep(seconds: seconds)) != nil else { return }
      signals.yield()
    }
    let old = activity.withLock { activity in
      let old = activity.timer
      activity.timer = timer
      return old
    }
    old?.cancel()
  }

  /// Asks the schedule for work, where the engine syncs by itself.
  func request(_ work: SyncSchedule.Work) {
    guard automaticallySyncs else { return }
    activity.withLock { $0.schedule.request(work) }
    signals.yield()
  }

  /// The parked records that a fetch tries again.
  func parkedRecords(_ context: FetchChangesContext) -> [CKRecord.ID] {
    let recordIDs = state.value.parkedRecords.filter {
      context.options.scope.contains($0.zoneID)
    }
    let time = effects.clock.uptime
    let areDue = activity.withLock { $0.parkedRetries.areDue(at: time, context.reason) }
    return areDue ? recordIDs : []
  }

  /// Asks for another fetch where records are parked.
  func planParkedRetry(haveTried: Bool) {
    let isEmpty = state.value.parkedRecords.isEmpty
    let (time, jitter) = (effects.clock.uptime, effects.randomness.fraction())
    activity.withLock { activity in
      guard !isEmpty else { return activity.parkedRetries.succeed() }
      let next = activity.parkedRetries.plan(at: time, haveTried: haveTried, jitter: jitter)
      if automaticallySyncs { activity.schedule.requestFetch(at: next) }
    }
  }

  private func stateWasTouched(_ touch: State.Touch) {
    let isFirst = activity.withLock { activity in
      if touch == .added, automaticallySyncs { activity.schedule.request(.send) }
      defer { activity.isUpdateDue = true }
      return !activity.isUpdateDue
    }
    guard isFirst else { return }
    let clock = effects.clock
    effects.tasks.spawn { [weak self] in
      // Nothing cancels this; where waiting fails, the delegate is told at once.
      try? await clock.sleep(seconds: Self.collectingTime)
      await self?.tellOfTouchedState()
    }
  }

  private func tellOfTouchedState() async {
    activity.withLock { $0.isUpdateDue = false }
    signals.yield()
    // What an operation has not told already is told now.
    _ = await runInTurn { engine in await engine.tellOfState() }
  }

  // MARK: Accounts

  private func accountMayHaveChanged() {
    activity.withLock { activity in
      activity.account = nil
      activity.schedule.wake()
    }
    if automaticallySyncs {
      listen()
      request(.fetch)
      request(.send)
    } else {
      askForAccount()
    }
  }

  private func askForAccount() {
    effects.tasks.spawn { [weak self] in
      // Where nobody can be asked now, the next operation asks again.
      try? await self?.operate { engine throws(CKError) in _ = try await engine.ensureAccount() }
    }
  }

  /// Asks the service for the user, where that is not known, and reports a change to the delegate.
  ///
  /// An operation makes all its requests for the account that this returns, so that it ends where
  /// another user signs in while it runs. Throws where no user is signed in, or where the service
  /// does not say which.
  ///
  /// The state is reset only where the app signed the user out or the service confirmed another
  /// user. A session that is over, a token that the service refuses or a token file that is not
  /// there yet say nothing about the user's intention: the engine keeps pending changes and tokens
  /// for the same user's return.
  func ensureAccount() async throws(CKError) -> AccountPin {
    let container = database.container
    if let account = activity.withLock({ $0.account }), container.isCurrent(account) {
      return account
    }
    do {
      let account = try await container.confirmedAccount()
      await take(account.userRecordName.map { CKRecord.ID(recordName: $0) })
      activity.withLock { $0.account = account }
      return account
    } catch {
      let error = CKError(transport: error)
      guard error.code == .notAuthenticated else { throw error }
      if container.isSignedOut { await take(nil) }
      throw Self.withoutAccount(error, hasToken: container.hasToken)
    }
  }

  private func take(_ user: CKRecord.ID?) async {
    guard let change = state.update({ $0.signIn(user) }) else { return }
    await tell(.accountChange(Event.AccountChange(changeType: change)))
    await tellOfState()
  }

  /// The error of an operation for which the service confirmed no user.
  private static func withoutAccount(_ error: CKError, hasToken: Bool) -> CKError {
    guard hasToken else {
      return CKError(
        .notAuthenticated,
        "No user is signed in.",
        remedy: "The engine continues when a user signs in."
      )
    }
    var userInfo: [String: Any] = [:]
    userInfo[CKError.signInURLKey] = error.signInURL
    return CKError(
      .accountTemporarilyUnavailable,
      "The service does not accept the user's session.",
      remedy: "Sign in again. The engine keeps its pending changes until then.",
      underlying: error,
      userInfo: userInfo
    )
  }

  // MARK: The delegate

  var delegate: (any CKSyncEngineDelegate)? { link.withLock { $0.delegate } }

  /// Tells the delegate of an event and waits until it has dealt with it.
  func tell(_ event: Event) async {
    await delegate?.handleEvent(event, syncEngine: self)
  }

  /// Tells the delegate of the state, if it changed.
  func tellOfState() async {
    guard let update = state.takeUpdate() else { return }
    await tell(.stateUpdate(Event.StateUpdate(stateSerialization: update)))
  }
}

extension CKSyncEngine: CustomStringConvertible {
  /// The engine in words, for logs.
  public final var description: String {
    "<CKSyncEngine: \(RecordFormatter.address(of: self)); database=\(database)>"
  }
}
