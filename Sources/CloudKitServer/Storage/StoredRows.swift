import CloudKitWebServices
import Foundation

/// A user's database and its change counter.
package struct StoredDatabase: Hashable, Sendable {
  package var id: PartitionID
  package var counter: ChangeNumber
  /// The number of indexes that were begun: writers must maintain the entries of each.
  package var indexes: Int64 = 0
}

/// A custom zone, existing or deleted.
package struct StoredZone: Hashable, Sendable {
  package var number: ZoneNumber
  package var name: String
  /// The newest change of the zone or of its records.
  package var change: ChangeNumber
  package var ending: Ending?
  /// Tombstones after this change are kept.
  package var horizon: ChangeNumber = .zero

  /// Why a zone was deleted.
  package enum Ending: String, Hashable, Sendable {
    case deleted
    case purged
    case userDeleted
    /// The user's encryption keys were reset: encrypted values are lost.
    case encryptedDataReset
  }
}

/// A record within its partition.
package struct RecordKey: Hashable, Sendable {
  package var zone: ZoneNumber
  package var name: String
}

/// A stored record: system fields in columns, the app's fields as encoded JSON.
package struct StoredRecord: Hashable, Sendable {
  package var key: RecordKey
  package var type: String
  package var tag: String
  package var change: ChangeNumber
  package var created: ServerStamp
  package var modified: ServerStamp
  package var parent: String?
  package var fields: Data
  package var contents: RecordContents
  /// Whether it is a tombstone, which has a position in the order of changes.
  package var isDeleted: Bool
  /// Nil outside of hierarchical shares.
  package var membership: Membership?
  /// Encoded `RecordSharing`, if it has any.
  package var sharing: Data?
}

/// The kinds of values in a record's fields, so that readers need not search them.
package struct RecordContents: OptionSet, Hashable, Sendable {
  package var rawValue: Int64

  package init(rawValue: Int64) { self.rawValue = rawValue }

  package static let assets = RecordContents(rawValue: 1)
  package static let references = RecordContents(rawValue: 2)
  /// The kinds of values that have their own rows.
  package static let linking: RecordContents = [.assets, .references]
  /// Sealed values, which a reply has to open.
  package static let encrypted = RecordContents(rawValue: 16)
  /// Dates finer than a millisecond, whose exact form is sent to our own clients alone.
  package static let exactDates = RecordContents(rawValue: 32)
}

/// A reference that deletes its source with the target, or protects the target from deletion.
package struct StoredReference: Hashable, Sendable {
  package var source: RecordKey
  package var target: String
  package var action: ReferenceAction
}

/// A value of a field in an index.
package enum IndexValue: Hashable, Sendable {
  /// The record has no value.
  case missing
  case integer(Int64)
  case real(Double)
  case text(String)
  case bytes(Data)
}

/// One entry of the index over a record type's field.
package struct IndexEntry: Hashable, Sendable {
  package var type: String
  package var field: String
  package var value: IndexKey
  package var key: RecordKey
}

/// The kept reply to a batch, for a device that sends it again.
package struct StoredReply: Hashable, Sendable {
  package var user: String
  package var device: String
  package var sequence: Int64
  package var body: Data
}

/// An environment's schema with its version.
package struct StoredSchema: Hashable, Sendable {
  package var schema: DatabaseSchema
  package var version: Int64
}

/// The use of an asset by a record.
package struct StoredAssetUse: Hashable, Sendable {
  package var key: RecordKey
  package var digest: String
}

/// A subscription of one user.
package struct StoredSubscription: Hashable, Sendable {
  package var id: String
  /// The record type of a query; empty for zones and databases.
  package var recordType: String = ""
  package var body: Data
}

/// The subscriptions of one user together.
package struct SubscriptionSize: Hashable, Sendable {
  package var user: String
  package var count: Int
  package var bytes: Int
}

/// A subscription with its user.
package struct OwnedSubscription: Hashable, Sendable {
  package var user: String
  package var subscription: StoredSubscription
}
