import CloudKitWebServices
import Crypto
import Foundation

/// How an asset's content is told on the wire: the first 20 bytes of its SHA-256 behind a version
/// byte.
struct AssetDigest: Hashable, Sendable {
  private static let version: UInt8 = 1
  private static let size = 20

  var bytes: Data

  init(_ hash: SHA256.Digest) {
    bytes = Data(hash.prefix(Self.size))
  }

  /// Reads `fileChecksum`.
  init?(checksum: String?) {
    guard let checksum, let data = Data(base64Encoded: checksum), data.count == Self.size + 1,
      data.first == Self.version
    else { return nil }
    bytes = Data(data.dropFirst())
  }

  var checksum: String { (Data([Self.version]) + bytes).base64EncodedString() }
}

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
