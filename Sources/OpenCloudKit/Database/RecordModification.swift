import CloudKitWebServices
import Foundation

/// One `records/modify`, spelled out: what to save and delete in one zone, and under which locks.
package struct RecordModification: Sendable {
  /// One record to save.
  package struct Save: Sendable {
    /// What must be so on the server for the save to succeed.
    package enum Condition: Hashable, Sendable {
      /// The record does not exist.
      case isNew
      /// The record has this change tag.
      case hasTag(String)
      /// Nothing: the save wins.
      case none
    }

    package var recordType: CKRecord.RecordType
    package var recordID: CKRecord.ID
    package var condition: Condition
    /// The fields to set; an absent value removes the field, and others stay as they are.
    package var fields: [CKRecord.FieldKey: CKRecord.Field?]
    package var parent: CKRecord.Reference?
    /// Whether the record hangs below nothing from now on.
    package var removesParent = false
    /// Whether the record becomes the root of a share, which is known by a short identifier.
    package var becomesRoot = false
    /// What a share has that other records have not.
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
    /// The tag the record must have; without one it is deleted as it is.
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
  /// Whether all succeed or none.
  package var atomic: Bool
  /// Makes the batch repeatable: the service answers a repeat from what it stored the first time.
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

  /// The most operations that the web service takes in one request.
  package static let operationLimit = 200
}

/// What became of a modification: one result for each save and each delete, in their order.
package struct RecordModificationResult: Sendable {
  /// The system fields of each saved record, or its error; a conflict's has the server's record.
  package var saves: [Result<CKRecord.SystemFields, CKError>]
  package var deletes: [Result<Void, CKError>]
  /// The shares that were saved, as the service has them.
  var shares: [CKRecord.ID: CKShare.Sharing] = [:]

  package init(
    saves: [Result<CKRecord.SystemFields, CKError>],
    deletes: [Result<Void, CKError>]
  ) {
    self.saves = saves
    self.deletes = deletes
  }
}
