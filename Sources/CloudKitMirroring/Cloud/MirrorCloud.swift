import Foundation

/// What the mirroring asks of a CloudKit database.
///
/// The live conformer speaks through OpenCloudKit; tests use one that follows a script.
package protocol MirrorCloud: Sendable {
  /// Whether the account can be used.
  func account() async throws -> CloudAccount
  /// Makes the zone, or finds it there.
  func saveZone(_ zone: String) async throws
  /// Subscribes to changes of the database.
  func saveSubscription(_ identifier: String) async throws
  /// The zones that changed since a token.
  func databaseChanges(after token: Data?) async throws -> CloudDatabaseChanges
  /// One page of a zone's changes since a token, files downloaded; a first page has deletions only where
  /// they are asked for and the server keeps traces of them.
  func zoneChanges(
    _ zone: String,
    after token: Data?,
    limit: Int,
    keys: [String],
    includesDeleted: Bool
  ) async throws -> CloudZoneChanges
  /// Saves and deletes as one atomic batch. The same sequence is answered from the server's memory.
  func modify(
    _ zone: String,
    _ batch: CloudBatch
  ) async throws -> [CloudOutcome]
  /// The records as the server has them; those it does not have are left out.
  func lookup(_ zone: String, _ names: [String], keys: [String]) async throws -> CloudLookup
  /// Tells of changes made by others, until the task is cancelled.
  func notifications() -> AsyncThrowingStream<Void, any Error>
}

/// Whether an account can be used, and whose it is.
package enum CloudAccount: Hashable, Sendable {
  case available(userRecordName: String)
  /// With the reason of the service, where it refused what the container is configured with.
  case none(reason: String?)
  case restricted
  case temporarilyUnavailable
  case undetermined
}

/// A record as the server has it.
package struct CloudRecord: Hashable, Sendable {
  package var name: String
  package var recordType: String
  package var tag: String
  package var stamps: RecordStamps
  /// Assets name the downloaded file by its whole path.
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
  /// Records that cannot be had whole, with the reasons: the server lacks one of their files.
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

/// What a look-up found.
package struct CloudLookup: Hashable, Sendable {
  package var records: [CloudRecord]
  /// Records that are there and cannot be had, with the reasons.
  package var unreadable: [String: String]

  package init(records: [CloudRecord] = [], unreadable: [String: String] = [:]) {
    self.records = records
    self.unreadable = unreadable
  }
}

/// One operation of a batch.
package struct CloudOperation: Hashable, Sendable {
  package enum Kind: UInt8, Hashable, Sendable {
    /// Fails where the record exists.
    case create = 1
    /// Fails where the record has another tag.
    case update = 2
    /// Fails where the record has another tag.
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

  /// About what the operation takes of a request.
  package var byteCount: Int {
    self.set.byteCount + removed.reduce(0) { $0 + $1.utf8.count } + name.utf8.count + Self.envelope
  }

  /// Names, types, tags and punctuation around the fields.
  private static let envelope = 200
}

/// What happened to one operation.
package enum CloudOutcome: Hashable, Sendable {
  case saved(tag: String, stamps: RecordStamps)
  case deleted
  /// The record has another tag; the record as the server has it, where the reply said so.
  case conflict(CloudRecord?)
  /// A record of the name is there already.
  case exists(CloudRecord?)
  case notFound
  /// Another operation of the batch failed.
  case batchFailed
  /// The server refused this record, with its reason.
  case refused(reason: String)
  /// The server asks for patience.
  case later(seconds: Double?)
}

/// Why a whole request failed, as far as the mirroring acts on it.
package enum CloudFailure: Error, Hashable, Sendable {
  /// The server may or may not have seen the request.
  case unreachable(reason: String)
  /// The server asks for patience.
  case busy(reason: String, retryAfter: Double?)
  /// Nobody, or somebody else, is signed in.
  case notAuthenticated(reason: String)
  /// Another user than the one who was asked for may be signed in.
  case accountChanged(reason: String)
  /// The change token cannot be continued.
  case tokenExpired(TokenLoss)
  /// The zone is not there.
  case zoneMissing
  /// The request was too large.
  case tooLarge
  /// The database is full, or a value is larger than the service takes.
  case overQuota(reason: String)
  /// The server refused the request as a whole.
  case refused(reason: String)
}

/// Why a change token cannot be continued.
package enum TokenLoss: Hashable, Sendable {
  /// It is too old: read from the start and compare.
  case expired
  /// The server does not say why: nothing is concluded from what is missing.
  case unexplained
  /// The server is another one, or was restored from a backup: it may have lost what is here.
  case otherServer
  /// The zone was deleted and made again.
  case otherZone
}
