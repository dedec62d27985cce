import CloudKitWebServices
import Foundation

/// One `records/modify` request: the records to save and delete in one zone, and their
/// preconditions.
package struct RecordModification: Sendable {
  /// One record to save.
  package struct Save: Sendable {
    /// The precondition of a save.
    package enum Condition: Hashable, Sendable {
      /// The record does not exist.
      case isNew
      /// The record has this change tag.
      case hasTag(String)
      /// No precondition: the save overwrites the server's record.
      case none
    }

    package var recordType: CKRecord.RecordType
    package var recordID: CKRecord.ID
    package var condition: Condition
    /// The fields to set; an absent value removes the field, and unlisted fields keep their values.
    package var fields: [CKRecord.FieldKey: CKRecord.Field?]
    package var parent: CKRecord.Reference?
    /// Whether the save removes the record's parent.
    package var removesParent = false
    /// Whether the record becomes the root of a share and gets a short identifier.
    package var becomesRoot = false
    /// The members that only shares have.
    package var sharing: ShareDictionary?

    package init(
      recordType: CKRecord.RecordType,
      recordID: CKRecord.ID,
      condition: Condition,
      fields: [CKRecord.FieldKey: CKRecord.Field?],
      parent: CKRecord.Reference? = nil
    ) {
      self.recordType = recordType
      self.recordID = recordID
      self.condition = condition
      self.fields = fields
      self.parent = parent
    }
  }

  /// One record to delete.
  package struct Delete: Hashable, Sendable {
    package var recordID: CKRecord.ID
    /// The tag that the record must have; nil deletes any version.
    package var changeTag: String?

    package init(recordID: CKRecord.ID, changeTag: String?) {
      self.recordID = recordID
      self.changeTag = changeTag
    }
  }

  /// The zone that all records are in.
  package var zoneID: CKRecordZone.ID
  package var saves: [Save]
  package var deletes: [Delete]
  /// Whether the batch is atomic.
  package var atomic: Bool
  /// Makes the batch repeatable: the service answers a repeat with the stored reply.
  package var sequence: ClientSequence?

  package init(
    zoneID: CKRecordZone.ID,
    saves: [Save] = [],
    deletes: [Delete] = [],
    atomic: Bool,
    sequence: ClientSequence? = nil
  ) {
    self.zoneID = zoneID
    self.saves = saves
    self.deletes = deletes
    self.atomic = atomic
    self.sequence = sequence
  }

  /// The most operations that the web service accepts in one request.
  package static let operationLimit = 200
}

/// The result of a modification: one result for each save and each delete, in their order.
package struct RecordModificationResult: Sendable {
  /// The system fields of each saved record, or its error; a conflict's has the server's record.
  package var saves: [Result<CKRecord.SystemFields, CKError>]
  package var deletes: [Result<Void, CKError>]
  /// The saved shares, as the service returned them.
  var shares: [CKRecord.ID: CKShare.Sharing] = [:]

  package init(
    saves: [Result<CKRecord.SystemFields, CKError>],
    deletes: [Result<Void, CKError>]
  ) {
    self.saves = saves
    self.deletes = deletes
  }
}

extension RecordModificationResult {
  /// The result of an atomic modification of which some saves, by their index, can't be sent.
  init(refusing modification: RecordModification, _ failures: [Int: CKError]) {
    let other = CKError(
      .batchRequestFailed,
      "Another record of the atomic batch can't be saved."
    )
    self.init(
      saves: modification.saves.indices.map { .failure(failures[$0] ?? other) },
      deletes: modification.deletes.map { _ in .failure(other) }
    )
  }

  /// This result of a part, with the errors of the saves that were not in the part, by their index.
  func inserting(_ failures: [Int: CKError]) -> RecordModificationResult {
    var result = self
    for (index, error) in failures.sorted(by: { $0.key < $1.key }) {
      result.saves.insert(.failure(error), at: index)
    }
    return result
  }

  /// Replaces the results of the saves that were sent again.
  mutating func replaceSaves(
    of modification: RecordModification,
    by other: RecordModificationResult,
    of again: RecordModification
  ) {
    let results = Dictionary(zip(again.saves.map(\.recordID), other.saves)) { first, _ in first }
    for (index, save) in modification.saves.enumerated() {
      if let result = results[save.recordID] { saves[index] = result }
    }
    shares.merge(other.shares) { _, new in new }
  }
}
