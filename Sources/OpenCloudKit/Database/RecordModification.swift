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
