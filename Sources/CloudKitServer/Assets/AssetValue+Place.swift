import CloudKitWebServices
import Foundation

extension AssetValue {
  /// The name of the file; assets of earlier versions are named by their digest.
  var fileName: String? {
    blob ?? AssetDigest(checksum: fileChecksum)?.bytes.hexadecimal
  }

  /// The value for clients, without the file's location.
  var withoutPlace: AssetValue {
    var value = self
    value.blob = nil
    return value
  }
}

/// The sealed contents of an upload URL.
struct UploadPermit: Codable, Hashable, Sendable {
  /// Each permit is for one file.
  var id: String
  var partition: PartitionID
  var scope: DatabaseScope
  var user: String
  /// Milliseconds since 1970.
  var expires: Int64
  /// Nil in URLs of earlier versions.
  var credential: IssuingCredential?
  /// The user's account, for which uploads of all containers count; nil in URLs of earlier versions.
  var account: String?
  /// Set for another owner's database.
  var shared: SharedUpload?

  /// The account, or the user, whose limit of uploads it counts against.
  var uploader: String { account ?? user }
}

/// The sealed proof of an upload: these bytes are stored, for this partition.
struct UploadReceipt: Codable, Hashable, Sendable {
  var partition: PartitionID
  var file: String
  var checksum: String
  var size: Int64
  var expires: Int64
  /// The incarnation of the storage in which the file was uploaded; nil in receipts of earlier versions.
  ///
  /// A copy of the data from before the upload has the same keys, and lacks the file.
  var incarnation: String?
}

/// The sealed contents of a download URL.
struct DownloadPermit: Codable, Hashable, Sendable {
  var partition: PartitionID
  var file: String
  /// Milliseconds since 1970.
  var expires: Int64
  /// Nil in URLs of earlier versions.
  var credential: IssuingCredential?
  /// Set for a reader of another owner's record.
  var source: SharedSource?
}
