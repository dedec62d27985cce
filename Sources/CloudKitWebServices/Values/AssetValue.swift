import Foundation

/// A file stored apart from its record.
///
/// A client saves the value that the upload returned; a reply has a checksum, a size and a download
/// URL.
package struct AssetValue: Codable, Hashable, Sendable {
  package var fileChecksum: String?
  /// The size in bytes.
  package var size: Int64?
  /// Proof of the upload, in requests.
  package var receipt: String?
  package var wrappingKey: String?
  package var referenceChecksum: String?
  /// The URL of the file, in replies; it may contain the placeholder `${f}` for a file name.
  package var downloadURL: String?
  /// The key of the bytes in the server's asset store; it is never on the wire.
  package var blob: String?

  package init(
    fileChecksum: String? = nil,
    size: Int64? = nil,
    receipt: String? = nil,
    wrappingKey: String? = nil,
    referenceChecksum: String? = nil,
    downloadURL: String? = nil,
    blob: String? = nil
  ) {
    self.fileChecksum = fileChecksum
    self.size = size
    self.receipt = receipt
    self.wrappingKey = wrappingKey
    self.referenceChecksum = referenceChecksum
    self.downloadURL = downloadURL
    self.blob = blob
  }

  private enum CodingKeys: String, CodingKey {
    case fileChecksum, size, receipt, wrappingKey, referenceChecksum, downloadURL, blob
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    try decoder.checkStored(.blob, in: container)
    func text(_ key: CodingKeys) throws -> String? {
      try container.decodeIfPresent(String.self, forKey: key)
    }
    self.init(
      fileChecksum: try text(.fileChecksum),
      size: try container.decodeIfPresent(Int64.self, forKey: .size),
      receipt: try text(.receipt),
      wrappingKey: try text(.wrappingKey),
      referenceChecksum: try text(.referenceChecksum),
      downloadURL: try text(.downloadURL),
      blob: try text(.blob)
    )
  }
}
