import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import WatershedSQLite

/// The embedded storage: one SQLite file in WAL mode; a commit is acknowledged when it is on the
/// disk.
package final class SQLiteStorage: SQLStorage {
  package let secret: Data?
  let effects: Effects
  let identity: StorageIdentity
  let caches = StorageCaches()
  private let writer: SQLiteConnection
  /// Guards the writer; readers use their own connections.
  private let writerLock = NSRecursiveLock()
  /// Nil for a database in memory; guarded by `writerLock`.
  private let tally: CommitTally?
  /// Nil for a database in memory.
  private let path: String?
  /// Nil for a database in memory, whose writer also reads.
  private let readers: SQLiteReaderPool?
  private let queue = CommitQueue()
  private let listener = Mutex<(@Sendable (StorageEvent) -> Void)?>(nil)

  /// The settings of the writing connection.
  ///
  /// A page that several commits change is copied from the log once for all of them, and recently
  /// changed pages are still in memory; the numbers are pages and kibibytes.
  package static let writerSettings = """
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16000
    """

  /// Batches are decided concurrently; the file has one writer, which takes all queued batches at
  /// once.
  package var writerCount: Int { readers == nil ? 1 : 16 }

  /// Opens or creates the file in `folder`; nil keeps everything in memory.
  package convenience init(folder: URL?, effects: Effects) throws {
    try self.init(folder: folder, effects: effects, format: .current)
  }

  init(folder: URL?, effects: Effects, format: StorageFormat) throws {
    self.effects = effects
    if let folder {
      try PrivateFile.makeFolder(folder)
      let path = folder.appendingPathComponent("watershed.sqlite").path
      self.path = path
      // SQLite gives its log the same permissions and owner.
      PrivateFile.make(path)
      // SQLite follows links, and creates the missing file to which one leads.
      try OpenFolder.refuseForeignLink(URL(fileURLWithPath: path))
      writer = try SQLiteConnection(path: path)
      try writer.execute(Self.writerSettings)
      readers = SQLiteReaderPool {
        let reader = try SQLiteConnection(path: path, mode: .readOnly)
        try reader.execute("PRAGMA query_only = ON")
        return reader
      }
    } else {
      writer = try SQLiteConnection(path: ":memory:")
      path = nil
      readers = nil
    }
    let session = SQLiteSession(connection: writer)
    let facts = ServiceFacts(session: session)
    let kept = try writer.transaction {
      if let folder, try format.isMissing(session) { try OrphanedFolder.refuse(folder) }
      try format.prepare(session)
      let secret = try facts.secret
      var incarnation = try facts.incarnation(effects.randomness)
      var count: Int64 = 0
      if let folder {
        let (known, beside) = (try facts.commitCount(), try CommitTally.read(in: folder))
        if known < beside { incarnation = try facts.branchOff(effects.randomness) }
        count = max(known, beside) + 1
        try facts.setCommitCount(count)
      }
      return (secret: secret, incarnation: incarnation, count: count)
    }
    secret = kept.secret
    identity = StorageIdentity(kept.incarnation)
    // Created after the commit: a server that stops between the two is not taken for an older copy.
    tally = try folder.map { try CommitTally(in: $0, kept.count) }
  }

  // MARK: Reading and writing

  /// A read is a function call, prefetched or not.
  package func read<Result>(
    prefetching reads: [PrefetchedRead],
    control: ReadControl?,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try reading { session in
      try Self.controlled(session.connection, control) {
        try body(SQLSnapshot(connection: session, schemas: caches.schemas))
      }
    }
  }

  /// Interrupts a running statement when the control is cancelled.
  private static func controlled<Result>(
    _ connection: SQLiteConnection,
    _ control: ReadControl?,
    _ body: () throws -> Result
  ) throws -> Result {
    guard let control else { return try body() }
    do {
      return try connection.interrupting(when: { control.isOver }, body)
    } catch let error as SQLiteError where error.isInterrupted {
      throw ReadOver()
    }
  }

  func reading<Result>(_ body: (SQLiteSession) throws -> Result) throws -> Result {
    try StorageFailure.converting {
      guard let readers else {
        return try writerLock.withLock { try body(SQLiteSession(connection: writer)) }
      }
      return try readers.read { reader in
        try reader.transaction(.deferred) { try body(SQLiteSession(connection: reader)) }
      }
    }
  }

  func writing<Result>(_ body: (SQLiteSession) throws -> Result) throws -> Result {
    try StorageFailure.converting { try writeInLock(body) }
  }

  private func writeInLock<Result>(_ body: (SQLiteSession) throws -> Result) throws -> Result {
    try writerLock.withLock {
      var count: Int64 = 0
      let result = try writer.transaction {
        do {
          let session = SQLiteSession(connection: writer)
          let result = try body(session)
          if tally != nil { count = try ServiceFacts(session: session).countCommit() }
          return result
        } catch let error as SQLiteError where error.isConstraint {
          throw ExpectationFailed(what: error.message)
        }
      }
      tally?.note(count)
      return result
    }
  }

  package func commit(_ batch: WriteBatch) throws {
    try caches.committing(batch) {
      if readers == nil {
        try writing { try SQLCommit(session: $0, batch: batch).run() }
      } else {
        try queue.commit(batch, by: commit)
      }
    }
    if batch.event != nil { listener.withLock { $0 }?(.events) }
  }

  /// Commits the queued batches: one wait for the disk serves all of them.
  private func commit(_ batches: [CommitQueue.Entry]) {
    if batches.count > 1, commitTogether(batches) { return }
    for entry in batches {
      entry.outcome = Result {
        try writing { try SQLCommit(session: $0, batch: entry.batch).run() }
      }
    }
  }

  /// Writes all batches whose expectations hold in one transaction, in their order; false if
  /// writing one of them failed, and the transaction was rolled back.
  private func commitTogether(_ batches: [CommitQueue.Entry]) -> Bool {
    var refused: [ObjectIdentifier: ExpectationFailed] = [:]
    do {
      try writing { session in
        for entry in batches {
          let commit = SQLCommit(session: session, batch: entry.batch)
          do {
            try commit.check()
          } catch let error as ExpectationFailed {
            refused[ObjectIdentifier(entry)] = error
            continue
          }
          try commit.write()
        }
      }
    } catch {
      // The failing batch is found by writing each one alone.
      return false
    }
    for entry in batches {
      entry.outcome = refused[ObjectIdentifier(entry)].map { .failure($0) } ?? .success(())
    }
    return true
  }

  // MARK: Events

  package func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    try reading { try SQLEvents(session: $0).events(after: position, limit: limit) }
  }

  package func listen(_ body: @escaping @Sendable (StorageEvent) -> Void) {
    listener.withLock { $0 = body }
  }

  /// The file has one server.
  func notifyOtherServers(of event: StorageEvent) {}

  package func copy(to file: URL) throws {
    // SQLite copies into a file that is empty.
    PrivateFile.make(file.path)
    guard let path else { return try writerLock.withLock { try writer.copy(to: file.path) } }
    // A reader's connection of its own: the log lets writers commit while it copies.
    try SQLiteConnection(path: path, mode: .readOnly).copy(to: file.path)
  }

  package func close() {
    listener.withLock { $0 = nil }
    readers?.drain()
    writerLock.withLock {
      // Leaves one file instead of three; the log is durable either way.
      if readers != nil { try? writer.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
    }
  }
}
