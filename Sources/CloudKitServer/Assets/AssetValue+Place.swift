import CloudKitWebServices
import Foundation

extension AssetValue {
  /// The file that holds the bytes; assets of earlier versions are named by their digest.
  var fileName: String? {
    blob ?? AssetDigest(checksum: fileChecksum)?.bytes.hexadecimal
  }

  /// As clients see it: where the bytes are is the server's business.
  var withoutPlace: AssetValue {
    var value = self
    value.blob = nil
    return value
  }
}

/// What an upload URL permits.
struct UploadPermit: Codable, Hashable, Sendable {
  /// One file for each.
  var id: String
  var partition: PartitionID
  var scope: DatabaseScope
  var user: String
  /// Milliseconds since 1970.
  var expires: Int64
  /// Nil in URLs of earlier versions.
  var credential: GivingCredential?
}

/// What an upload proves: these bytes are here, for this partition.
struct UploadReceipt: Codable, Hashable, Sendable {
  var partition: PartitionID
  var file: String
  var checksum: String
  var size: Int64
  var expires: Int64
}

/// What a download URL permits.
struct DownloadPermit: Codable, Hashable, Sendable {
  var partition: PartitionID
  var file: String
  /// Milliseconds since 1970.
  var expires: Int64
  /// Nil in URLs of earlier versions.
  var credential: GivingCredential?
}
