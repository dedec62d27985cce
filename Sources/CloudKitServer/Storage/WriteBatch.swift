import CloudKitWebServices
import Foundation

/// All writes of one decision, and the expectations that must still hold when it is written.
package struct WriteBatch: Sendable {
  package var partition: PartitionID?

  // Expectations
  /// The counter of a private database: nothing in it has changed.
  package var expectedCounter: ChangeNumber?
  /// No index was begun since.
  package var expectedIndexes: Int64?
  /// For a database without a counter: each record's tag, nil for absent.
  package var expectedTags: [RecordKey: String?] = [:]
  /// For a database without a counter: the records that reference deleted records.
  package var expectedReferrers: [RecordKey: Set<RecordKey>] = [:]
  package var expectedSchemaVersion: ExpectedSchema?
  /// The revision of each entry, nil for absent.
  package var expectedEntries: [DirectoryEntry.Key: Int64?] = [:]

  // Partition tables
  package var counter: ChangeNumber?
  package var zones: [StoredZone] = []
  /// Zones whose records are all deleted.
  ///
  /// This transaction deletes at most `removalStep` rows; `ZoneRemovals` deletes the rest. The
  /// rows of the default zone, which does not end, are all deleted at once.
  package var emptiedZones: [ZoneNumber] = []
  /// Deletes a bounded part of the rows first, so that the final transaction, which deletes the rest,
  /// is short.
  package var thinning: Thinning?
  package var removalStep = RemovalStep()
  /// Saved records and tombstones.
  package var records: [StoredRecord] = []
  /// The keys of `records` that are new: the table has no row with that name.
  package var madeRecords: Set<RecordKey> = []
  /// Records that are deleted without a tombstone, where there is no feed.
  package var erasedRecords: [RecordKey] = []
  /// Records whose references and asset uses are replaced by the ones listed here; deleted records
  /// that have any are included.
  package var relinkedRecords: [RecordKey] = []
  package var references: [StoredReference] = []
  package var assetUses: [StoredAssetUse] = []
  /// Records that enter a share, change in it, or leave it, without being saved.
  package var memberships: [MembershipWrite] = []
  package var departures: [StoredDeparture] = []
  /// Tombstones and departures up to the zone's new horizon are removed.
  package var collectedZones: [CollectedZone] = []
  package var removedIndexEntries: [IndexEntry] = []
  package var addedIndexEntries: [IndexEntry] = []
  /// The kept reply to the request that made the batch.
  package var reply: ReplyWrite?
  /// Replies of devices that were silent since this time are removed; milliseconds since 1970.
  package var forgetsRepliesBefore: Int64?
  package var savedSubscriptions: [SubscriptionWrite] = []
  package var deletedSubscriptions: [SubscriptionWrite] = []
  /// Users whose subscriptions and replies in the partition are removed.
  package var forgottenUsers: [String] = []
  /// Whether everything in the partition is removed, including tombstones.
  package var erasure: Erasure?

  /// The event for listeners; kept in the order of commits until it expires.
  package var event: EventWrite?

  // Directory tables
  package var shortGUIDs: [StoredShortGUID] = []
  /// Short IDs whose records are deleted.
  package var removedShortGUIDs: [RemovedShortGUID] = []
  package var shareLinks: [StoredShareLink] = []
  package var schema: SchemaWrite?
  /// A container that is opened, also again after it was deleted.
  package var container: String?
  /// A container that must be open already, or never was: a request from before its deletion writes nothing for it.
  package var requiredContainer: String?
  /// A container whose rows in the directory are removed, except those of its users and partitions.
  package var erasedContainer: String?
  /// Users of a container that is deleted; their accounts stay.
  package var removedUsers: [StoredUser] = []
  package var accounts: [StoredAccount] = []
  package var users: [StoredUser] = []
  package var apiTokens: [StoredAPIToken] = []
  package var sessions: [StoredSession] = []
  package var endedSessions: [String] = []
  /// Sessions that a device has replaced; caches may keep these for a few seconds.
  package var supersededSessions: [String] = []
  /// New expiration times of existing sessions; a session that has ended stays ended.
  package var renewedSessions: [SessionRenewal] = []
  package var devices: [StoredDevice] = []
  /// The digests of the tokens of removed devices.
  package var removedDevices: [String] = []
  /// Accounts to delete, with their sessions and users.
  package var removedAccounts: [String] = []
  package var removedAPITokens: [String] = []
  /// Users whose links to other users' shares and whose devices are removed.
  package var forgottenLinks: [ForgottenLinks] = []
  /// A partition whose short IDs become invalid.
  package var unsharedPartition: PartitionID?
  /// Partitions whose share links are deleted.
  package var unlinkedPartitions: [PartitionID] = []
  package var savedEntries: [DirectoryEntry] = []
  package var removedEntries: [DirectoryEntry.Key] = []
  /// Expired sessions and entries before this time are removed, and devices without an entry;
  /// milliseconds since 1970.
  package var sweepsExpiredBefore: Int64?

  package init(partition: PartitionID? = nil) {
    self.partition = partition
  }

  /// The rows besides records that it adds.
  var linkedRowCount: Int { addedIndexEntries.count + references.count + assetUses.count }

  /// The rows that it writes because records enter or leave shares without being saved.
  var sharedRowCount: Int { memberships.count + departures.count }

  /// Whether a record's row must be new.
  func makes(_ key: RecordKey) -> Bool {
    madeRecords.contains(key) || (!expectedTags.isEmpty && expectedTags[key] == .some(nil))
  }

  /// Whether it ends something that servers cache.
  var changesCachedDirectory: Bool {
    !endedSessions.isEmpty || !removedAPITokens.isEmpty
  }

  /// Whether it ends a container, whose partitions and schemas servers cache.
  ///
  /// A removed partition alone is no reason: a commit to it fails, and looks it up again.
  var endsContainer: Bool { erasedContainer != nil }

  /// The containers that must not have been deleted: those of its credentials, too.
  var requiredContainers: Set<String> {
    Set(
      sessions.map(\.container) + devices.map(\.container) + [requiredContainer].compactMap(\.self)
    )
  }

  /// The place of rows that are deleted in steps.
  package enum Thinning: Hashable, Sendable {
    /// Everything in the partition.
    case partition
    /// The records of the default zone, except those of users.
    case defaultZone
  }

  package struct SessionRenewal: Hashable, Sendable {
    package var digest: String
    /// Milliseconds since 1970.
    package var expires: Int64
  }

  package struct ExpectedSchema: Hashable, Sendable {
    package var container: String
    package var environment: ContainerEnvironment
    /// 0: none yet.
    package var version: Int64
  }

  package struct SchemaWrite: Hashable, Sendable {
    package var container: String
    package var environment: ContainerEnvironment
    package var stored: StoredSchema
  }

  /// What is removed of a partition.
  package enum Erasure: Hashable, Sendable {
    /// All rows; the partition stays in the directory, and later batches write to it.
    case rows
    /// All rows, and the partition's entry in the directory.
    case partition
  }

  package struct ReplyWrite: Hashable, Sendable {
    package var stored: StoredReply
    /// Replies to the same device up to this sequence are removed.
    package var acknowledged: Int64
    /// A device of the same user that a later launch has succeeded.
    package var finishedDevice: FinishedDevice?
    /// The limits for the kept replies of the user's devices; nil if they were applied lately.
    package var rules: ReplyRules?
  }

  /// A device whose replies count as those of one that was silent for long, unless it executed a batch
  /// after the one that its successor knows.
  package struct FinishedDevice: Hashable, Sendable {
    package var name: String
    /// The last batch that the successor knows to be settled.
    package var sequence: Int64
    /// The time of its last batch, as it is recorded from now on; milliseconds since 1970.
    package var silentSince: Int64
  }

  package struct ReplyRules: Hashable, Sendable {
    /// Milliseconds since 1970.
    package var now: Int64
    /// Devices that were silent since this time are removed.
    package var oldest: Int64
    package var devices: Int
  }

  package struct EventWrite: Hashable, Sendable {
    /// Milliseconds since 1970.
    package var time: Int64
    package var body: Data
  }

  package struct RemovedShortGUID: Hashable, Sendable {
    package var guid: String
    /// A short ID that belongs to another record by now is kept.
    package var key: RecordKey
  }

  package struct ForgottenLinks: Hashable, Sendable {
    package var container: String
    package var environment: ContainerEnvironment
    package var user: String
  }

  package struct MembershipWrite: Hashable, Sendable {
    package var key: RecordKey
    package var membership: Membership?
  }

  package struct CollectedZone: Hashable, Sendable {
    package var name: String
    package var number: ZoneNumber
    package var horizon: ChangeNumber
  }

  package struct SubscriptionWrite: Hashable, Sendable {
    package var user: String
    package var subscription: StoredSubscription
  }
}
