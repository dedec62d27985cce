import CloudKitWebServices
import Foundation

/// Everything that one decision wants written, and what must still hold for it to be written.
package struct WriteBatch: Sendable {
  package var partition: PartitionID?

  // Expectations
  /// The counter of a private database: nothing there has changed.
  package var expectedCounter: ChangeNumber?
  /// Of a database without a counter: each record's tag, nil for absent.
  package var expectedTags: [RecordKey: String?] = [:]
  /// Of a database without a counter: who refers to records that are deleted.
  package var expectedReferrers: [RecordKey: Set<RecordKey>] = [:]
  package var expectedSchemaVersion: ExpectedSchema?

  // Partition tables
  package var counter: ChangeNumber?
  package var zones: [StoredZone] = []
  /// Zones whose records all go.
  package var emptiedZones: [ZoneNumber] = []
  /// Saved records and tombstones.
  package var records: [StoredRecord] = []
  /// Records that go without a trace, where there is no feed.
  package var erasedRecords: [RecordKey] = []
  /// Records whose references and asset uses are replaced by the ones listed here.
  package var relinkedRecords: [RecordKey] = []
  package var references: [StoredReference] = []
  package var assetUses: [StoredAssetUse] = []
  package var removedIndexEntries: [IndexEntry] = []
  package var addedIndexEntries: [IndexEntry] = []
  package var reply: StoredReply?
  /// Replies of this device up to this sequence are forgotten.
  package var acknowledged: Acknowledgement?
  package var savedSubscriptions: [SubscriptionWrite] = []
  package var deletedSubscriptions: [SubscriptionWrite] = []

  // Directory tables
  package var schema: SchemaWrite?
  package var container: String?
  package var accounts: [StoredAccount] = []
  package var users: [StoredUser] = []
  package var apiTokens: [StoredAPIToken] = []
  package var sessions: [StoredSession] = []
  package var endedSessions: [String] = []
  package var devices: [StoredDevice] = []

  package init(partition: PartitionID? = nil) {
    self.partition = partition
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

  package struct SubscriptionWrite: Hashable, Sendable {
    package var user: String
    package var subscription: StoredSubscription
  }
}
