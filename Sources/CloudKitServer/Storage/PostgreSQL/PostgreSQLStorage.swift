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
package final class PostgreSQLStorage: SQLStorage {
  package let secret: Data?
  let effects: Effects
  let identity: StorageIdentity
  let caches = StorageCaches()
  private let pool: PostgreSQLPool
  private let format: StorageFormat
  private let notifications: PostgreSQLNotifications
  /// Whether this is a cluster's coordinator; checked again with each poll.
  private let isCluster = Mutex(false)
  /// The lane for cancel requests, which wait for the server.
  private let stops: Lane
  /// Set when another server's migration removed what this version needs.
  private let outdated = Mutex<StorageVersionError?>(nil)

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
        try connection.liftLimits()
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
    identity = StorageIdentity(facts.incarnation)
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
      try $0.connection.query("SELECT 1 WHERE to_regclass('pg_dist_partition') IS NOT NULL").count
        > 0
    }
    isCluster.withLock { $0 = found }
  }

  /// Identifies the history of commits: a server that was restored elsewhere, from a backup or to
  /// an earlier time, or a standby that took over, has another one.
  private static func origin(_ session: PostgreSQLSession) throws -> String {
    try session.query("SELECT \(historyText)", []) { $0.text(0) }.first ?? ""
  }

  /// The timeline of the current log; the control file has the last checkpoint's.
  private static let historyText = """
    (pg_control_system()).system_identifier::text || ' '
      || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    """

  /// Begins a new incarnation if the history of the PostgreSQL server at the end of the connection is
  /// another one.
  ///
  /// Each connection is confirmed before its first use: of several hosts in a URL it may lead to a
  /// standby that took over while the connections to the former server only hang.
  private func confirmOrigin(of connection: PostgreSQLConnection) throws {
    // Without a lock and a transaction number: while the database accepts no writes, it is read.
    let found = try connection.query(
      """
      SELECT \(Self.historyText),
        (SELECT value FROM service WHERE name = 'origin'),
        (SELECT value FROM service WHERE name = 'incarnation')
      """
    )[0]
    let incarnation: String
    if let known = found.optionalBlob(2), found.optionalBlob(1) == Data(found.text(0).utf8) {
      incarnation = String(decoding: known, as: UTF8.self)
    } else {
      incarnation = try connection.transaction {
        let facts = ServiceFacts(session: PostgreSQLSession(connection: connection))
        try facts.settle(in: try Self.origin(facts.session), effects.randomness)
        return try facts.incarnation(effects.randomness)
      }
    }
    // The answer of a former server, which may have hung until now, changes nothing.
    try pool.checkGeneration(of: connection)
    adopt(incarnation, from: connection)
    connection.isConfirmed = true
  }

  /// Adopts the incarnation of the PostgreSQL server.
  ///
  /// Another incarnation has another history, which may lack the partitions, schemas, sessions
  /// and keys in this process's caches. All other connections may lead to the former server, the one
  /// for notifications too; a poll replaces that one.
  private func adopt(_ incarnation: String, from connection: PostgreSQLConnection) {
    guard identity.adopt(incarnation) else { return }
    pool.beginGeneration(with: connection)
    caches.forgetContainers()
    notifications.notify(.directory)
    // The service ignores what a lane of its writers notes, since each commit of its own is followed by
    // a call for what it changed. This one is not.
    effects.tasks.spawn { [notifications] in notifications.notify(.directory) }
  }

  /// The longest silence of the server during a poll, in seconds.
  private static let pollAnswerLimit = 15.0

  /// Reads the service's own state again.
  private func checkService() throws {
    do {
      // Idle connections may lead to a server that hangs: the next ones are opened soon.
      try pool.use(answerLimit: Self.pollAnswerLimit) { try confirmOrigin(of: $0) }
      try reading { session in
        try format.check(session)
        let incarnation = try ServiceFacts(session: session).incarnation(effects.randomness)
        adopt(incarnation, from: session.connection)
      }
      try detectCluster()
    } catch let error as StorageVersionError {
      outdated.withLock { $0 = error }
    }
  }

  package var connections: StorageConnections? {
    let counts = pool.counts
    return StorageConnections(used: counts.used, idle: counts.idle, opened: counts.opened)
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
    return try reading { session in
      let connection = session.connection
      return try controlled(connection, control) {
        let results = try connection.query(
          statements.map { ($0.sql, $0.values.map(\.postgreSQL)) }
        )
        return try body(
          SQLSnapshot(
            connection: PostgreSQLSession(
              connection: connection,
              prefetched: Dictionary(zip(statements, results)) { $1 }
            ),
            schemas: caches.schemas,
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

  func reading<Result>(_ body: (PostgreSQLSession) throws -> Result) throws -> Result {
    try translating { connection in
      try connection.transaction(.snapshot) { try body(PostgreSQLSession(connection: connection)) }
    }
  }

  func writing<Result>(_ body: (PostgreSQLSession) throws -> Result) throws -> Result {
    try translating { connection in
      try connection.transaction {
        let result = try body(PostgreSQLSession(connection: connection))
        // Written again instead of to a former server, which may have hung until now.
        try pool.checkGeneration(of: connection)
        return result
      }
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
        return try pool.use { connection in
          if !connection.isConfirmed { try confirmOrigin(of: connection) }
          return try body(connection)
        }
      } catch let error as PostgreSQLError {
        if error.isUniqueViolation { throw ExpectationFailed(what: error.message) }
        guard !retries.repeats(after: error) else { continue }
        throw PostgreSQLRetries.reply(to: error) ?? StorageFailure(kind: .other, cause: error)
      }
    }
  }

  package func commit(_ batch: WriteBatch) throws {
    try caches.committing(batch) { try writing { try SQLCommit(session: $0, batch: batch).run() } }
    if batch.event != nil { notifications.notify(.events) }
    if batch.endsContainer {
      notifications.notify(.containers)
    } else if batch.changesCachedDirectory {
      notifications.notify(.directory)
    } else if !batch.removedDevices.isEmpty {
      notifications.notify(.devices)
    }
  }

  // MARK: Events

  package func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    let events = try reading { try SQLEvents(session: $0).events(after: position, limit: limit) }
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

  package func listen(_ body: @escaping @Sendable (StorageEvent) -> Void) {
    notifications.listen { [weak self] event in
      if event == .containers { self?.caches.forgetContainers() }
      body(event)
    }
  }

  func notifyOtherServers(of event: StorageEvent) { notifications.notify(event) }

  // MARK: Copies

  package func copy(to file: URL) throws {
    try reading { source in
      // Whole tables are read.
      try source.connection.liftLimits()
      // Removes the file of an earlier attempt whose connection was lost.
      try? FileManager.default.removeItem(at: file)
      PrivateFile.make(file.path)
      let target = try SQLiteConnection(path: file.path)
      try target.transaction {
        let session = SQLiteSession(connection: target)
        try StorageFormat.current.prepare(session)
        try TableCopy(source: source, target: session).run()
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
    try other.reading { source in
      try writing { session in
        try session.connection.liftLimits()
        let copy = TableCopy(source: source, target: session)
        guard try copy.isTargetEmpty() else {
          throw Self.notEmpty
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
