import Foundation

extension CKRecord {
  /// What the service knows about a record besides its fields.
  package struct SystemFields: Hashable, Sendable {
    package var recordChangeTag: String?
    package var creationDate: Date?
    package var modificationDate: Date?
    package var creatorUserRecordID: CKRecord.ID?
    package var lastModifiedUserRecordID: CKRecord.ID?
    package var parent: CKRecord.Reference?
    package var share: CKRecord.Reference?
    /// Whether the parent was set since the record was fetched: then a save sends it.
    package var isParentChanged = false
    /// Whether a share was made for the record since: then a save asks for a short identifier.
    package var isShareChanged = false

    /// A record the service does not know.
    package init() {}
  }
}
