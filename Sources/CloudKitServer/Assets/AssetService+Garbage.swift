import CloudKitWebServices
import Effects
import Foundation

/// Removes files that no record uses.
///
/// A file is removed only after it was seen unused for a grace period that is longer than any URL
/// to it is valid and any backup that refers to it is kept. The time when it was first seen unused
/// is recorded, and removed by a use. A new file is kept as long as its receipt is valid.
extension AssetService {
  /// Checks every file once.
  ///
  /// Safe to run in several processes at once, and again after a crash.
  package func collectGarbage() async throws {
    try await store.removeRemains(before: effects.now - limits.receiptLifetime)
    for partition in try await store.partitions() {
      try await collectGarbage(in: partition)
    }
  }

  private func collectGarbage(in partition: PartitionID) async throws {
    let files = try await store.files(in: partition)
    let owner = "\(partition.rawValue)"
    let (used, marks) = try storage.read { snapshot in
      (
        try snapshot.usedAssets(in: partition),
        try snapshot.entries(DirectoryRange(.assetGarbage, owner: owner, limit: .max))
      )
    }
    let fresh = effects.now - limits.receiptLifetime
    let due = now - Int64(limits.assetGrace * 1000)
    var since: [String: Int64] = [:]
    for mark in marks { since[mark.key.name] = mark.revision }
    var batch = WriteBatch()
    for file in files {
      let key = DirectoryEntry.Key(.assetGarbage, "\(owner)/\(file.name)")
      let marked = since.removeValue(forKey: key.name)
      if used.contains(file.name) {
        if marked != nil { batch.removedEntries.append(key) }
      } else if let marked {
        guard marked <= due else { continue }
        try await store.remove(AssetPlace(partition, file.name))
        batch.removedEntries.append(key)
      } else if file.written < fresh {
        // The entry's revision is the time: it has no other content.
        batch.savedEntries.append(DirectoryEntry(key, owner: owner, revision: now))
      }
    }
    batch.removedEntries += since.keys.map { DirectoryEntry.Key(.assetGarbage, $0) }
    guard !batch.savedEntries.isEmpty || !batch.removedEntries.isEmpty else { return }
    let written = batch
    try await writer.write { (written, ()) }
  }

  /// The number of files, used or not.
  package func fileCount() async throws -> Int {
    var count = 0
    for partition in try await store.partitions() {
      count += try await store.files(in: partition).count
    }
    return count
  }
}
