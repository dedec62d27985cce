import Foundation

/// Keeps the bytes of assets, each in a file that is written once and never changed.
///
/// Names of files are random: who forges a checksum names nobody's file.
package protocol AssetStore: Sendable {
  /// Starts to write a file; it is there when the upload was finished, and not a moment earlier.
  func begin(_ place: AssetPlace) async throws -> any AssetUpload
  /// The size of a file in bytes; nil where there is none.
  func size(of place: AssetPlace) async throws -> Int64?
  /// Hands a part of a file to the sink, piece by piece, as fast as the sink takes it.
  func read(
    _ place: AssetPlace,
    _ range: Range<Int64>,
    into sink: @Sendable (Data) async throws -> Void
  ) async throws
  /// Removes a file; one that is not there is fine.
  func remove(_ place: AssetPlace) async throws
  /// The partitions that have files.
  func partitions() async throws -> [PartitionID]
  func files(in partition: PartitionID) async throws -> [StoredAssetFile]
  /// The name that the store keeps of itself; nil until it was given one.
  func identity() async throws -> String?
  /// Gives the store its name, unless it has one.
  func keep(identity: String) async throws
  /// Removes what uploads that were cut off left behind before the date.
  func removeRemains(before date: Date) async throws
}

/// Where a file is.
package struct AssetPlace: Hashable, Sendable {
  package var partition: PartitionID
  package var file: String

  package init(_ partition: PartitionID, _ file: String) {
    self.partition = partition
    self.file = file
  }

  /// Whether a name is one that this server gives to files.
  ///
  /// A file store makes a path of it, so a name from a sealed text is checked too: whoever has a key that
  /// sealed it must not choose a path.
  static func isFileName(_ name: String) -> Bool {
    (16...128).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
      }
  }
}

/// A file as a list shows it.
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
  /// Makes the file appear, whole and for good.
  func finish() async throws
  /// Leaves nothing behind.
  func cancel() async
}
