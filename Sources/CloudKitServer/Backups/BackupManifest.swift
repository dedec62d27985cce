import CloudKitWebServices
import Crypto
import Foundation

/// The list of a backup's files with checksums, to detect damage.
package struct BackupManifest: Codable, Hashable, Sendable {
  package static let fileName = "manifest.json"

  package struct File: Codable, Hashable, Sendable {
    /// Relative to the backup's folder.
    package var path: String
    package var size: Int64
    /// SHA-256 in hexadecimal.
    package var checksum: String

    /// Whether the path stays inside its folder.
    package var isInside: Bool {
      let parts = path.split(ascii: "/", omittingEmptySubsequences: false)
      return !parts.contains { $0.isEmpty || $0 == "." || $0 == ".." }
        && !path.contains(ascii: "\0")
    }
  }

  package var schema = 1
  /// Milliseconds since 1970.
  package var created: Int64
  package var incarnation: String
  package var files: [File]

  static func describe(_ path: String, in folder: URL) throws -> File {
    let handle = try FileHandle(forReadingFrom: folder.appendingPathComponent(path))
    defer { try? handle.close() }
    var hash = SHA256()
    var size: Int64 = 0
    while let chunk = try handle.read(upToCount: 1_048_576), !chunk.isEmpty {
      hash.update(data: chunk)
      size += Int64(chunk.count)
    }
    return File(path: path, size: size, checksum: Data(hash.finalize()).hexadecimal)
  }
}

/// Why a backup was not made or not restored, as a sentence.
package struct BackupError: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String

  package init(description: String) {
    self.description = description
  }
}
