import Foundation
import Synchronization
import WatershedSQLite

/// A context's reading of one store during one of its turns: many faults in one read transaction.
///
/// Beginning and ending a transaction costs as much as reading a small row: locks on the log's
/// index, and a look whether it has grown. So a session keeps its transaction from one fault to the
/// next. What it shows is never older than a read of its own would be, as far as this process
/// knows: it begins anew after each commit that this process made or noticed, at each fetch, and
/// after so many reads that those of others are seen soon. It ends with the turn, so that it does
/// not hold up the log.
///
/// Only a store with a write-ahead log has sessions: elsewhere readers would keep writers waiting.
final class StoreSession: RowStore, @unchecked Sendable {
  // Sendable: `lock` guards what changes.

  private let store: SQLiteStore
  private let lock = NSRecursiveLock()
  private let expired = Atomic<Bool>(false)
  /// Nil until the first read, and once the session has ended.
  private var connection: StoreConnection?
  /// The row cache's age and epoch when the transaction began.
  private var age = 0
  private var epoch = 0
  private var reads = 0
  /// How many reads are going on, one inside the other.
  private var depth = 0

  /// So many reads share a transaction: its cost is spread thinly enough.
  static let readLimit = 256

  init(store: SQLiteStore) {
    self.store = store
  }

  /// Whether the store has been closed meanwhile.
  var isExpired: Bool { expired.load(ordering: .relaxed) }

  /// Whether the session reads this store.
  func reads(_ rows: any RowStore) -> Bool { rows === store }

  /// Gives the connection back, and lets go of the one that writes.
  func end() {
    lock.withLock { giveBack() }
    store.endWriterReading()
  }

  /// The store is being closed; a read that is going on is waited for.
  func expire() {
    expired.store(true, ordering: .relaxed)
    end()
  }

  /// Gives the connection back unless a read is going on; the next read takes one again.
  func letGoIfIdle() {
    guard lock.try() else { return }
    defer { lock.unlock() }
    if depth == 0 { giveBack() }
  }

  private func giveBack() {
    guard let connection else { return }
    self.connection = nil
    store.forget(session: self)
    store.giveBack(generation: connection)
  }

  /// The connection in its transaction, which is begun anew where it may be old.
  private func current() throws -> StoreConnection? {
    if depth > 0, let connection { return connection }
    if let connection {
      if age == store.cache.age, reads < Self.readLimit { return connection }
      try connection.connection.run("COMMIT")
      try begin(connection)
      return connection
    }
    guard !isExpired, let taken = try store.takeReader() else { return nil }
    connection = taken
    store.keep(session: self)
    try begin(taken)
    return taken
  }

  private func begin(_ connection: StoreConnection) throws {
    // Read before the transaction begins: what is committed in between makes it look old.
    age = store.cache.age
    epoch = store.cache.epoch
    reads = 0
    try connection.connection.run("BEGIN")
  }

  // MARK: Reading

  func row(_ reference: RowReference) throws -> RowAnswer { try store.row(reference, by: self) }

  func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    try store.rows(references, by: self)
  }

  func orderedRows(_ references: [RowReference]) throws -> [Row?] {
    try store.orderedRows(references, by: self)
  }

  func passingRows(_ references: [RowReference]) throws -> [Row?] {
    try store.orderedRows(references, by: self, isCaching: false)
  }

  func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try reading { connection, _ in
      try store.readDestinations(of: relationship, from: sources, on: connection)
    }
  }

  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> DestinationLists {
    try reading { connection, _ in
      try store.readDestinationLists(of: relationship, from: sources, on: connection)
    }
  }

  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    bringing rows: RowBringing
  ) throws -> DestinationLists {
    try reading { connection, epoch in
      try store.readDestinationLists(
        of: relationship,
        from: sources,
        on: connection,
        bringing: rows,
        cachingAt: epoch
      )
    }
  }

  func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember]
  ) throws {
    try store.appendMembers(ofToMany: index, from: source, to: &members, by: self)
  }

  /// A fetch always sees what is newest.
  func fetch(_ request: RowFetch) throws -> RowFetchResult {
    store.noticeForeignCommitsBeforeReading()
    beginAnew()
    return try reading { connection, epoch in
      try store.fetch(request, from: connection, cachingAt: epoch)
    }
  }

  func referenceList(_ request: RowFetch) throws -> ReferenceList {
    store.noticeForeignCommitsBeforeReading()
    beginAnew()
    return try reading { connection, _ in try store.readReferences(request, from: connection) }
  }

  /// The next read sees what is newest.
  private func beginAnew() {
    lock.withLock { reads = Self.readLimit }
    store.endWriterReading()
  }

  func cachedRow(_ reference: RowReference) -> Row? { store.cachedRow(reference) }

  func forget(_ references: [RowReference]) { store.forget(references) }

  // MARK: The store's own

  func number(of entity: NSEntityDescription) throws -> Int32 { try store.number(of: entity) }

  func layout(number: Int32) -> EntityLayout? { store.layout(number: number) }

  func reserveKeys(for entity: NSEntityDescription, count: Int) throws -> Range<Int64> {
    try store.reserveKeys(for: entity, count: count)
  }

  func commit(_ changes: RowChanges) throws -> RowCommit { try store.commit(changes) }

  func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit {
    try store.commit(changes, announcements, before: rest)
  }

  func observeCommits(_ observer: @escaping @Sendable (StoreCommit) -> Void) {
    store.observeCommits(observer)
  }
}

extension StoreSession: ReadSource {
  var isSession: Bool { true }

  func reading<Result>(_ body: (StoreConnection, Int) throws -> Result) throws -> Result {
    try lock.withLock {
      do {
        return try store.translating("reading") {
          guard let connection = try current() else { throw store.closedError }
          reads += 1
          depth += 1
          defer { depth -= 1 }
          return try body(connection, epoch)
        }
      } catch {
        // Whatever went wrong, the next read begins anew.
        if depth == 0 { giveBack() }
        throw error
      }
    }
  }
}

extension NSManagedObjectContext {
  /// What a turn reads a store through; nil where each read stands for itself.
  ///
  /// Outside a turn nothing would end a session.
  func session(of binding: StoreBinding) -> StoreSession? {
    guard performDepth > 0 else { return nil }
    if let readSession, readSessionBinding === binding, !readSession.isExpired {
      return readSession
    }
    guard let store = binding.rows as? SQLiteStore, store.keepsSessions else { return nil }
    endReading()
    let made = StoreSession(store: store)
    readSession = made
    readSessionBinding = binding
    return made
  }

  /// Lets go of what the turn read through.
  func endReading() {
    guard let session = readSession else { return }
    readSession = nil
    readSessionBinding = nil
    session.end()
  }
}
