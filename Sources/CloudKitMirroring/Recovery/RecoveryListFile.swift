import Effects
import Foundation
import WatershedSQLite

/// The recovery list in the file of a store, read without the store's app, its model and a server.
///
/// Nothing is written: restoring an entry needs the model, and a coordinator whose contexts learn of it.
package struct RecoveryListFile: Sendable {
  /// Why a file has no list to read, in a sentence.
  package struct Unreadable: Error, Hashable, CustomStringConvertible {
    package var description: String
  }

  /// The container that the store is mirrored with; nil before the first sync.
  package let containerIdentifier: String?
  /// The entries, oldest first.
  package let entries: [RecoveredEdit]

  /// Reads at most `limit` entries of a store's file.
  package init(contentsOf url: URL, limit: Int) throws {
    let path = url.path
    guard try FileSystem.isThere(path) else {
      throw Unreadable(description: "There is no file at \(path).")
    }
    let connection = try SQLiteConnection(path: path, mode: try Self.mode(for: path))
    let table = try connection.scalar(
      "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'WSMIRROR_RECOVERY'"
    )
    guard table != nil else {
      throw Unreadable(description: "The store at \(path) is not mirrored.")
    }
    let metadata = MirrorMetadata(connection)
    try metadata.requireKnownVersion()
    containerIdentifier = try metadata.text(.containerIdentifier)
    entries = try metadata.recoveredEdits(limit: limit)
  }

  /// With a log the file is opened as any reader opens it; without one, not even the log's index is
  /// created beside it.
  private static func mode(for path: String) throws -> SQLiteConnection.Mode {
    try FileSystem.isThere(path + "-wal") ? .readOnly : .immutable
  }
}
