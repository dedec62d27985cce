import CloudKitWebServices
import Foundation

/// The one seam between the service and what keeps its data.
///
/// A write is: load the keys it touches, decide purely, commit if what was expected still holds.
/// When it does not, the whole is run again. Every call is synchronous and takes whole batches.
package protocol Storage: Sendable {
  /// Changes when the data was replaced by an older copy.
  var incarnation: String { get }
  /// Signs tokens and capability URLs.
  var secret: Data? { get }
  /// How many commits can be under way at a time.
  var writerCount: Int { get }

  /// Runs the body on one consistent view, until it returns or the control ends it with `ReadOver`.
  ///
  /// Where asking is a trip to another process, the questions that are foreseen take one trip, and
  /// each other one takes its own.
  func read<Result>(
    foreseeing reads: [ForeseenRead],
    control: ReadControl?,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result

  /// Writes all of the batch durably, or throws and writes nothing.
  func commit(_ batch: WriteBatch) throws

  /// The partition of a key, made when it is met for the first time.
  func partition(_ key: PartitionKey) throws -> PartitionID

  /// The partition of a key; nil where none was made.
  func knownPartition(_ key: PartitionKey) throws -> PartitionID?

  /// Goes a step further with an index over a type's field, and tells whether it is ready.
  ///
  /// The first step lets every writer keep it; each further one takes in so many of the records
  /// there are. Others read and write between the steps.
  func fillIndex(
    in partition: PartitionID,
    type: String,
    field: String,
    limit: Int,
    entries: (StoredRecord) throws -> [IndexKey]
  ) throws -> Bool

  /// Commit events after a position, oldest first.
  ///
  /// None ever appears later behind one that was returned: what is returned is complete.
  func events(after position: EventPosition, limit: Int) throws -> [StoredEvent]

  /// Where who only wants news begins.
  func newestEvent() throws -> EventPosition

  /// Forgets events that were committed before a time, in milliseconds since 1970.
  func forgetEvents(before time: Int64) throws

  /// Calls the body soon after commits, this process's and others', and now and then besides; one
  /// call may stand for many commits.
  func listen(_ body: @escaping @Sendable (StorageNews) -> Void)

  /// Begins an incarnation with which no change token can be continued.
  func beginNewIncarnation() throws

  /// Begins an incarnation for data that an older copy replaced: change tokens that know no more than the
  /// data can be continued.
  func branchOff() throws

  /// Whether what a former incarnation had in a partition up to a change is in this one.
  func contains(
    _ incarnation: String,
    of partition: PartitionID,
    through change: ChangeNumber
  ) throws -> Bool

  /// Reads the fingerprints of keys and asset store, and keeps what the body makes of them.
  ///
  /// It is one transaction with a lock: of several servers that start at once, each sees what the
  /// one before it has kept. The body can run again after a lost connection.
  func changeFingerprints<Result>(
    _ body: (inout StorageFingerprints) throws -> Result
  ) throws -> Result

  /// Writes a copy of everything, as of one moment, to a file that does not exist yet: an SQLite
  /// database, whatever the storage is kept in.
  func copy(to file: URL) throws
  func close()
}

extension Storage {
  /// Runs the body on one consistent view.
  package func read<Result>(
    foreseeing reads: [ForeseenRead] = [],
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try read(foreseeing: reads, control: nil, body)
  }

  /// Runs the body on one consistent view, until the control ends it.
  func read<Result>(
    _ control: ReadControl,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try read(foreseeing: [], control: control, body)
  }
}

/// What a commit changed that others keep in memory or wait for.
package enum StorageNews: String, Hashable, Sendable, CaseIterable {
  /// There may be new commit events.
  case events
  /// Sessions or keys ended: what is kept of them in memory is to be forgotten.
  case directory
}

/// What a batch was decided on has changed since; decide again.
package struct ExpectationFailed: Error, Hashable, Sendable {
  /// The storage does not have the partition.
  package static let partition = ExpectationFailed(what: "partition")

  package var what: String
}

/// One consistent view of everything that is kept.
package protocol StorageSnapshot {
  // Partition tables
  func database(_ id: PartitionID) throws -> StoredDatabase
  func zones(in id: PartitionID, named names: [String]) throws -> [StoredZone]
  func livingZones(in id: PartitionID) throws -> [StoredZone]
  /// Zones that changed after a position, by change and then by number: the zones that one batch
  /// wrote have one change in common.
  func zones(
    in id: PartitionID,
    changedAfter position: ZoneListPosition,
    limit: Int
  ) throws -> [StoredZone]
  func records(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord]
  func references(in id: PartitionID, to targets: [RecordKey]) throws -> [StoredReference]
  /// The parents of those records that have one.
  func parents(in id: PartitionID, of keys: [RecordKey]) throws -> [RecordKey: String]
  func changes(in id: PartitionID, _ range: ChangeRange) throws -> [RecordRow]
  /// The newest tombstone or departure of each zone among those older than a time, in milliseconds.
  func expiredTraces(in id: PartitionID, before time: Int64) throws -> [ZoneNumber: ChangeNumber]
  func partitions() throws -> [PartitionID]
  func activeIndexes(in id: PartitionID, types: [String]) throws -> [String: Set<String>]
  func children(in id: PartitionID, of parents: [RecordKey]) throws -> [StoredChild]
  /// A zone's living shares.
  func shares(in id: PartitionID, zone: ZoneNumber) throws -> [StoredRecord]
  /// A share's members by where they stand in its feed.
  func members(in id: PartitionID, _ range: ShareRange) throws -> [RecordRow]
  /// A share's departures by when they were.
  func departures(in id: PartitionID, _ range: ShareRange) throws -> [StoredDeparture]
  /// Who was in a share at a moment, by when they came in; the range is about that too.
  ///
  /// For those who are in it still, `exited` is the moment.
  func present(
    in id: PartitionID,
    at moment: ChangeNumber,
    _ range: ShareRange
  ) throws -> [StoredDeparture]
  func isIndexReady(in id: PartitionID, type: String, field: String) throws -> Bool
  /// The entries of a ready index, in its order.
  func entries(in id: PartitionID, _ walk: IndexWalk) throws -> [IndexPosition]
  func reply(
    in id: PartitionID,
    user: String,
    device: String,
    sequence: Int64
  ) throws -> StoredReply?
  /// Whether replies are kept of devices that were silent since a time, in milliseconds.
  func hasReplies(in id: PartitionID, before time: Int64) throws -> Bool
  func subscriptions(in id: PartitionID, user: String) throws -> [StoredSubscription]
  /// Everybody's subscriptions to queries over these types, and to zones and the database.
  func subscriptions(in id: PartitionID, types: [String]) throws -> [OwnedSubscription]
  /// The files that records of a partition use.
  func usedAssets(in id: PartitionID) throws -> Set<String>

  // Directory tables
  func schema(container: String, environment: ContainerEnvironment) throws -> StoredSchema?
  func containers() throws -> [String]
  func partitions(
    container: String,
    environment: ContainerEnvironment
  ) throws -> [PartitionKey: PartitionID]
  func account(id: String) throws -> StoredAccount?
  func account(userName: String) throws -> StoredAccount?
  /// A page of all accounts, by their folded names; nil begins.
  func accounts(after userName: String?, limit: Int) throws -> [StoredAccount]
  func accountCount() throws -> Int
  /// Those with an address, whatever the case of its ASCII letters.
  func accounts(emailAddress: String) throws -> [StoredAccount]
  func user(container: String, account: String) throws -> StoredUser?
  func user(container: String, recordName: String) throws -> StoredUser?
  func shortGUID(_ guid: String) throws -> StoredShortGUID?
  func shareLinks(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> [StoredShareLink]
  func apiToken(digest: String) throws -> StoredAPIToken?
  func apiTokens() throws -> [StoredAPIToken]
  func session(digest: String) throws -> StoredSession?
  func device(token: String) throws -> StoredDevice?
  func devices(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> [StoredDevice]
  func sessions(account: String) throws -> [StoredSession]
  /// An account's users, one for each container it has signed in to.
  func users(account: String) throws -> [StoredUser]
  /// The partitions that belong to a container's user.
  func partitions(container: String, owner: String) throws -> [PartitionKey: PartitionID]
  /// Bytes of everything in a partition that clients can make more of, assets not counted.
  func recordBytes(in id: PartitionID) throws -> Int64
  /// How many records of a type are in a partition.
  func recordCount(in id: PartitionID, type: String) throws -> Int64
  func entry(_ key: DirectoryEntry.Key) throws -> DirectoryEntry?
  func entries(_ range: DirectoryRange) throws -> [DirectoryEntry]
}

/// A place in the list of a database's zones by change.
package struct ZoneListPosition: Hashable, Sendable {
  package var change: ChangeNumber
  /// The zone within the change; all zones of the change come before `.max`.
  package var zone: ZoneNumber

  package init(change: ChangeNumber, zone: ZoneNumber = ZoneNumber(.max)) {
    self.change = change
    self.zone = zone
  }
}

/// A stretch of a zone's changes.
package struct ChangeRange: Hashable, Sendable {
  package var zone: ZoneNumber
  /// Exclusive.
  package var after: ChangeNumber
  /// Inclusive; nil: to the newest.
  package var through: ChangeNumber?
  package var isReversed = false
  package var includesTombstones = true
  package var limit: Int
  /// Records behind so many bytes need not be read, but for the first, which says that there are
  /// some.
  package var bytes = Int.max
}
