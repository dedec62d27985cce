import CloudKitWebServices
import Effects
import Foundation

/// Removes files that no record uses.
///
/// A file is removed only after it was seen unused for a grace period that is longer than any URL
/// to it is valid and any backup that refers to it is kept. The time when it was first seen unused
/// is recorded, and removed by a use. A new file is kept as long as its receipt is valid; if no record
/// has used it until then, none will, no backup refers to it, and it is removed without a grace period.
extension AssetService {
  /// The entry of a file that no record has used yet; its revision is the time.
  ///
  /// It is valid in its incarnation alone: in data that was replaced by an older copy, it may be of a
  /// file that a newer copy's records use.
  func unusedUpload(_ place: AssetPlace) -> DirectoryEntry {
    DirectoryEntry(
      place.unusedUpload,
      owner: "\(place.partition.rawValue)",
      revision: now,
      body: Data(storage.incarnation.utf8)
    )
  }

  /// Checks every file once.
  ///
  /// Safe to run in several processes at once, and again after a crash.
  package func collectGarbage() async throws {
    try await store.removeRemains(before: effects.now - limits.receiptLifetime)
    var stored = AssetTraffic.Stored()
    for partition in try await store.partitions() {
      try await collectGarbage(in: partition, counting: &stored)
    }
    traffic.counted(stored)
  }

  private func collectGarbage(
    in partition: PartitionID,
    counting stored: inout AssetTraffic.Stored
  ) async throws {
    let files = try await store.files(in: partition)
    let owner = "\(partition.rawValue)"
    let (used, marks, unused) = try storage.read { snapshot in
      (
        try snapshot.usedAssets(in: partition),
        try snapshot.entries(DirectoryRange(.assetGarbage, owner: owner, limit: .max)),
        try snapshot.entries(DirectoryRange(.unusedUpload, owner: owner, limit: .max))
      )
    }
    let fresh = effects.now - limits.receiptLifetime
    // A repeated upload gets another receipt as long as the URL is valid, and a save that was decided
    // with one may be committed a little later.
    let lost = fresh - limits.uploadURLLifetime - 3600
    let due = now - Int64(limits.assetGrace * 1000)
    var since: [String: Int64] = [:]
    for mark in marks { since[mark.key.name] = mark.revision }
    var batch = WriteBatch()
    var neverUsed: [String: Int64] = [:]
    let incarnation = Data(storage.incarnation.utf8)
    for entry in unused {
      if entry.body == incarnation {
        neverUsed[entry.key.name] = entry.revision
      } else {
        batch.removedEntries.append(entry.key)
      }
    }
    stored.files += files.count
    stored.bytes += files.reduce(0) { $0 + $1.size }
    func remove(_ file: StoredAssetFile) async throws {
      try await store.remove(AssetPlace(partition, file.name))
      stored.files -= 1
      stored.bytes -= file.size
    }
    for file in files {
      let key = DirectoryEntry.Key(.assetGarbage, "\(owner)/\(file.name)")
      let marked = since.removeValue(forKey: key.name)
      let place = AssetPlace(partition, file.name)
      let uploaded = neverUsed.removeValue(forKey: place.unusedUpload.name)
      if let uploaded, !used.contains(file.name) {
        // The file is old by both clocks: that of the server that received it, and that of the store.
        guard file.written < lost, uploaded < lost.wireMilliseconds else { continue }
        try await remove(file)
        batch.removedEntries.append(place.unusedUpload)
        if marked != nil { batch.removedEntries.append(key) }
      } else if used.contains(file.name) {
        if marked != nil { batch.removedEntries.append(key) }
        // A server of an earlier version saved the record.
        if uploaded != nil { batch.removedEntries.append(place.unusedUpload) }
      } else if let marked {
        guard marked <= due else { continue }
        try await remove(file)
        batch.removedEntries.append(key)
      } else if file.written < fresh {
        // The entry's revision is the time: it has no other content.
        batch.savedEntries.append(DirectoryEntry(key, owner: owner, revision: now))
      }
    }
    batch.removedEntries += since.keys.map { DirectoryEntry.Key(.assetGarbage, $0) }
    // Removes entries whose files no longer exist. Recent entries stay: the file may be newer than the listing.
    batch.removedEntries += neverUsed.filter { $0.value < lost.wireMilliseconds }.map {
      DirectoryEntry.Key(.unusedUpload, $0.key)
    }
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
