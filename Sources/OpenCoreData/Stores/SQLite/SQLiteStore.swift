import Effects
import Foundation
import Synchronization
import WatershedSQLite

/// A store in Core Data's SQLite format, or one with the same tables in memory.
///
/// One connection writes, under a lock; others read, each the state committed when its statement
/// began. Rows that were read or written recently are shared through a cache.
package final class SQLiteStore: NSPersistentStore, RowStore, @unchecked Sendable {
  // Sendable: the writer is used under its lock, the rest is immutable or synchronizes itself.

  package let schema: StoreSchema
  package let effects: Effects
  /// Whether saves are recorded in the history tables.
  package let keepsHistory: Bool
  /// Whether there is a history, kept on or not.
  let hasHistoryTables: Bool
  private var readersLog: ReadersLog?
  /// `ZTOMBSTONE0` and so on, as many as the file has.
  let tombstoneColumns: [String]
  let coding: RowCoding
  let cache = RowCache()
  /// Whether the tables are in memory: an in-memory store, or an SQLite store at or below `/dev/null`.
  package let isInMemory: Bool
  /// The earlier states that query generations read.
  let generations = StoreGenerations()
  private let storeType: String
  private let writer: StoreWriter
  private let readers: StoreReaders?
  /// Whether a write-ahead log lets readers and the writer run at the same time.
  let keepsSessions: Bool
  private let postsRemoteChanges: Bool
  let keys = KeyReserver()
  /// Posts notifications, in the order of the commits.
  private let notices: Lane
  let commitOrder = CommitOrder()
  /// The state of the watch for other processes' commits.
  let foreign = ForeignCommits()
  /// Whether the file still has the model with which the store was opened.
  let storedModel = StoredModelGuard()
  private let shared = Mutex(Shared())
  private let replacedFiles: ReplacedFiles

  private struct Shared {
    var observers: [@Sendable (StoreCommit) -> Void] = []
    var historyWillBeDeleted: (@Sendable (StoreTransaction, Int64) throws -> Void)?
    var isClosed = false
    /// The sessions that have a connection.
    var sessions: [ObjectIdentifier: StoreSession] = [:]
  }

  /// Opens the store, or creates it where there is no file.
  package init(
    model: NSManagedObjectModel,
    configuration: String? = nil,
    url: URL,
    options: [AnyHashable: Any] = [:],
    effects: Effects = .live,
    type: String = NSSQLiteStoreType
  ) throws {
    let opener = StoreOpener(
      model: model,
      configuration: configuration,
      url: url,
      options: options,
      effects: effects,
      type: type
    )
    let opened = try opener.open()
    schema = opened.schema
    self.effects = effects
    notices = effects.waitingLane("NSPersistentStoreRemoteChange")
    keepsHistory = opened.keepsHistory
    tombstoneColumns = opened.tombstoneColumns
    hasHistoryTables = opened.hasHistoryTables
    isInMemory = opener.isInMemory
    storeType = type
    coding = RowCoding(
      external: ExternalData(storeURL: opener.isInMemory ? nil : url, effects: effects)
    )
    replacedFiles = ReplacedFiles(store: url)
    let count = opened.schema.entities.count
    let mode = try opened.connection.scalar("PRAGMA journal_mode")
    keepsSessions = !opener.isInMemory && mode == .text("wal")
    writer = StoreWriter(
      try StoreConnection(connection: opened.connection, entityCount: count)
    )
    readers =
      opener.isInMemory
      ? nil
      : StoreReaders {
        try StoreConnection(connection: opener.openReader(), entityCount: count)
      }
    postsRemoteChanges = Self.flag(
      NSPersistentStoreRemoteChangeNotificationPostOptionKey,
      in: options
    )
    super.init(
      persistentStoreCoordinator: nil,
      configurationName: configuration,
      at: url,
      options: options
    )
    super.identifier = opened.identifier
    super.metadata = opened.metadata
    if opened.isReadOnly { isReadOnly = true }
    readersLog = opened.readersLog
    if !isInMemory {
      OpenStoreFiles.shared.opened(url)
      let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: opened.metadata)
      try noteOpenedFile(hashes: hashes ?? [:])
    }
    if postsRemoteChanges { watchFile() }
    removeFilesLeftBehind()
  }

  package override var type: String { storeType }

  /// The metadata; a new value is written to the file immediately, so that a crash cannot lose it.
  ///
  /// The entries about the model are the file's: a new value leaves them unchanged.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  package override var metadata: [String: Any]! {
    get { super.metadata }
    set {
      do {
        try write(metadata: newValue ?? [:])
      } catch {
        StoreLog.warning("The metadata of \(path) could not be written: \(error)")
      }
    }
  }

  /// Sets the metadata; if the file cannot be written, it is set for this process alone.
  func write(metadata: [String: Any]) throws {
    var value = metadata
    value[NSStoreTypeKey] = storeType
    if value[NSStoreUUIDKey] as? String == nil { value[NSStoreUUIDKey] = identifier }
    value = StoreMetadata.keepingModel(of: super.metadata, in: value)
    super.metadata = value
    guard !isReadOnly else { return }
    try inTransaction { writer in
      let stored = try StoreMetadata.read(writer.connection)?.metadata ?? [:]
      value = StoreMetadata.keepingModel(of: stored, in: value)
      try StoreMetadata.write(value, to: writer.connection)
    }
  }

  /// The file's path, for messages.
  var path: String { url?.path ?? "memory" }

  var naming: SchemaNaming { SchemaNaming(schema: schema, store: self) }

  /// Called in the same transaction before history up to a transaction number is deleted, so that
  /// the mirroring can fold changes that it has not exported into its metadata.
  package var historyWillBeDeleted: (@Sendable (StoreTransaction, Int64) throws -> Void)? {
    get { shared.withLock { $0.historyWillBeDeleted } }
    set { shared.withLock { $0.historyWillBeDeleted = newValue } }
  }

  /// Returns unused keys and closes the file.
  ///
  /// Later calls throw.
  package func close() {
    let wasClosed = shared.withLock { shared in
      defer { shared.isClosed = true }
      return shared.isClosed
    }
    guard !wasClosed else { return }
    if !isInMemory, let url { OpenStoreFiles.shared.closed(url) }
    foreign.end()
    generations.expireAll()
    for session in shared.withLock({ Array($0.sessions.values) }) { session.expire() }
    readers?.close()
    removeReplacedFiles(atOnce: true)
    replacedFiles.close()
    writer.close { writer in
      guard !isReadOnly else { return }
      do {
        try giveBackKeys(writer)
      } catch {
        StoreLog.warning("Reserved keys of \(path) stay unused: \(error)")
      }
    }
    readersLog?.remove()
  }

  deinit {
    close()
  }

  /// Returns unused keys, unless the file has been migrated: the numbers of its entities are others.
  private func giveBackKeys(_ writer: StoreConnection) throws {
    guard keys.hasUnused, !writer.connection.isInTransaction else { return }
    try writer.connection.transaction(.immediate) {
      guard try isInMemory || storedModel.verify(writer.connection) else { return }
      try keys.giveBack(writer.connection)
    }
  }

  // MARK: Connections

  /// Lends the writing connection; the calling thread may already hold it.
  func withWriter<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
    try translating("writing") {
      guard let result = try writer.use(body) else { throw closedError }
      return result
    }
  }

  /// Lends a reading connection.
  ///
  /// A store in memory has one connection for everything.
  func withReader<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
    guard let readers else { return try withWriter(body) }
    return try translating("reading") {
      defer { removeReplacedFiles() }
      try requireOpenedModel()
      guard let result = try readers.read(body) else { throw closedError }
      return result
    }
  }

  /// A reading connection that the caller returns later.
  func takeReader() throws -> StoreConnection? {
    try requireOpenedModel()
    return try readers?.take()
  }

  func giveBack(reader: StoreConnection) {
    readers?.giveBack(reader)
    removeReplacedFiles()
  }

  func lose(reader: StoreConnection) {
    readers?.lose(reader)
    removeReplacedFiles()
  }

  /// Removes files of large values once no reader, of this process or another one, can see the rows
  /// that named them.
  func abandon(_ files: [URL]) {
    guard !files.isEmpty else { return }
    replacedFiles.add(files, at: readers?.moment ?? 0)
    removeReplacedFiles()
  }

  private func removeReplacedFiles(atOnce: Bool = false) {
    guard !replacedFiles.isEmpty else { return }
    replacedFiles.remove(atOnce: atOnce, where: { readers?.isDone(before: $0) ?? true }) {
      tryWriter { try $0.connection.isReadAsNewest } ?? false
    }
  }

  /// Removes files that an earlier opening of the store could not remove.
  private func removeFilesLeftBehind() {
    guard !isInMemory, !isReadOnly else { return }
    // Files whose list cannot be read now are left for the next opening.
    let files = tryWriter { try replacedFiles.left(by: $0.connection) } ?? []
    abandon(files)
  }

  /// Lends the writing connection if no thread holds it; nil also if the body throws.
  func tryWriter<Result>(_ body: (StoreConnection) throws -> Result) -> Result? {
    writer.tryUse(body)
  }

  /// The row as the writing connection reads it, if no thread holds that; nil also if reading
  /// fails.
  ///
  /// A caller that reads a single row often changes it next. Read by the writing connection, the
  /// row's page is already cached when it is written.
  func tryWriterRow(_ reference: RowReference, inSession: Bool) -> RowAnswer? {
    if storedModel.isMigrated { return nil }
    return inSession
      ? writer.tryRead(age: cache.age) { try rowWithFiles(reference, from: $0) }
      : writer.tryUse { try rowWithFiles(reference, from: $0) }
  }

  private func rowWithFiles(
    _ reference: RowReference,
    from connection: StoreConnection
  ) throws -> RowAnswer {
    try connection.requiringFiles { RowAnswer(try readRow(reference, from: connection)) }
  }

  /// Ends the transaction in which the writing connection reads for sessions.
  func endWriterReading() { writer.endReading() }

  /// Registers a session that holds a connection, so that closing the store can end it.
  func keep(session: StoreSession) {
    shared.withLock { $0.sessions[ObjectIdentifier(session)] = session }
  }

  func forget(session: StoreSession) {
    shared.withLock { $0.sessions[ObjectIdentifier(session)] = nil }
  }

  /// Ends the read transactions of idle sessions where the log has grown: a block that waits for
  /// something else would keep SQLite from restarting the log.
  private func releaseIdleSessions() {
    let sessions = shared.withLock { Array($0.sessions.values) }
    guard !sessions.isEmpty, logSize > Self.idleSessionLogLimit else { return }
    for session in sessions { session.returnConnectionIfIdle() }
  }

  /// The size of the log in bytes; SQLite restarts a log after about half as much.
  private static let idleSessionLogLimit = 8 << 20

  var closedError: StoreError {
    StoreError(
      .operation,
      "The store at \(path) has been closed.",
      remedy: "Add the store to the coordinator again.",
      context: ["NSFilePath": path]
    )
  }

  /// Runs the body in a write transaction that sees the commits of other processes.
  func inTransaction<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
    try withWriter { writer in
      try requireWritable()
      if writer.connection.isInTransaction { return try body(writer) }
      return try writer.connection.transaction(.immediate) {
        // Checked under the lock, which a thread that replaces the file holds.
        if !isInMemory, writer.connection.hasLostItsName { throw replacedError }
        try noticeForeignCommits(writer)
        return try body(writer)
      }
    }
  }

  private var replacedError: StoreError {
    StoreError(
      .operation,
      "The file at \(path) was removed, renamed or replaced while the store was open, so nothing "
        + "was saved.",
      remedy: "Remove the store from its coordinator and add it again.",
      context: [NSFilePathErrorKey: path]
    )
  }

  private func requireWritable() throws {
    if isReadOnly { throw readOnlyError }
  }

  func translating<Result>(
    _ action: String,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      // A statement may have failed because its table is no longer there.
      if !isInMemory { lookForForeignCommits() }
      if storedModel.isMigrated { throw migratedError.nsError }
      throw StoreError.from(error, at: path, while: action).nsError
    } catch let error as StoreError {
      throw error.nsError
    }
  }

  // MARK: Observers

  package func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void) {
    shared.withLock { $0.observers.append(observer) }
  }

  package func forget(_ references: [RowReference]) {
    cache.forget(references)
  }

  /// Notifies the observers of a commit of this store, after those of the commits before it.
  func announce(_ commit: StoreCommit, in turn: CommitOrder.Turn) {
    turn.announce { self.announce(commit) }
  }

  /// Calls the commit observers on the calling thread, which must hold no lock of a store, and
  /// posts the remote-change notification on another thread.
  ///
  /// An observer that was added with an operation queue makes the posting thread wait for that
  /// queue. Where the program has no main thread to run the main queue, the saving thread may be
  /// running it: posting there would deadlock.
  func announce(_ commit: StoreCommit) {
    let observers = shared.withLock { $0.observers }
    for observer in observers { observer(commit) }
    generations.enforceLimit(self)
    releaseIdleSessions()
    guard postsRemoteChanges else { return }
    let (identifier, url, number) = (identifier ?? "", url, commit.transactionNumber)
    notices.async { [weak coordinator = persistentStoreCoordinator] in
      var userInfo: [AnyHashable: Any] = [NSStoreUUIDKey: identifier]
      userInfo[NSPersistentStoreURLKey] = url
      if let number {
        userInfo[NSPersistentHistoryTokenKey] = NSPersistentHistoryToken(
          transactionNumbers: [identifier: number]
        )
      }
      NotificationCenter.default.post(
        name: .NSPersistentStoreRemoteChange,
        object: coordinator,
        userInfo: userInfo
      )
    }
  }
}
