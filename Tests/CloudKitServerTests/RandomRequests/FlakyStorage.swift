import Effects
import Foundation
import Synchronization

@testable import CloudKitServer

/// A storage whose next commit fails as a test says, or comes after another server's.
final class FlakyStorage: Storage {
  enum Failure: Hashable {
    /// Nothing is written.
    case before
    /// The batch is written, and the reply is lost.
    case after
  }

  private let base: any Storage
  private typealias Interposed = @Sendable (WriteBatch, any Storage) throws -> Bool

  private let next = Mutex<Failure?>(nil)
  private let interposed = Mutex<Interposed?>(nil)
  private let hidesEvents = Mutex(false)

  private let count: ReadCount?

  init(_ base: any Storage, counting count: ReadCount? = nil) {
    self.base = base
    self.count = count
  }

  /// Makes the next commit fail.
  func failNextCommit(_ failure: Failure) { next.withLock { $0 = failure } }

  /// Makes all reads of events fail, or succeed again.
  func failEvents(_ fails: Bool) { hidesEvents.withLock { $0 = fails } }

  /// Whether a failure is still pending; it is cancelled.
  func calm() -> Bool {
    next.withLock { next in
      defer { next = nil }
      return next != nil
    }
  }

  /// Commits what another server decided before the next commit here that it is about.
  ///
  /// The body returns false to wait for a later commit.
  func interpose(_ body: @escaping @Sendable (WriteBatch, any Storage) throws -> Bool) {
    interposed.withLock { $0 = body }
  }

  private func commitOthers(before batch: WriteBatch) throws {
    let body = interposed.withLock { body in
      defer { body = nil }
      return body
    }
    if let body, try !body(batch, base) { interposed.withLock { $0 = body } }
  }

  func commit(_ batch: WriteBatch) throws {
    try commitOthers(before: batch)
    let failure = next.withLock { next in
      defer { next = nil }
      return next
    }
    if failure == .before { throw ConnectionLost() }
    try base.commit(batch)
    if failure == .after { throw ConnectionLost() }
  }

  struct ConnectionLost: Error {}

  var incarnation: String { base.incarnation }
  var secret: Data? { base.secret }
  var writerCount: Int { base.writerCount }

  func read<Result>(
    prefetching reads: [PrefetchedRead],
    control: ReadControl?,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try base.read(prefetching: reads, control: control) { snapshot in
      guard let count else { return try body(snapshot) }
      count.addRead()
      return try body(CountingSnapshot(base: snapshot, count: count))
    }
  }

  func partition(_ key: PartitionKey) throws -> PartitionID { try base.partition(key) }

  func knownPartition(_ key: PartitionKey) throws -> PartitionID? {
    try base.knownPartition(key)
  }

  func fillIndex(
    in partition: PartitionID,
    type: String,
    field: String,
    limit: Int,
    entries: (StoredRecord) throws -> [IndexKey]
  ) throws -> Bool {
    try base.fillIndex(in: partition, type: type, field: field, limit: limit, entries: entries)
  }

  func events(after position: EventPosition, limit: Int) throws -> [StoredEvent] {
    if hidesEvents.withLock({ $0 }) { throw ConnectionLost() }
    return try base.events(after: position, limit: limit)
  }

  func newestEvent() throws -> EventPosition { try base.newestEvent() }
  func forgetEvents(before time: Int64) throws { try base.forgetEvents(before: time) }
  func listen(_ body: @escaping @Sendable (StorageEvent) -> Void) { base.listen(body) }
  func beginNewIncarnation() throws { try base.beginNewIncarnation() }
  func branchOff() throws { try base.branchOff() }

  func contains(
    _ incarnation: String,
    of partition: PartitionID,
    through change: ChangeNumber
  ) throws -> Bool {
    try base.contains(incarnation, of: partition, through: change)
  }

  func changeFingerprints<Result>(
    _ body: (inout StorageFingerprints) throws -> Result
  ) throws -> Result {
    try base.changeFingerprints(body)
  }

  func copy(to file: URL) throws { try base.copy(to: file) }
  func close() { base.close() }
}
