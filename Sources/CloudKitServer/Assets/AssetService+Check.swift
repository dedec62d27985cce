import Foundation

/// The files of the asset store, compared with those that records use.
package struct AssetCheck: Codable, Hashable, Sendable {
  /// The number of files in the store.
  package var files = 0
  package var bytes: Int64 = 0
  /// Files that records use and the store lacks, by their paths in a backup.
  package var missing: [String] = []
  /// Files in the store that no record uses; the server removes each after its grace period.
  package var unused: [String] = []
}

extension AssetService {
  /// Compares every file with the records; changes nothing.
  package func check() async throws -> AssetCheck {
    var found = AssetCheck()
    let known = try storage.read { try $0.partitions() }
    let partitions = Set(known).union(try await store.partitions())
    for partition in partitions.sorted(by: { $0.rawValue < $1.rawValue }) {
      let files = try await store.files(in: partition)
      // Read after the files: a file that a save begins to use meanwhile is not unused.
      let used = try storage.read { try $0.usedAssets(in: partition) }
      let names = Set(files.map(\.name))
      found.files += files.count
      found.bytes += files.reduce(0) { $0 + $1.size }
      found.unused += names.subtracting(used).sorted().map { path($0, in: partition) }
      for name in used.subtracting(names).sorted() {
        // It may have been stored after the files were listed.
        let size = try await store.size(of: AssetPlace(partition, name))
        if size == nil { found.missing.append(path(name, in: partition)) }
      }
    }
    return found
  }

  private func path(_ name: String, in partition: PartitionID) -> String {
    CloudKitService.backupPath(of: AssetPlace(partition, name))
  }
}
