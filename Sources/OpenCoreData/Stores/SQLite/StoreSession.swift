import Foundation
import Synchronization
import WatershedSQLite

/// A context's reads of one store during one of its turns: many faults are fired in one read
/// transaction.
///
/// Beginning and ending a transaction costs as much as reading a small row: locks on the log's
/// index, and a check whether it has grown. So a session keeps its transaction from one fault to
/// the next. It never shows an older state than a read of its own would, as far as this process
/// knows: it begins a new transaction after each commit that this process made or noticed, at each
/// fetch, and after a number of reads, so that commits of other processes are seen soon. It ends
/// with the turn, so that the log can be checkpointed.
///
/// Only a store with a write-ahead log has sessions: with another journal, readers would block
/// writers.
final class StoreSession: ForwardingRowStore, @unchecked Sendable {
  // Sendable: `lock` guards the mutable state.

  let store: SQLiteStore
  private let lock = NSRecursiveLock()
  private let expired = Atomic<Bool>(false)
  /// Nil until the first read, and once the session has ended.
  private var connection: StoreConnection?
  /// The row cache's age and epoch when the transaction began.
  private var age = 0
  private var epoch = 0
  private var reads = 0
  /// The number of nested reads in progress.
  private var depth = 0

  /// The number of reads that share a transaction before it is renewed: its cost per read is then
  /// small.
  static let readLimit = 256

  init(store: SQLiteStore) {
    self.store = store
  }

  /// Whether the store has been closed since.
  var isExpired: Bool { expired.load(ordering: .relaxed) }

  /// Whether the session reads this store.
  func reads(_ rows: any RowStore) -> Bool { rows === store }

  /// Returns the connection, and ends the writing connection's read transaction.
  func end() {
    lock.withLock { giveBack() }
    store.endWriterReading()
  }

  /// Called when the store is being closed; waits for a read in progress.
  func expire() {
    expired.store(true, ordering: .relaxed)
    end()
  }

  /// Returns the connection unless a read is in progress; the next read takes one again.
  func returnConnectionIfIdle() {
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

  /// The connection in its transaction; a transaction that may be out of date is replaced.
  private func current() throws -> StoreConnection? {
    if depth > 0, let connection { return connection }
    try store.requireOpenedModel()
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
    // Read before the transaction begins: a commit in between then makes the transaction look out
    // of date.
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

  func rows(_ references: [RowReference], _ policy: RowReadPolicy) throws -> [Row?] {
    try store.rows(references, policy, by: self)
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

  /// A fetch always reads the newest state.
  func fetch(_ request: RowFetch) throws -> RowFetchResult {
    store.noticeForeignCommitsBeforeReading()
    renewBeforeNextRead()
    return try reading { connection, epoch in
      try store.fetch(request, from: connection, cachingAt: epoch)
    }
  }

  func referenceList(_ request: RowFetch) throws -> ReferenceList {
    store.noticeForeignCommitsBeforeReading()
    renewBeforeNextRead()
    return try reading { connection, _ in try store.readReferences(request, from: connection) }
  }

  /// Makes the next read begin a new transaction.
  private func renewBeforeNextRead() {
    lock.withLock { reads = Self.readLimit }
    store.endWriterReading()
  }

  func cachedRow(_ reference: RowReference) -> Row? { store.cachedRow(reference) }

  func forget(_ references: [RowReference]) { store.forget(references) }
}

extension StoreSession: ReadSource {
  var isSession: Bool { true }

  func reading<Result>(_ body: (StoreConnection, Int) throws -> Result) throws -> Result {
    try lock.withLock {
      // A nested read is repeated with the one that it is part of.
      guard depth == 0 else { return try read(requiringFiles: false, body) }
      for _ in 1..<MissingLargeValue.attempts {
        do {
          return try read(requiringFiles: true, body)
        } catch is MissingLargeValue {
          continue
        }
      }
      return try read(requiringFiles: false, body)
    }
  }

  private func read<Result>(
    requiringFiles: Bool,
    _ body: (StoreConnection, Int) throws -> Result
  ) throws -> Result {
    do {
      return try store.translating("reading") {
        guard let connection = try current() else { throw store.closedError }
        reads += 1
        depth += 1
        defer { depth -= 1 }
        guard requiringFiles else { return try body(connection, epoch) }
        return try connection.requiringFiles { try body(connection, epoch) }
      }
    } catch {
      // After any error, the next read begins a new transaction.
      if depth == 0 { giveBack() }
      throw error
    }
  }
}

extension NSManagedObjectContext {
  /// The session through which a turn reads a store; nil outside a turn.
  ///
  /// Outside a turn nothing would end a session.
  func session(of binding: StoreBinding) -> StoreSession? {
    guard turnState.isInBlock else { return nil }
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

  /// Ends the sessions of the turn.
  func endReading() {
    guard let session = readSession else { return }
    readSession = nil
    readSessionBinding = nil
    session.end()
  }
}
