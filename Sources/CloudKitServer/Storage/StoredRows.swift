import CloudKitWebServices
import Foundation

/// A user's database: where its change counter stands.
package struct StoredDatabase: Hashable, Sendable {
  package var id: PartitionID
  package var counter: ChangeNumber
  /// Counts the indexes that were begun: who writes must keep the entries of each.
  package var indexes: Int64 = 0
}

/// A custom zone, living or deleted.
package struct StoredZone: Hashable, Sendable {
  package var number: ZoneNumber
  package var name: String
  /// The newest change of the zone or in it.
  package var change: ChangeNumber
  package var ending: Ending?
  /// Traces of what is gone are kept from after this change on.
  package var horizon: ChangeNumber = .zero

  /// Why a zone is gone.
  package enum Ending: String, Hashable, Sendable {
    case deleted
    case purged
    case userDeleted
    /// The person's encryption keys were reset: what was encrypted is lost.
    case encryptedDataReset
  }
}

/// A record within its partition.
package struct RecordKey: Hashable, Sendable {
  package var zone: ZoneNumber
  package var name: String
}

/// A record as it is kept: system fields in columns, the app's fields as encoded JSON.
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
  /// A tombstone keeps its place in the order of changes.
  package var isDeleted: Bool
  /// Nil outside of hierarchical shares.
  package var membership: Membership?
  /// Encoded `RecordSharing`, where there is any.
  package var sharing: Data?
}

/// What is among a record's fields, so that nobody has to look for it.
package struct RecordContents: OptionSet, Hashable, Sendable {
  package var rawValue: Int64

  package init(rawValue: Int64) { self.rawValue = rawValue }

  package static let assets = RecordContents(rawValue: 1)
  package static let references = RecordContents(rawValue: 2)
  /// What has rows of its own beside the record.
  package static let linking: RecordContents = [.assets, .references]
  /// Values in envelopes, to be opened for a reply.
  package static let encrypted = RecordContents(rawValue: 16)
}

/// A record that another record would take along or hold back when it is deleted.
package struct StoredReference: Hashable, Sendable {
  package var source: RecordKey
  package var target: String
  package var action: ReferenceAction
}

/// A value of a field in an index.
package enum IndexValue: Hashable, Sendable {
  /// The record has no value there.
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

/// The reply to a batch that a device may send again.
package struct StoredReply: Hashable, Sendable {
  package var user: String
  package var device: String
  package var sequence: Int64
  package var body: Data
}

/// An environment's schema with the number of its latest change.
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
  /// The type of a query's records; empty for zones and databases.
  package var recordType: String = ""
  package var body: Data
}

/// A subscription with whose it is.
package struct OwnedSubscription: Hashable, Sendable {
  package var user: String
  package var subscription: StoredSubscription
}
