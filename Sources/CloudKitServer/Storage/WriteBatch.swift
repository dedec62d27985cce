import CloudKitWebServices
import Foundation

/// Everything that one decision wants written, and what must still hold for it to be written.
package struct WriteBatch: Sendable {
  package var partition: PartitionID?

  // Expectations
  /// The counter of a private database: nothing there has changed.
  package var expectedCounter: ChangeNumber?
  /// No index was begun since.
  package var expectedIndexes: Int64?
  /// Of a database without a counter: each record's tag, nil for absent.
  package var expectedTags: [RecordKey: String?] = [:]
  /// Of a database without a counter: who refers to records that are deleted.
  package var expectedReferrers: [RecordKey: Set<RecordKey>] = [:]
  package var expectedSchemaVersion: ExpectedSchema?
  /// The revision of each entry, nil for absent.
  package var expectedEntries: [DirectoryEntry.Key: Int64?] = [:]

  // Partition tables
  package var counter: ChangeNumber?
  package var zones: [StoredZone] = []
  /// Zones whose records all go.
  package var emptiedZones: [ZoneNumber] = []
  /// Saved records and tombstones.
  package var records: [StoredRecord] = []
  /// Those of them that are the first under their names: what was there before has no row.
  package var madeRecords: Set<RecordKey> = []
  /// Records that go without a trace, where there is no feed.
  package var erasedRecords: [RecordKey] = []
  /// Records whose references and asset uses are replaced by the ones listed here; of those that go
  /// all that have any are among them.
  package var relinkedRecords: [RecordKey] = []
  package var references: [StoredReference] = []
  package var assetUses: [StoredAssetUse] = []
  /// Records that come into a share, stay in it otherwise, or leave it, without being saved.
  package var memberships: [MembershipWrite] = []
  package var departures: [StoredDeparture] = []
  /// Tombstones and departures up to the zone's new horizon go.
  package var collectedZones: [CollectedZone] = []
  package var removedIndexEntries: [IndexEntry] = []
  package var addedIndexEntries: [IndexEntry] = []
  package var reply: StoredReply?
  /// Replies of this device up to this sequence are forgotten.
  package var acknowledged: Acknowledgement?
  /// Bounds what is kept of the devices of the reply's user.
  package var replyRules: ReplyRules?
  /// Replies of devices that were silent since this time go; milliseconds since 1970.
  package var forgetsRepliesBefore: Int64?
  package var savedSubscriptions: [SubscriptionWrite] = []
  package var deletedSubscriptions: [SubscriptionWrite] = []
  /// People whose subscriptions and replies in the partition go.
  package var forgottenUsers: [String] = []
  /// Everything in the partition goes, tombstones and all.
  package var erasesPartition = false

  /// What to tell those who wait; kept in the order of commits until it is old.
  package var event: EventWrite?

  // Directory tables
  package var shortGUIDs: [StoredShortGUID] = []
  package var shareLinks: [StoredShareLink] = []
  package var schema: SchemaWrite?
  package var container: String?
  package var accounts: [StoredAccount] = []
  package var users: [StoredUser] = []
  package var apiTokens: [StoredAPIToken] = []
  package var sessions: [StoredSession] = []
  package var endedSessions: [String] = []
  /// Sessions that a device has left behind; caches may keep these for their few seconds.
  package var supersededSessions: [String] = []
  /// New ends of sessions that are still there; one that was ended meanwhile stays ended.
  package var renewedSessions: [SessionRenewal] = []
  package var devices: [StoredDevice] = []
  /// Digests of devices' tokens.
  package var removedDevices: [String] = []
  /// Accounts that go, with their sessions and users.
  package var removedAccounts: [String] = []
  package var removedAPITokens: [String] = []
  /// People whose links to others' shares and whose devices go.
  package var forgottenLinks: [ForgottenLinks] = []
  /// A partition whose short IDs lead nowhere any more.
  package var unsharedPartition: PartitionID?
  /// Partitions that nobody's links lead to any more.
  package var unlinkedPartitions: [PartitionID] = []
  package var savedEntries: [DirectoryEntry] = []
  package var removedEntries: [DirectoryEntry.Key] = []
  /// Sessions and entries that ended before this time go, and devices without an entry; milliseconds
  /// since 1970.
  package var sweepsExpiredBefore: Int64?

  package init(partition: PartitionID? = nil) {
    self.partition = partition
  }

  /// Whether a record's row must be new.
  func makes(_ key: RecordKey) -> Bool {
    madeRecords.contains(key) || (!expectedTags.isEmpty && expectedTags[key] == .some(nil))
  }

  /// Ends something that servers keep in memory.
  var changesCachedDirectory: Bool {
    !endedSessions.isEmpty || !removedAPITokens.isEmpty || !removedDevices.isEmpty
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

  package struct Acknowledgement: Hashable, Sendable {
    package var user: String
    package var device: String
    package var sequence: Int64
  }

  package struct ReplyRules: Hashable, Sendable {
    /// Milliseconds since 1970.
    package var now: Int64
    /// Devices that were silent since this time are forgotten.
    package var oldest: Int64
    package var devices: Int
  }

  package struct EventWrite: Hashable, Sendable {
    /// Milliseconds since 1970.
    package var time: Int64
    package var body: Data
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
