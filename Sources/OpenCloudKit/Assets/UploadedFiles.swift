/// The outcome of the uploads of a modification.
///
/// An upload that failed is an error of its record; the files of the other records are stored.
struct UploadedFiles: Sendable {
  /// The stored file of each asset, by the asset's identity.
  var stored: [ObjectIdentifier: CKAsset.StoredFile] = [:]
  /// The first error of each record with a file that was not stored.
  var errors: [CKRecord.ID: CKError] = [:]
  /// The records with a file of an earlier upload.
  var reusing: Set<CKRecord.ID> = []
  /// The files that a later save can use if this one fails, by the index of the upload.
  private(set) var keepable: [Int: (file: CKAsset.StoredFile, time: KeptUploads.Time)] = [:]

  /// Records a stored file; `uploaded` is the time of its upload if the service accepts it with a later
  /// save too.
  mutating func add(
    _ file: CKAsset.StoredFile,
    of upload: AssetTransfers.Upload,
    at index: Int,
    uploaded: KeptUploads.Time?
  ) {
    stored[ObjectIdentifier(upload.asset)] = file
    if let uploaded { keepable[index] = (file, uploaded) }
  }

  /// Records an upload that failed.
  mutating func fail(_ upload: AssetTransfers.Upload, _ error: CKError) {
    if errors[upload.recordID] == nil { errors[upload.recordID] = error }
  }
}
