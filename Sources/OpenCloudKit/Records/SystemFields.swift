import Foundation

extension CKRecord {
  /// The values that the service keeps of a record besides its fields.
  package struct SystemFields: Hashable, Sendable {
    package var recordChangeTag: String?
    package var creationDate: Date?
    package var modificationDate: Date?
    package var creatorUserRecordID: CKRecord.ID?
    package var lastModifiedUserRecordID: CKRecord.ID?
    package var parent: CKRecord.Reference?
    package var share: CKRecord.Reference?
    /// Whether the parent was set since the record was fetched, so that a save sends it.
    package var isParentChanged = false
    /// Whether a share was created for the record since, so that a save requests a short
    /// identifier.
    package var isShareChanged = false

    /// The system fields of a record that the service has not stored.
    package init() {}
  }
}
