import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import WatershedPostgreSQL
import WatershedSQLite

/// The storage for several servers: one PostgreSQL, or a cluster of them behind Citus.
///
/// Transactions are short and see what was committed before each statement; a commit locks the rows
/// it depends on when it checks them (`SQLCommit`). A read uses one snapshot.
package final class PostgreSQLStorage: Storage {
  package let secret: Data?
  private let identity: Mutex<String>
  private let pool: PostgreSQLPool
  private let partitions = PartitionCache()
  private let branches = BranchCache()
  private let schemas = SchemaCache()
  private let effects: Effects
  private let format: StorageFormat
  private let notifications: PostgreSQLNotifications
  /// Whether this is a cluster's coordinator; checked again with each poll.
  private let isCluster = Mutex(false)
  /// The pool's lost connections after which the PostgreSQL server's history was compared.
  private let confirmedLosses = Mutex(0)
  /// The lane for cancel requests, which wait for the server.
  private let stops: Lane
  /// Set when another server's migration removed what this version needs.
  private let outdated = Mutex<StorageVersionError?>(nil)

  package var incarnation: String { identity.withLock { $0 } }
  /// Writers wait for the server's disk most of the time, and the server groups their commits.
  package var writerCount: Int { 8 }

  /// Opens the tables at a `postgresql://` URL, or creates them.
  package convenience init(
    url: String,
    effects: Effects,
    observer: (@Sendable (String) -> Void)? = nil
  ) throws {
    try self.init(url: url, effects: effects, format: .current, observer: observer)
  }

  init(
    url: String,
    effects: Effects,
    format: StorageFormat,
    observer: (@Sendable (String) -> Void)? = nil
  ) throws {
    self.effects = effects
    self.format = format
    stops = effects.waitingLane("server cancellations")
    let pool = PostgreSQLPool(url: url, observer: observer)
    self.pool = pool
    let facts = try pool.use { connection in
      try connection.transaction {
        let session = PostgreSQLSession(connection: connection)
        // A migration step may rewrite whole tables.
        try session.run("SET LOCAL statement_timeout = 0", [])
        try format.prepare(session)
        let facts = ServiceFacts(session: session)
        try facts.settle(in: try Self.origin(session), effects.randomness)
        return (
          secret: try facts.secret,
          incarnation: try facts.incarnation(effects.randomness)
        )
      }
    }
    secret = facts.secret
    identity = Mutex(facts.incarnation)
    // Two services in one database are distinguished by their schemas.
    let schema = try pool.use { try $0.query("SELECT current_schema()")[0].text(0) }
    notifications = PostgreSQLNotifications(
      url: url,
      channel: "watershed_\(schema)",
      pool: pool,
      effects: effects
    )
    try detectCluster()
    notifications.start { [weak self] in try self?.checkService() }
  }

  private func detectCluster() throws {
    let found = try reading {
      try $0.query("SELECT 1 WHERE to_regclass('pg_dist_partition') IS NOT NULL").count > 0
    }
    isCluster.withLock { $0 = found }
  }

  /// Identifies the history of commits: a server that was restored elsewhere, from a backup or to
  /// an earlier time, or a standby that took over, has another one.
  private static func origin(_ session: PostgreSQLSession) throws -> String {
    // The timeline of the current log; the control file has the last checkpoint's.
    try session.query(
      """
      SELECT (pg_control_system()).system_identifier::text || ' '
        || left(pg_walfile_name(pg_current_wal_lsn()), 8)
      """,
      []
    ) { $0.text(0) }.first ?? ""
  }

  /// Begins a new incarnation if the PostgreSQL server's history is another one.
  private func confirmOrigin() throws {
    let losses = pool.losses
    let incarnation = try pool.use { connection in
      try connection.transaction {
        let facts = ServiceFacts(session: PostgreSQLSession(connection: connection))
        try facts.settle(in: try Self.origin(facts.session), effects.randomness)
        return try facts.incarnation(effects.randomness)
      }
    }
    adopt(incarnation)
    confirmedLosses.withLock { $0 = max($0, losses) }
  }

  /// Adopts the incarnation of the PostgreSQL server.
  ///
  /// Another incarnation has another history, which may lack the partitions, schemas, sessions
  /// and keys in this process's caches.
  private func adopt(_ incarnation: String) {
    let isOther = identity.withLock { identity in
      defer { identity = incarnation }
      return identity != incarnation
    }
    guard isOther else { return }
    partitions.removeAll()
    schemas.removeAll()
    notifications.notify(.directory)
  }

  /// Reads the service's own state again.
  private func checkService() throws {
    do {
      try confirmOrigin()
      let incarnation = try reading { connection in
        let session = PostgreSQLSession(connection: connection)
        try format.check(session)
        return try ServiceFacts(session: session).incarnation(effects.randomness)
      }
      adopt(incarnation)
      try detectCluster()
    } catch let error as StorageVersionError {
      outdated.withLock { $0 = error }
    }
  }

  package var connections: StorageConnections? {
    let counts = pool.counts
    return StorageConnections(used: counts.used, idle: counts.idle, opened: counts.opened)
  }

  package func beginNewIncarnation() throws {
    let next = try writing { try ServiceFacts(session: $0).beginNewIncarnation(effects.randomness) }
    identity.withLock { $0 = next }
    notifications.notify(.directory)
  }

  package func branchOff() throws {
    let next = try writing { try ServiceFacts(session: $0).branchOff(effects.randomness) }
    identity.withLock { $0 = next }
    notifications.notify(.directory)
  }

  package func contains(
    _ incarnation: String,
    of partition: PartitionID,
    through change: ChangeNumber
  ) throws -> Bool {
    let branch = try branches.branch(incarnation, in: self.incarnation) {
      try reading {
        try ServiceFacts(session: PostgreSQLSession(connection: $0)).branch(incarnation)
      }
    }
    return branch?.counter(of: partition).map { change <= $0 } ?? false
  }

  package func changeFingerprints<Result>(
    _ body: (inout StorageFingerprints) throws -> Result
  ) throws -> Result {
    try writing { session in
      try session.lockService()
      return try ServiceFacts(session: session).changeFingerprints(body)
    }
  }

  // MARK: Reading and writing

  package func read<Result>(
    prefetching reads: [PrefetchedRead],
    control: ReadControl?,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try control?.check()
    let isCluster = isCluster.withLock { $0 }
    // On a cluster reads are sequential: the counter must be older than what is read with it.
    let statements = isCluster ? [] : reads.map { $0.statement(.postgreSQL) }
    for statement in statements { try SQLValue.check(statement.values) }
    return try reading { connection in
      try controlled(connection, control) {
        let results = try connection.query(
          statements.map { ($0.sql, $0.values.map(\.postgreSQL)) }
        )
        return try body(
          SQLSnapshot(
            connection: PostgreSQLSession(
              connection: connection,
              prefetched: Dictionary(zip(statements, results)) { $1 }
            ),
            schemas: schemas,
            readGuard: isCluster ? ClusterReadGuard() : nil
          )
        )
      }
    }
  }

  /// Cancels the running statement when the control is cancelled.
  private func controlled<Result>(
    _ connection: PostgreSQLConnection,
    _ control: ReadControl?,
    _ body: () throws -> Result
  ) throws -> Result {
    guard let control else { return try body() }
    let stop = StatementStop(connection.canceller)
    defer { stop.end() }
    do {
      return try control.stopping(by: { [stops] in stops.async { stop.run() } }, body)
    } catch let error as PostgreSQLError where error.isTimeout && control.isOver {
      throw ReadOver()
    }
  }

  private func reading<Result>(_ body: (PostgreSQLConnection) throws -> Result) throws -> Result {
    try translating { connection in
      try connection.transaction(.snapshot) { try body(connection) }
    }
  }

  private func writing<Result>(_ body: (PostgreSQLSession) throws -> Result) throws -> Result {
    try translating { connection in
      try connection.transaction { try body(PostgreSQLSession(connection: connection)) }
    }
  }

  /// Retries the body after deadlocks and lost connections, and maps the final error to a reply.
  private func translating<Result>(
    _ body: (PostgreSQLConnection) throws -> Result
  ) throws -> Result {
    if let error = outdated.withLock({ $0 }) { throw error }
    var retries = PostgreSQLRetries()
    while true {
      do {
        if confirmedLosses.withLock({ $0 }) < pool.losses { try confirmOrigin() }
        return try pool.use(body)
      } catch let error as PostgreSQLError {
        if error.isUniqueViolation { throw ExpectationFailed(what: error.message) }
        guard !retries.repeats(after: error) else { continue }
        throw PostgreSQLRetries.reply(to: error) ?? StorageFailure(kind: .other, cause: error)
      }
    }
  }

  package func commit(_ batch: WriteBatch) throws {
    do {
      try writing { try SQLCommit(session: $0, batch: batch).run() }
    } catch let error as ExpectationFailed {
      // A partition that is missing in the database is looked up again.
      if error == .partition { partitions.forget(batch.partition) }
      throw error
    }
    if batch.event != nil { notifications.notify(.events) }
    if batch.endsContainer {
      forgetContainers()
      notifications.notify(.containers)
    } else if batch.changesCachedDirectory {
      notifications.notify(.directory)
    } else if !batch.removedDevices.isEmpty {
      notifications.notify(.devices)
    }
  }

  package func knownPartition(_ key: PartitionKey) throws -> PartitionID? {
    if let known = partitions[key] { return known }
    let id = try reading {
      try PartitionDirectory(session: PostgreSQLSession(connection: $0)).find(key)
    }
    if let id { partitions.remember(id, for: key) }
    return id
  }

  package func partition(_ key: PartitionKey) throws -> PartitionID {
    var id = try knownPartition(key)
    // A random number that another partition already has is very unlikely; the creation is retried.
    while id == nil {
      id = try writing { try PartitionDirectory(session: $0).make(key, effects.randomness) }
    }
    guard let id else { throw ExpectationFailed.partition }
    partitions.remember(id, for: key)
    return id
  }

  package func fillIndex(
    in partition: PartitionID,
    type: String,
    field: String,
    limit: Int,
    entries: (StoredRecord) throws -> [IndexKey]
  ) throws -> Bool {
    func filling<Session: SQLSession>(_ session: Session) -> IndexFilling<Session> {
      IndexFilling(session: session, partition: partition, type: type, field: field)
    }
    typealias Filling = IndexFilling<PostgreSQLSession>
    let found = try reading { connection -> (Filling.Progress, Filling.Page)? in
      let step = filling(PostgreSQLSession(connection: connection))
      guard let progress = try step.progress() else { return nil }
      guard !progress.isReady else { return (progress, Filling.Page(records: [], isLast: true)) }
      return (progress, try step.page(after: progress, limit: limit))
    }
    guard let (progress, page) = found else {
      try writing { try filling($0).begin() }
      return false
    }
    guard !progress.isReady else { return true }
    // Other transactions write while the keys are computed.
    let keys = try page.records.map(entries)
    return try writing { try filling($0).add(page, keys, after: progress) }
  }

  // MARK: Events

  package func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    let events = try reading {
      try SQLEvents(session: PostgreSQLSession(connection: $0))
        .events(after: position, limit: limit)
    }
    if isCluster.withLock({ $0 }) { try awaitCommits(of: Set(events.map(\.partition))) }
    return events
  }

  /// A commit across two machines ends on the coordinator, which has the events, before the other
  /// machine shows its rows; until then that machine locks the row of the database's counter.
  ///
  /// A client that is notified of a change reads at once, and must find it.
  private func awaitCommits(of partitions: Set<PartitionID>) throws {
    for partition in partitions {
      try writing { session in
        _ = try session.query(
          "SELECT 1 FROM databases WHERE partition = $1 FOR UPDATE",
          [.integer(partition.rawValue)]
        ) { _ in }
      }
    }
  }

  package func newestEvent() throws -> EventPosition {
    try reading { try SQLEvents(session: PostgreSQLSession(connection: $0)).newest() }
  }

  package func forgetEvents(before time: Int64) throws {
    try writing { try SQLEvents(session: $0).forget(before: time) }
  }

  package func listen(_ body: @escaping @Sendable (StorageEvent) -> Void) {
    notifications.listen { [weak self] event in
      if event == .containers { self?.forgetContainers() }
      body(event)
    }
  }

  private func forgetContainers() {
    partitions.removeAll()
    schemas.removeAll()
  }

  // MARK: Copies

  package func copy(to file: URL) throws {
    try reading { connection in
      // Whole tables are read.
      try connection.queue("SET LOCAL statement_timeout = 0")
      // Removes the file of an earlier attempt whose connection was lost.
      try? FileManager.default.removeItem(at: file)
      PrivateFile.make(file.path)
      let target = try SQLiteConnection(path: file.path)
      try target.transaction {
        let session = SQLiteSession(connection: target)
        try StorageFormat.current.prepare(session)
        try TableCopy(source: PostgreSQLSession(connection: connection), target: session).run()
      }
    }
    let handle = try FileHandle(forUpdating: file)
    try handle.synchronize()
    try handle.close()
  }

  /// Imports all of another storage in one transaction, as a new incarnation.
  ///
  /// Everything that this storage signed before becomes invalid: close it, and open another.
  func takeIn(_ other: SQLiteStorage) throws {
    try other.lend { source in
      try writing { session in
        try session.run("SET LOCAL statement_timeout = 0", [])
        let copy = TableCopy(source: source, target: session)
        guard try copy.isTargetEmpty() else {
          throw BackupError(description: "The database is not empty; a backup goes into a new one.")
        }
        try copy.run()
        // The restored server has its own asset store, which its first start registers.
        try ServiceFacts(session: session).changeFingerprints { $0.assetStore = nil }
        _ = try ServiceFacts(session: session).branchOff(effects.randomness)
      }
    }
  }

  package func close() {
    notifications.stop()
    pool.close()
  }
}
