import Foundation

/// Stores the bytes of assets, each in a file that is written once and never changed.
///
/// File names are random: a forged checksum does not select another user's file.
package protocol AssetStore: Sendable {
  /// Starts to write a file, which exists only after the upload is finished.
  func begin(_ place: AssetPlace) async throws -> any AssetUpload
  /// The size of a file in bytes; nil if it does not exist.
  func size(of place: AssetPlace) async throws -> Int64?
  /// Passes part of a file to the sink in pieces, as fast as the sink accepts them.
  func read(
    _ place: AssetPlace,
    _ range: Range<Int64>,
    into sink: @Sendable (Data) async throws -> Void
  ) async throws
  /// Removes a file; succeeds if it does not exist.
  func remove(_ place: AssetPlace) async throws
  /// The partitions that have files.
  func partitions() async throws -> [PartitionID]
  func files(in partition: PartitionID) async throws -> [StoredAssetFile]
  /// The identity stored in the store; nil before it is set.
  func identity() async throws -> String?
  /// Stores the identity, unless the store has one.
  func keep(identity: String) async throws
  /// Removes the remains of uploads that were interrupted before the date.
  func removeRemains(before date: Date) async throws
}

/// The location of a file.
package struct AssetPlace: Hashable, Sendable {
  package var partition: PartitionID
  package var file: String

  package init(_ partition: PartitionID, _ file: String) {
    self.partition = partition
    self.file = file
  }

  /// The entry of the file as long as no record has used it.
  var unusedUpload: DirectoryEntry.Key {
    DirectoryEntry.Key(.unusedUpload, "\(partition.rawValue)/\(file)")
  }

  /// Whether a name has the format of this server's file names.
  ///
  /// A file store makes a path of it, so names in sealed texts are checked too: a leaked former key
  /// must not allow choosing a path.
  static func isFileName(_ name: String) -> Bool {
    (16...128).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
      }
  }
}

/// A file in a listing.
package struct StoredAssetFile: Hashable, Sendable {
  package var name: String
  package var size: Int64
  package var written: Date

  package init(name: String, size: Int64, written: Date) {
    self.name = name
    self.size = size
    self.written = written
  }
}

/// A file that is being written, by one task.
package protocol AssetUpload: Sendable {
  func write(_ data: Data) async throws
  /// Makes the complete file visible and durable.
  func finish() async throws
  /// Removes everything that was written.
  func cancel() async
}
