import CloudKitWebServices
import Foundation

/// One operation with its record's place; an object, because a record of a request is large to copy.
final class KeyedOperation: Sendable {
  let type: RecordOperationType
  let record: RecordDictionary
  /// The zone as named; `key` is nil where there is no such zone.
  let zone: ZoneID
  let key: RecordKey?
  /// The records that its fields will refer to.
  let targets: [RecordKey]
  /// Why the operation cannot even begin.
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
  /// Whether `looseReferences` may find any: few values are like that.
  var mayRefer: Bool {
    switch self {
    case .reference, .referenceList, .untagged: true
    default: false
    }
  }

  /// References, also those that came without a tag.
  var looseReferences: [ReferenceValue] {
    switch self {
    case .untagged(.reference(let value)): [value]
    case .untagged(.list(let values)):
      values.compactMap { if case .reference(let value) = $0 { value } else { nil } }
    default: references
    }
  }
}

/// An index whose entries writers keep.
struct ActiveIndex: Sendable {
  var name: String
  var index: RecordIndex

  init(name: String) {
    self.name = name
    index = RecordIndex(name: name)
  }
}

/// Everything `records/modify` is decided on.
struct ModifyInput: Sendable {
  var partition: PartitionID
  var scope: DatabaseScope
  var operations: [KeyedOperation]
  var isAtomic: Bool
  var limits: ServiceLimits
  var stamping: RecordStamping
  var database: StoredDatabase
  var existing: [RecordKey: StoredRecord]
  /// References to records that are deleted, and to the targets of new references.
  var references: [RecordKey: [StoredReference]]
  /// The parents of stored records above those that get a new parent.
  var parents: [RecordKey: String] = [:]
  /// By record type, in the order of their names.
  var activeIndexes: [String: [ActiveIndex]]
  var schema: SchemaDraft
  /// The custom roles that the user holds in the public database.
  var roles: Set<String> = []
  var sharing: SharingInput
  /// Those of everybody that may fire.
  var subscriptions: [OwnedSubscription]
  /// No client asks: grants don't count, and fields that the schema does not declare go.
  var isErasing = false
  /// Checks an asset's receipt, or that the record's field holds it already.
  var admitAsset: @Sendable (AssetValue, FieldValue?) throws -> AssetValue
  /// Puts an encrypted field's value in its envelope; others stay.
  var seal: @Sendable (FieldValue, RecordKey, _ field: String) throws -> FieldValue
}

/// What `records/modify` does: results in the order of operations, and what to write.
struct ModifyPlan: Sendable {
  enum Item: Sendable {
    /// A record that the caller may not read shows nothing but what the caller wrote.
    case saved(StoredRecord, isReadable: Bool)
    case deleted(name: String)
    /// `current` is the record that stood in the way; nil where the caller may not read it.
    case failed(ErrorDictionary, current: StoredRecord?)
  }

  var items: [Item]
  /// Nil where nothing is to be written.
  var batch: WriteBatch?
  var savedCount = 0
  var deletedCount = 0
  /// Shares in which something changed for those who take part.
  var touchedShares: Set<RecordKey> = []
  var changedZones: Set<ZoneNumber> = []
}
