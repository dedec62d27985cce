import Foundation

/// The requests that the mirroring makes to a CloudKit database.
///
/// The live conformer uses OpenCloudKit; tests use one with scripted replies.
package protocol MirrorCloud: Sendable {
  /// Whether the account can be used.
  func account() async throws -> CloudAccount
  /// Creates the zone, unless it exists.
  func saveZone(_ zone: String) async throws
  /// Subscribes to changes of the database.
  func saveSubscription(_ identifier: String) async throws
  /// The zones that changed since a token.
  func databaseChanges(after token: Data?) async throws -> CloudDatabaseChanges
  /// One page of a zone's changes since a token, with the files downloaded; a first page has
  /// deletions only if they are requested and the server keeps tombstones.
  func zoneChanges(
    _ zone: String,
    after token: Data?,
    limit: Int,
    keys: [String],
    includesDeleted: Bool
  ) async throws -> CloudZoneChanges
  /// Saves and deletes as one atomic batch. A repeated sequence gets the server's kept reply.
  ///
  /// Throws a ``CloudFailure``, or a ``RepeatedRequestFailure`` where the request was sent more than once.
  func modify(
    _ zone: String,
    _ batch: CloudBatch
  ) async throws -> [CloudOutcome]
  /// The server's current records; missing ones are left out.
  func lookup(_ zone: String, _ names: [String], keys: [String]) async throws -> CloudLookup
  /// An element for each change made by others, until the task is cancelled.
  func notifications() -> AsyncThrowingStream<Void, any Error>
}

/// Whether an account can be used, and its user.
package enum CloudAccount: Hashable, Sendable {
  case available(userRecordName: String)
  /// The reason is the service's, if it refused the container's credentials.
  case none(reason: String?)
  case restricted
  /// The service does not accept the user's session; the reason is the service's.
  case temporarilyUnavailable(reason: String?)
  case undetermined
}

/// A record as the server has it.
package struct CloudRecord: Hashable, Sendable {
  package var name: String
  package var recordType: String
  package var tag: String
  package var stamps: RecordStamps
  /// The fields; assets have the absolute path of the downloaded file.
  package var fields: FieldBag

  package init(
    name: String,
    recordType: String,
    tag: String,
    stamps: RecordStamps = RecordStamps(),
    fields: FieldBag
  ) {
    self.name = name
    self.recordType = recordType
    self.tag = tag
    self.stamps = stamps
    self.fields = fields
  }
}

/// The zones that changed.
package struct CloudDatabaseChanges: Hashable, Sendable {
  package var changedZones: [String]
  package var deletedZones: [String]
  package var token: Data
  package var isMoreComing: Bool

  package init(
    changedZones: [String],
    deletedZones: [String] = [],
    token: Data,
    isMoreComing: Bool = false
  ) {
    self.changedZones = changedZones
    self.deletedZones = deletedZones
    self.token = token
    self.isMoreComing = isMoreComing
  }
}

/// One page of a zone's changes.
package struct CloudZoneChanges: Hashable, Sendable {
  package var records: [CloudRecord]
  package var deletedNames: [String]
  /// Incomplete records, with the reasons: the server lacks one of their files.
  package var unreadable: [String: String]
  package var token: Data
  package var isMoreComing: Bool

  package init(
    records: [CloudRecord],
    deletedNames: [String] = [],
    unreadable: [String: String] = [:],
    token: Data,
    isMoreComing: Bool = false
  ) {
    self.records = records
    self.unreadable = unreadable
    self.deletedNames = deletedNames
    self.token = token
    self.isMoreComing = isMoreComing
  }
}

/// The result of a look-up.
package struct CloudLookup: Hashable, Sendable {
  package var records: [CloudRecord]
  /// Records that exist but are incomplete, with the reasons.
  package var unreadable: [String: String]

  package init(records: [CloudRecord] = [], unreadable: [String: String] = [:]) {
    self.records = records
    self.unreadable = unreadable
  }
}

/// One operation of a batch.
package struct CloudOperation: Hashable, Sendable {
  package enum Kind: UInt8, Hashable, Sendable {
    /// Fails if the record exists.
    case create = 1
    /// Fails if the record has another tag.
    case update = 2
    /// Fails if the record has another tag.
    case delete = 3
  }

  package var kind: Kind
  package var name: String
  package var recordType: String
  package var tag: String?
  package var set: FieldBag
  package var removed: Set<String>
  package var encryptedKeys: Set<String>
  package var isEdge: Bool

  package init(
    _ kind: Kind,
    name: String,
    recordType: String,
    tag: String? = nil,
    set: FieldBag = FieldBag(),
    removed: Set<String> = [],
    encryptedKeys: Set<String> = [],
    isEdge: Bool = false
  ) {
    self.kind = kind
    self.name = name
    self.recordType = recordType
    self.tag = tag
    self.set = set
    self.removed = removed
    self.encryptedKeys = encryptedKeys
    self.isEdge = isEdge
  }

  /// The approximate size of the operation in a request, in bytes.
  package var byteCount: Int {
    self.set.byteCount + removed.reduce(0) { $0 + $1.utf8.count } + name.utf8.count + Self.envelope
  }

  /// The bytes of names, types, tags and punctuation around the fields.
  private static let envelope = 200
}

/// The result of one operation.
package enum CloudOutcome: Hashable, Sendable {
  case saved(tag: String, stamps: RecordStamps)
  case deleted
  /// The record has another tag; with the server's record, if the reply has it.
  case conflict(CloudRecord?)
  /// A record of the name already exists.
  case exists(CloudRecord?)
  case notFound
  /// Another operation of the batch failed.
  case batchFailed
  /// The server refused this record, with its reason.
  case refused(reason: String)
  /// The server asked to retry later.
  case later(seconds: Double?)

  /// Whether the outcome shows the server's state of the record.
  var isConclusive: Bool {
    switch self {
    case .saved, .deleted, .conflict, .exists, .notFound: true
    case .batchFailed, .refused, .later: false
    }
  }
}

/// Why a whole request failed, in the cases that the mirroring distinguishes.
package enum CloudFailure: Error, Hashable, Sendable {
  /// The server may or may not have seen the request.
  case unreachable(reason: String)
  /// The server asked to retry later.
  case busy(reason: String, retryAfter: Double?)
  /// No user, or another user, is signed in.
  case notAuthenticated(reason: String)
  /// Another user than the confirmed one may be signed in.
  case accountChanged(reason: String)
  /// The change token cannot be continued.
  case tokenExpired(TokenLoss)
  /// The zone does not exist.
  case zoneMissing
  /// The request was too large.
  case tooLarge
  /// The database is full, or a value is larger than the service accepts.
  case overQuota(reason: String)
  /// The server refused the request as a whole.
  case refused(reason: String)
  /// The batch was settled by another copy of the store, which sent later ones.
  case alreadySettled(reason: String)
}

/// Why a change token cannot be continued.
package enum TokenLoss: Hashable, Sendable {
  /// It is too old: the zone is read from the start and compared.
  case expired
  /// The server gives no reason: missing records do not count as deleted.
  case unexplained
  /// The server is another one, or was restored from a backup: it may have lost records that this
  /// store has.
  case otherServer
  /// The zone was deleted and created again.
  case otherZone
}
