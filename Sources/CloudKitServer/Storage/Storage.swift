import CloudKitWebServices
import Foundation

/// The one seam between the service and its storage engines.
///
/// A write loads the keys it touches, decides without side effects, and commits if its expectations
/// still hold. If they do not, it runs again. Every call is synchronous and takes whole batches.
package protocol Storage: Sendable {
  /// Changes when the data was replaced by an older copy.
  var incarnation: String { get }
  /// The secret of earlier versions for signing tokens and capability URLs.
  var secret: Data? { get }
  /// The number of commits that can run concurrently.
  var writerCount: Int { get }

  /// Runs the body on one consistent view, until it returns or the control ends it with `ReadOver`.
  ///
  /// If the engine is another process, the prefetched reads take one round trip, and each other
  /// read takes its own.
  func read<Result>(
    prefetching reads: [PrefetchedRead],
    control: ReadControl?,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result

  /// Writes all of the batch durably, or throws and writes nothing.
  func commit(_ batch: WriteBatch) throws

  /// The partition of a key, created on first use.
  func partition(_ key: PartitionKey) throws -> PartitionID

  /// The partition of a key; nil if it was never created.
  func knownPartition(_ key: PartitionKey) throws -> PartitionID?

  /// Runs one step of filling an index over a type's field, and returns whether it is ready.
  ///
  /// After the first step every writer maintains it; each further step adds entries for a number of
  /// existing records, about a megabyte of them. Other requests read and write between the steps,
  /// and while `entries` computes the keys.
  func fillIndex(
    in partition: PartitionID,
    type: String,
    field: String,
    limit: Int,
    entries: (StoredRecord) throws -> [IndexKey]
  ) throws -> Bool

  /// Commit events after a position, oldest first.
  ///
  /// No event appears later before one that was returned: the result is complete.
  func events(after position: EventPosition, limit: Int) throws -> [StoredEvent]

  /// The position for a listener that needs only later events.
  func newestEvent() throws -> EventPosition

  /// Removes events that were committed before a time, in milliseconds since 1970.
  func forgetEvents(before time: Int64) throws

  /// Sets a callback that is called soon after commits of this process and of others, and from time
  /// to time; one call may stand for many commits.
  func listen(_ body: @escaping @Sendable (StorageEvent) -> Void)

  /// Begins an incarnation with which no change token can be continued.
  func beginNewIncarnation() throws

  /// Begins an incarnation for data that was replaced by an older copy: change tokens that are not
  /// newer than the data can be continued.
  func branchOff() throws

  /// Whether the commits of a former incarnation in a partition up to a change are in this one.
  func contains(
    _ incarnation: String,
    of partition: PartitionID,
    through change: ChangeNumber
  ) throws -> Bool

  /// Reads the fingerprints of keys and asset store, and stores the result of the body.
  ///
  /// It is one transaction with a lock: if several servers start at the same time, each one sees
  /// what the previous one stored. The body can run again after a lost connection.
  func changeFingerprints<Result>(
    _ body: (inout StorageFingerprints) throws -> Result
  ) throws -> Result

  /// Writes a copy of one snapshot of everything to a file that does not exist yet: an SQLite
  /// database for every engine.
  func copy(to file: URL) throws
  /// The connections to a database server; nil where there is none.
  var connections: StorageConnections? { get }
  func close()
}

/// The connections to a database server.
package struct StorageConnections: Hashable, Sendable {
  package var used: Int
  package var idle: Int
  /// Since the process began.
  package var opened: Int
}

extension Storage {
  package var connections: StorageConnections? { nil }
}

extension StorageSnapshot {
  /// All references to records.
  func references(in id: PartitionID, to targets: [RecordKey]) throws -> [StoredReference] {
    try references(in: id, to: targets, madeBy: nil, limit: .max)
  }
}

extension Storage {
  /// Runs the body on one consistent view.
  package func read<Result>(
    prefetching reads: [PrefetchedRead] = [],
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try read(prefetching: reads, control: nil, body)
  }

  /// Runs the body on one consistent view, until the control ends it.
  func read<Result>(
    _ control: ReadControl,
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    try read(prefetching: [], control: control, body)
  }
}

/// The kinds of changes that other servers cache or wait for.
package enum StorageEvent: String, Hashable, Sendable, CaseIterable {
  /// There may be new commit events.
  case events
  /// Sessions or keys ended: caches must discard them.
  case directory
  /// Devices were removed: they no longer listen.
  case devices
  /// Containers were deleted: their partitions and schemas may be cached.
  case containers
}

/// An expectation of a batch no longer holds; the write has to decide again.
package struct ExpectationFailed: Error, Hashable, Sendable {
  /// The storage does not have the partition.
  package static let partition = ExpectationFailed(what: "partition")

  package var what: String
}

/// One consistent view of all data.
package protocol StorageSnapshot {
  // Partition tables
  func database(_ id: PartitionID) throws -> StoredDatabase
  func zones(in id: PartitionID, named names: [String]) throws -> [StoredZone]
  func livingZones(in id: PartitionID) throws -> [StoredZone]
  /// Zones that changed after a position, by change and then by number: the zones of one batch have
  /// the same change.
  func zones(
    in id: PartitionID,
    changedAfter position: ZoneListPosition,
    limit: Int
  ) throws -> [StoredZone]
  func records(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord]
  /// Records without their fields, for checks: such a record must never be written.
  func outlines(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord]
  /// References to records, up to a number; of one creator's records, if one is named.
  func references(
    in id: PartitionID,
    to targets: [RecordKey],
    madeBy creator: String?,
    limit: Int
  ) throws -> [StoredReference]
  /// The numbers of records that refer to each target with an action, some records not counted.
  func referrerCounts(
    in id: PartitionID,
    to targets: [RecordKey],
    action: ReferenceAction,
    except sources: [RecordKey]
  ) throws -> [RecordKey: Int]
  /// The parents of the records that have one.
  func parents(in id: PartitionID, of keys: [RecordKey]) throws -> [RecordKey: String]
  func changes(in id: PartitionID, _ range: ChangeRange) throws -> [RecordRow]
  /// The newest tombstone or departure of each zone among those older than a time, in milliseconds.
  func expiredTraces(in id: PartitionID, before time: Int64) throws -> [ZoneNumber: ChangeNumber]
  /// The change of a range by which it has as many tombstones, or as many departures, as its limit;
  /// nil if it has fewer.
  func traceHorizon(in id: PartitionID, _ range: ChangeRange) throws -> ChangeNumber?
  func partitions() throws -> [PartitionID]
  func activeIndexes(in id: PartitionID, types: [String]) throws -> [String: Set<String>]
  /// The existing records below any of the parents, at most as many as the limit.
  func children(in id: PartitionID, of parents: [RecordKey], limit: Int) throws -> [StoredChild]
  /// The names of a zone's shares, without deleted ones, at most as many as the limit.
  func shareNames(in id: PartitionID, zone: ZoneNumber, limit: Int) throws -> [String]
  /// Reads what is needed of a page of a zone's shares, by name, without deleted ones.
  func shares<Part>(
    in id: PartitionID,
    zone: ZoneNumber,
    after name: String,
    limit: Int,
    _ read: (StoredShare) throws -> Part
  ) throws -> [Part]
  /// Reads what is needed of the shares among these records, including deleted ones.
  ///
  /// A share's fields are not read, and of its participants no more is kept than the body returns.
  func shares<Part>(
    in id: PartitionID,
    keys: [RecordKey],
    _ read: (StoredShare) throws -> Part
  ) throws -> [Part]
  /// A share's members, in the order of its feed.
  func members(in id: PartitionID, _ range: ShareRange) throws -> [RecordRow]
  /// A share's departures, in the order of their change numbers.
  func departures(in id: PartitionID, _ range: ShareRange) throws -> [StoredDeparture]
  /// The records that were in a share at a change number, in the order in which they entered it;
  /// the range refers to that order.
  ///
  /// For records that are still in the share, `exited` is that change number.
  func present(
    in id: PartitionID,
    at moment: ChangeNumber,
    _ range: ShareRange
  ) throws -> [StoredDeparture]
  func isIndexReady(in id: PartitionID, type: String, field: String) throws -> Bool
  /// The entries of a ready index, in its order.
  func entries(in id: PartitionID, _ walk: IndexWalk) throws -> [IndexPosition]
  /// The kept reply of a device with this number, or else the one with the next higher number.
  func reply(
    in id: PartitionID,
    user: String,
    device: String,
    from sequence: Int64
  ) throws -> StoredReply?
  /// Whether kept replies exist of devices that were silent since a time, in milliseconds.
  func hasReplies(in id: PartitionID, before time: Int64) throws -> Bool
  func subscriptions(in id: PartitionID, user: String) throws -> [StoredSubscription]
  /// All users' subscriptions to queries for these types, and to zones and the database.
  ///
  /// With a list of users, only theirs.
  func subscriptions(
    in id: PartitionID,
    types: [String],
    users: [String]?
  ) throws -> [OwnedSubscription]
  /// The number and the bytes of each user's subscriptions of these.
  func subscriptionSizes(in id: PartitionID, types: [String]) throws -> [SubscriptionSize]
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
  /// A page of all accounts, sorted by folded name; nil for the first page.
  func accounts(after userName: String?, limit: Int) throws -> [StoredAccount]
  func accountCount() throws -> Int
  /// The accounts with an email address, ignoring the case of ASCII letters.
  func accounts(emailAddress: String) throws -> [StoredAccount]
  func user(container: String, account: String) throws -> StoredUser?
  func user(container: String, recordName: String) throws -> StoredUser?
  func shortGUID(_ guid: String) throws -> StoredShortGUID?
  /// A user's links to shares, those of one owner, or all of them.
  func shareLinks(
    container: String,
    environment: ContainerEnvironment,
    user: String,
    owner: String?
  ) throws -> [StoredShareLink]
  func hasShareLink(_ link: StoredShareLink) throws -> Bool
  func shareLinkCount(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> Int
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
  /// The first users of a container, and of keys to it, up to a number.
  func users(container: String, limit: Int) throws -> [StoredUser]
  func userCount(container: String) throws -> Int
  /// The partitions that belong to a container's user.
  func partitions(container: String, owner: String) throws -> [PartitionKey: PartitionID]
  /// The bytes of all rows in a partition that clients can add, without assets and without rows of
  /// ended zones.
  func recordBytes(in id: PartitionID) throws -> Int64
  /// Whether a place has more rows than one step deletes.
  func exceeds(
    _ step: RemovalStep,
    in id: PartitionID,
    _ thinning: WriteBatch.Thinning
  ) throws -> Bool
  /// The users whose records in a partition have `bytes` or more together.
  func creators(in id: PartitionID, holding bytes: Int64) throws -> [String]
  /// The number of records of a type in a partition; nil: of all types.
  func recordCount(in id: PartitionID, type: String?) throws -> Int64
  func entry(_ key: DirectoryEntry.Key) throws -> DirectoryEntry?
  func entries(_ range: DirectoryRange) throws -> [DirectoryEntry]
}

/// A position in the list of a database's zones by change.
package struct ZoneListPosition: Hashable, Sendable {
  package var change: ChangeNumber
  /// The zone within the change; `.max` is after all zones of the change.
  package var zone: ZoneNumber

  package init(change: ChangeNumber, zone: ZoneNumber = ZoneNumber(.max)) {
    self.change = change
    self.zone = zone
  }
}

/// A range of a zone's changes.
package struct ChangeRange: Hashable, Sendable {
  package var zone: ZoneNumber
  /// Exclusive.
  package var after: ChangeNumber
  /// Inclusive; nil: to the newest.
  package var through: ChangeNumber?
  package var isReversed = false
  package var includesTombstones = true
  package var limit: Int
  /// The most bytes of records to read; the first record after that is read, to show that there are
  /// more.
  package var bytes = Int.max
}
