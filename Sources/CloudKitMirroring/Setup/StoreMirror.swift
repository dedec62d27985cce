import Effects
import Foundation
import OpenCoreData
import Synchronization
import WatershedSQLite

/// Mirrors one store with one zone: sets up, imports and exports, one at a time, woken by saves and
/// by notifications.
package final class StoreMirror: Sendable {
  /// The configuration of a mirror.
  package struct Options: Sendable {
    package var containerIdentifier: String
    package var subscription: String
    package var zone: String
    package var limits: ExportBatcher.Limits
    package var backoff: RetryBackoff
    package var budget: AssetBudget
    /// The most records in a page of the feed.
    package var pageLimit: Int
    /// Seconds between polls of the feed while notifications are not available.
    package var pollInterval: Double
    /// The limit on deletions of records that a read from the start did not return.
    package var sweepGuard = SweepGuard()

    package init(
      containerIdentifier: String,
      subscription: String = MirrorNames.privateSubscription,
      zone: String = MirrorNames.zone,
      limits: ExportBatcher.Limits = .init(),
      backoff: RetryBackoff = .init(),
      budget: AssetBudget = .init(),
      pageLimit: Int = 200,
      pollInterval: Double = 30
    ) {
      self.containerIdentifier = containerIdentifier
      self.subscription = subscription
      self.zone = zone
      self.limits = limits
      self.backoff = backoff
      self.budget = budget
      self.pageLimit = pageLimit
      self.pollInterval = pollInterval
    }
  }

  struct State {
    var isSetUp = false
    var wantsImport = true
    var wantsExport = true
    var isRunning = false
    var isStopped = false
    var hasNotifications = false
    var lastError: (any Error)?
    var pausedUntil: Date?
    var lastImport: Date?
    var lastExport: Date?
    var backoff: RetryBackoff
    var limits: ExportBatcher.Limits
    /// The number of records that one write transaction of an import handles.
    var chunk = StoreMirror.firstChunk
    var waiters: [Waiter] = []
    var tasks: [SpawnedTask] = []
    var listener: SpawnedTask?
    /// The number of listeners that were started: the end of a former one concerns no later one.
    var listenerNumber = 0
    /// On the monotonic clock: when the feed is polled next while notifications are not available.
    var nextPoll = -Double.infinity
    /// On the monotonic clock: when a subscription that could not be saved is saved again; nil if there is one.
    var nextSubscription: Double?
    /// Until when the server asked this device to wait.
    var heldUntil: Double?
    /// When refused changes are retried; nil if there are none.
    var nextParkedRetry: Double?
    var parkedPause = StoreMirror.firstParkedPause
    /// Whether refused changes are to be retried: after a launch they are, because the app or the
    /// schema may be newer.
    var wantsParkedRetry = true
    /// Whether the round in progress retries refused changes.
    var retriesParked = false
    /// The open batch at which the server failed while it accepted other requests, and how often.
    var failedBatch: (sequence: Int64, count: Int)?
    /// Records that the server lacked at the last export.
    var vanished: Set<String> = []
    /// Records of which the server had an older copy than the last agreed one.
    var outdated: Set<String> = []
    /// The outdated records for which the feed has been read since.
    var confirmed: Set<String> = []
    /// Whether a conflict was merged since the feed was last read to its end: its one-to-one relationships are
    /// settled there.
    var settlesOneToOnes = false
    /// Why no account can be used, as it was logged.
    var accountProblem: String?
    /// Incremented whenever the account may have changed; a round ends if it differs from its
    /// start.
    var accountEpoch = 0
    var workingEpoch = 0
    /// The last history transaction of which this mirror was notified.
    var seenTransaction: Int64 = 0

    /// Whether the changes of others are announced; otherwise the feed is polled.
    var isNotified: Bool { hasNotifications && nextSubscription == nil }
  }

  /// A call that waits for a round.
  struct Waiter {
    var continuation: CheckedContinuation<Void, any Error>
    /// Whether it came while a round was running: that round's failure may be of before the call.
    var isLate: Bool
  }

  static let firstChunk = 100

  let store: SQLiteStore
  let cloud: any MirrorCloud
  package let options: Options
  let effects: Effects
  package let journal: SyncJournal
  package let context: MirrorContext
  let state: Mutex<State>
  let signal = WakeSignal()
  let onEvent: @Sendable (EventMetadata, (any Error)?) -> Void

  /// Prepares a store: its metadata tables are open when this returns.
  ///
  /// `onEvent` is called at the start and the end of each setup, import and export.
  package init(
    store: SQLiteStore,
    cloud: any MirrorCloud,
    options: Options,
    effects: Effects,
    onEvent: @escaping @Sendable (EventMetadata, (any Error)?) -> Void = { _, _ in }
  ) throws {
    self.store = store
    self.cloud = cloud
    self.options = options
    self.effects = effects
    self.onEvent = onEvent
    state = Mutex(State(backoff: options.backoff, limits: options.limits))
    journal = SyncJournal(storeIdentifier: store.identifier ?? "", effects: effects)
    context = MirrorContext(
      store: store.identifier.flatMap(UUID.init(uuidString:)),
      mapping: ModelMapping(
        model: store.schema.model,
        configuration: store.schema.configuration
      ),
      zone: options.zone,
      effects: effects,
      journal: journal,
      serializer: RecordSerializer(budget: options.budget),
      assets: AssetFolder(
        url: AssetFolder.url(for: store),
        store: store.identifier ?? "",
        effects: effects
      )
    )
    try prepare()
  }

  /// The log with this mirror's name.
  var log: MirrorLog {
    MirrorLog(address: UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()))
  }

  // MARK: Transactions

  /// Runs the body with objects and metadata in one transaction.
  package func write<Result>(
    _ author: String,
    _ body: (MirrorSession) throws -> Result
  ) throws -> Result {
    try store.write(author: author, contextName: nil) { transaction in
      try body(session(transaction))
    }
  }

  func session(_ transaction: StoreTransaction) -> MirrorSession {
    MirrorSession(
      rows: StoreTransactionRows(transaction: transaction, store: store),
      context: context
    )
  }

  /// Reads the metadata in one read transaction.
  package func read<Result>(_ body: (MirrorMetadata) throws -> Result) throws -> Result {
    try store.read { try body(MirrorMetadata($0.connection)) }
  }

  private func prepare() throws {
    try write(MirrorAuthor.setup) { session in
      try session.metadata.open()
      try session.metadata.trimEvents()
      if try session.hasHistoryGap() { try session.requestScan() }
      try compareModel(session)
      try session.noteOpening()
      try session.nameUnsent()
    }
    try removeLeftFiles()
    store.historyWillBeDeleted = { [weak self] transaction, _ in
      guard let self, !effects.has(.ignoreHistoryGap) else { return }
      try session(transaction).foldHistory()
    }
    store.observeCommits { [weak self] commit in
      guard let self, mayNeedExport(commit) else { return }
      log.detail(1, "Observed context save: \(commit.transactionNumber ?? 0)")
      wake(export: true, cause: "A context was saved.")
    }
  }

  /// Whether a commit may contain changes to export.
  ///
  /// Another process that mirrors the file writes events and metadata, which are not in the
  /// history: two processes that reacted to each other's commits would never become idle.
  private func mayNeedExport(_ commit: StoreCommit) -> Bool {
    let isHistory =
      commit.transactionNumber.map { number in
        state.withLock { state in
          defer { state.seenTransaction = max(state.seenTransaction, number) }
          return number > state.seenTransaction
        }
      } ?? true
    return isHistory && commit.author.map { !MirrorAuthor.all.contains($0) } ?? true
  }

  /// After a change to a model that reads more than the last one, the records must be read again.
  private func compareModel(_ session: MirrorSession) throws {
    let versions = store.schema.model.entityVersionHashesByName.sorted { $0.key < $1.key }
      .map { "\($0.key) \($0.value.base64EncodedString())" }
    let hashes = (versions + mirroringSettings).joined(separator: "\n")
    let known = try session.metadata.text(.modelHashes)
    guard known != hashes else { return }
    try session.metadata.setMeta(.modelHashes, .text(hashes))
    guard known != nil else { return }
    try session.adoptModel()
  }

  /// The settings, besides the versions of the entities, that decide which values are mirrored: user info and a
  /// configuration are no part of a version hash.
  private var mirroringSettings: [String] {
    let (mapping, entities) = (context.mapping, store.schema.model.entities)
    let ignored = entities.flatMap { entity in
      entity.properties.filter(MirrorFlags.isIgnored).map { "\(entity.name ?? "").\($0.name)" }
    }
    let isPart = mapping.entityNames.count < entities.count
    return mapping.exactFields
      + (ignored.isEmpty ? [] : ["ignored " + ignored.sorted().joined(separator: " ")])
      + (isPart ? ["entities " + mapping.entityNames.sorted().joined(separator: " ")] : [])
  }

  // MARK: Waking

  /// Starts the mirror's task.
  package func start() {
    let task = effects.tasks.spawn { [weak self] in
      while let self, !self.state.withLock({ $0.isStopped }), !Task.isCancelled {
        await self.turn()
      }
    }
    state.withLock { $0.tasks.append(task) }
    signal.raise()
  }

  /// Stops the task; work in progress is abandoned, and resumed after a restart.
  package func stop() {
    let (tasks, waiters) = state.withLock { state in
      state.isStopped = true
      defer {
        state.tasks = []
        state.waiters = []
      }
      return (state.tasks + [state.listener].compactMap(\.self), state.waiters)
    }
    for task in tasks { task.cancel() }
    signal.raise(urgent: true)
    let error = MirroringErrorCode.cancelled.error("The store is no longer mirrored.")
    for waiter in waiters { waiter.continuation.resume(throwing: error) }
  }

  /// Stops the task and waits until it has ended.
  package func stopAndFinish() async {
    let tasks = state.withLock { $0.tasks + [$0.listener].compactMap(\.self) }
    stop()
    for task in tasks { await task.finish() }
  }

  /// Records the requested work and wakes the mirror.
  package func wake(
    import wantsImport: Bool = false,
    export wantsExport: Bool = false,
    urgent: Bool = false,
    cause: String
  ) {
    let hasNewWork = state.withLock { state in
      let hasNewWork = (wantsImport && !state.wantsImport) || (wantsExport && !state.wantsExport)
      if wantsImport { state.wantsImport = true }
      if wantsExport { state.wantsExport = true }
      return hasNewWork
    }
    if hasNewWork {
      journal.note(
        wantsExport ? .export : .import,
        .woken,
        cause: cause,
        effect: wantsExport ? "An export starts." : "An import starts."
      )
    }
    signal.raise(urgent: urgent)
  }

  /// Imports and exports once, immediately; returns when both are done, and throws if they fail.
  ///
  /// Changes that the server refused are retried; while the server asks to wait, the call fails.
  package func syncNow() async throws {
    if let held = state.withLock({ $0.heldUntil }), held > effects.clock.uptime {
      throw CloudFailure.busy(
        reason: "The server asked to wait.",
        retryAfter: held - effects.clock.uptime
      )
    }
    try await withCheckedThrowingContinuation { continuation in
      let isStopped = state.withLock { state in
        guard !state.isStopped else { return true }
        state.waiters.append(Waiter(continuation: continuation, isLate: state.isRunning))
        state.wantsImport = true
        state.wantsExport = true
        state.wantsParkedRetry = true
        return false
      }
      if isStopped {
        continuation.resume(
          throwing: MirroringErrorCode.cancelled.error("The store is no longer mirrored.")
        )
      } else {
        signal.raise(urgent: true)
      }
    }
  }

  /// Syncs until no change of this store is left to export.
  package func waitUntilSynced(attempts: Int = 20) async throws {
    for _ in 0..<attempts {
      try await syncNow()
      let isDone = try read { try $0.pendingCount() == 0 && $0.openBatch() == nil }
      let isIdle = state.withLock { !$0.wantsImport && !$0.wantsExport }
      if isDone, isIdle { return }
    }
    throw MirroringErrorCode.several.error(
      "After \(attempts) rounds there is still something to send.",
      underlying: state.withLock { $0.lastError }
    )
  }

  /// The status of the mirroring.
  package func status() throws -> MirroringStatus {
    let (pending, links, parked, parkedEdges, kept) = try read { metadata in
      (
        try metadata.pendingCount(), try metadata.parkedLinkCount(),
        try metadata.parkedRecords(limit: 100), try metadata.parkedEdges(limit: 100),
        try metadata.integer(.keptMissing) ?? 0
      )
    }
    return state.withLock { state in
      MirroringStatus(
        storeIdentifier: store.identifier ?? "",
        isSetUp: state.isSetUp,
        isIdle: !state.isRunning && !state.wantsImport && !state.wantsExport,
        pendingCount: pending,
        parkedLinkCount: links,
        parked: parked.map {
          .init(recordName: $0.name, entityName: $0.entityName, reason: $0.parked ?? "")
        }
          + parkedEdges.map { edge in
            let side = edge.edge.relationship.first
            return .init(
              recordName: edge.name,
              entityName: "\(side.entityName).\(side.relationship)",
              reason: edge.parked ?? ""
            )
          },
        keptMissingCount: Int(kept),
        lastError: state.lastError,
        pausedUntil: state.pausedUntil,
        lastImport: state.lastImport,
        lastExport: state.lastExport
      )
    }
  }
}
