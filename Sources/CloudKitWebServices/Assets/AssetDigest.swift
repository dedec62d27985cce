import Crypto
import Foundation

/// How our service names the content of an asset on the wire: the first 20 bytes of its SHA-256 behind a
/// version byte.
package struct AssetDigest: Hashable, Sendable {
  private static let version: UInt8 = 1
  private static let size = 20
  private static let pieceSize = 256 << 10

  package var bytes: Data

  package init(_ hash: SHA256.Digest) {
    bytes = Data(hash.prefix(Self.size))
  }

  /// Reads `fileChecksum`; nil for another form.
  ///
  /// Checksums of Apple's service have this form too: read only what our service made.
  package init?(checksum: String?) {
    guard let checksum, let data = Data(base64Encoded: checksum), data.count == Self.size + 1,
      data.first == Self.version
    else { return nil }
    bytes = Data(data.dropFirst())
  }

  /// The digest of a file, read in pieces.
  package init(of file: URL) throws {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    var hash = SHA256()
    while let piece = try handle.read(upToCount: Self.pieceSize), !piece.isEmpty {
      hash.update(data: piece)
    }
    self.init(hash.finalize())
  }

  package var checksum: String { (Data([Self.version]) + bytes).base64EncodedString() }
}
