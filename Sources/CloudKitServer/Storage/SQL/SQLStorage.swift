import CloudKitWebServices
import Effects
import Foundation

/// The behavior that the engines have in common, above transactions of their own: incarnations,
/// partitions, the filling of indexes and stored events.
///
/// Each engine implements the rest: opening, reading with a control, committing, listening and
/// copying.
protocol SQLStorage: Storage {
  associatedtype Session: SQLSession

  var effects: Effects { get }
  var identity: StorageIdentity { get }
  var caches: StorageCaches { get }

  /// Runs the body on one consistent view.
  func reading<Result>(_ body: (Session) throws -> Result) throws -> Result

  /// Runs the body in a transaction that is durable when the call returns.
  func writing<Result>(_ body: (Session) throws -> Result) throws -> Result

  /// Notifies the other servers of the same data, if the engine can have any.
  func notifyOtherServers(of event: StorageEvent)
}

// MARK: Incarnations

extension SQLStorage {
  package var incarnation: String { identity.incarnation }

  package func beginNewIncarnation() throws {
    try replaceIncarnation { try $0.beginNewIncarnation(effects.randomness) }
  }

  package func branchOff() throws {
    try replaceIncarnation { try $0.branchOff(effects.randomness) }
  }

  private func replaceIncarnation(_ next: (ServiceFacts<Session>) throws -> String) throws {
    let incarnation = try writing { try next(ServiceFacts(session: $0)) }
    _ = identity.adopt(incarnation)
    notifyOtherServers(of: .directory)
  }

  package func contains(
    _ incarnation: String,
    of partition: PartitionID,
    through change: ChangeNumber
  ) throws -> Bool {
    let branch = try caches.branches.branch(incarnation, in: self.incarnation) {
      try reading { try ServiceFacts(session: $0).branch(incarnation) }
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
}

// MARK: Partitions and indexes

extension SQLStorage {
  package func knownPartition(_ key: PartitionKey) throws -> PartitionID? {
    if let known = caches.partitions[key] { return known }
    let id = try reading { try PartitionDirectory(session: $0).find(key) }
    if let id { caches.partitions.remember(id, for: key) }
    return id
  }

  package func partition(_ key: PartitionKey) throws -> PartitionID {
    if let known = try knownPartition(key) { return known }
    // A random number that another partition already has is very unlikely; the creation is repeated
    // then.
    for _ in 0..<16 {
      let made = try writing { try PartitionDirectory(session: $0).make(key, effects.randomness) }
      guard let made else { continue }
      caches.partitions.remember(made, for: key)
      return made
    }
    throw ExpectationFailed.partition
  }

  package func fillIndex(
    in partition: PartitionID,
    type: String,
    field: String,
    limit: Int,
    entries: (StoredRecord) throws -> [IndexKey]
  ) throws -> Bool {
    typealias Filling = IndexFilling<Session>
    func filling(_ session: Session) -> Filling {
      Filling(session: session, partition: partition, type: type, field: field)
    }
    let found = try reading { session -> (Filling.Progress, Filling.Page)? in
      let step = filling(session)
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
}

// MARK: Events

extension SQLStorage {
  package func newestEvent() throws -> EventPosition {
    try reading { try SQLEvents(session: $0).newest() }
  }

  package func forgetEvents(before time: Int64) throws {
    try writing { try SQLEvents(session: $0).forget(before: time) }
  }
}
