import Effects
import Foundation
import OpenCoreData
import Synchronization
import WatershedSQLite

/// Mirrors one store with one zone: sets up, imports and exports, one at a time, woken by saves and
/// by notifications.
package final class StoreMirror: Sendable {
  /// What one lock guards.
  struct State {
    var work = RequestedWork()
    var account = AccountWatch()
    var listener = ListenerState()
    var parked = ParkedRetry()
    var findings = FeedFindings()
    var pause: RetryPause
    var pace: MirrorPace
    var isStopped = false
    var tasks: [SpawnedTask] = []
    var lastImport: Date?
    var lastExport: Date?
    /// The last history transaction of which this mirror was notified.
    var seenTransaction: Int64 = 0

    /// All tasks to cancel.
    var allTasks: [SpawnedTask] { tasks + [listener.task].compactMap(\.self) }
  }

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
    state = Mutex(
      State(pause: RetryPause(options.backoff), pace: MirrorPace(options.limits))
    )
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
      defer { state.tasks = [] }
      return (state.allTasks, state.work.takeWaiters())
    }
    for task in tasks { task.cancel() }
    signal.raise(urgent: true)
    let error = MirroringErrorCode.cancelled.error("The store is no longer mirrored.")
    for waiter in waiters { waiter.continuation.resume(throwing: error) }
  }

  /// Stops the task and waits until it has ended.
  package func stopAndFinish() async {
    let tasks = state.withLock { $0.allTasks }
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
    var directions: RequestedWork.Directions = []
    if wantsImport { directions.insert(.importing) }
    if wantsExport { directions.insert(.exporting) }
    let hasNewWork = state.withLock { [directions] state in
      defer { state.work.want(directions) }
      return state.work.lacks(directions)
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
    if let held = state.withLock({ $0.pause.heldUntil }), held > effects.clock.uptime {
      throw CloudFailure.busy(
        reason: "The server asked to wait.",
        retryAfter: held - effects.clock.uptime
      )
    }
    try await withCheckedThrowingContinuation { continuation in
      let isStopped = state.withLock { state in
        guard !state.isStopped else { return true }
        state.work.wait(continuation)
        state.parked.want()
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
      let isIdle = state.withLock { $0.work.isEmpty }
      if isDone, isIdle { return }
    }
    throw MirroringErrorCode.several.error(
      "After \(attempts) rounds there is still something to send.",
      underlying: state.withLock { $0.pause.error }
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
        isSetUp: state.account.isSetUp,
        isIdle: state.work.isIdle,
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
        lastError: state.pause.error,
        pausedUntil: state.pause.end,
        lastImport: state.lastImport,
        lastExport: state.lastExport
      )
    }
  }
}
