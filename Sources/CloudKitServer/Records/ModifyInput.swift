import CloudKitWebServices
import Foundation

/// One operation with its record's key; a class, because a request's record is large to copy.
final class KeyedOperation: Sendable {
  let type: RecordOperationType
  let record: RecordDictionary
  /// The zone as named in the request; `key` is nil if it does not exist.
  let zone: ZoneID
  let key: RecordKey?
  /// The records to which its fields will refer.
  let targets: [RecordKey]
  /// Why the operation is refused before it begins.
  let refusal: ErrorDictionary?

  init(_ type: RecordOperationType, _ record: RecordDictionary, zone: ZoneID, key: RecordKey) {
    self.type = type
    self.record = record
    self.zone = zone
    self.key = key
    targets = record.fields.map { Self.targets(of: $0, in: key.zone) } ?? []
    refusal = nil
  }

  init(
    _ type: RecordOperationType,
    _ record: RecordDictionary,
    zone: ZoneID,
    refusal: ErrorDictionary
  ) {
    self.type = type
    self.record = record
    self.zone = zone
    self.refusal = refusal
    key = nil
    targets = []
  }

  private static func targets(
    of fields: [String: FieldValue],
    in zone: ZoneNumber
  ) -> [RecordKey] {
    var targets: [RecordKey] = []
    for value in fields.values where value.content.mayRefer {
      for reference in value.content.looseReferences where reference.action != ReferenceAction.none
      {
        targets.append(RecordKey(zone: zone, name: reference.recordName))
      }
    }
    return targets
  }
}

extension FieldContent {
  /// Whether `looseReferences` may find any; few values have any.
  var mayRefer: Bool {
    switch self {
    case .reference, .referenceList, .untagged: true
    default: false
    }
  }

  /// The references, including those without a type tag.
  var looseReferences: [ReferenceValue] {
    switch self {
    case .untagged(.reference(let value)): [value]
    case .untagged(.list(let values)):
      values.compactMap { if case .reference(let value) = $0 { value } else { nil } }
    default: references
    }
  }
}

/// An index whose entries are written with each record.
struct ActiveIndex: Sendable {
  var name: String
  var index: RecordIndex

  init(name: String) {
    self.name = name
    index = RecordIndex(name: name)
  }
}

/// All values on which the decision of `records/modify` depends.
struct ModifyInput: Sendable {
  var partition: PartitionID
  var scope: DatabaseScope
  var operations: [KeyedOperation]
  var isAtomic: Bool
  var limits: ServiceLimits
  var stamping: RecordStamping
  var database: StoredDatabase
  var existing: [RecordKey: StoredRecord]
  /// References to deleted records.
  var references: [RecordKey: [StoredReference]]
  /// Deleted records that records outside of the batch refer to, beyond the loaded references.
  var cutTargets: Set<RecordKey> = []
  /// Records that refer to deleted ones with VALIDATE; without their fields, only for checks.
  var holders: [RecordKey: StoredRecord] = [:]
  /// For each target of a new reference, the number of records outside of the batch that its
  /// deletion cascades to.
  var referrerCounts: [RecordKey: Int] = [:]
  /// The parents of stored records above the records that get a new parent.
  var parents: [RecordKey: String] = [:]
  /// The active indexes of each record type, sorted by name.
  var activeIndexes: [String: [ActiveIndex]]
  var schema: SchemaDraft
  /// The custom roles that the user holds in the public database.
  var roles: Set<String> = []
  var sharing: SharingInput
  /// The subscriptions that may fire.
  var subscriptions: ReadSubscriptions
  /// Whether the service itself writes: grants are not checked, and undeclared fields are removed.
  var isErasing = false
  /// Accepts an asset that has a valid receipt, or that the record's field already has.
  var admitAsset: @Sendable (AssetValue, FieldValue?) throws -> AssetValue
  /// Encrypts the value of an encrypted field; returns others unchanged.
  var seal: @Sendable (FieldValue, RecordKey, _ field: String) throws -> FieldValue
}

/// The decision of `records/modify`: results in the order of operations, and the batch to write.
struct ModifyPlan: Sendable {
  enum Item: Sendable {
    /// If the caller may not read the record, only the fields that the caller wrote are returned.
    case saved(StoredRecord, isReadable: Bool)
    case deleted(name: String)
    /// `current` is the conflicting record; nil if the caller may not read it.
    case failed(ErrorDictionary, current: StoredRecord?)
  }

  var items: [Item]

  /// The codes of the refused operations.
  var refusals: [ServerErrorCode] {
    items.compactMap { if case .failed(let error, _) = $0 { error.serverErrorCode } else { nil } }
  }

  /// Nil if nothing is to be written.
  var batch: WriteBatch?
  var savedCount = 0
  var deletedCount = 0
  /// Shares with changes that participants can see.
  var touchedShares: Set<RecordKey> = []
  /// The work of the decision: how often the batch was planned.
  var attempts = 0
  /// The work of the decision: how many references of saved records were examined.
  var examinedReferences = 0
  var changedZones: Set<ZoneNumber> = []
}
