import Foundation

/// Files named by their digest, in a folder for each partition.
package struct FolderAssetStore: AssetStore {
  let folder: URL

  package init(folder: URL) throws {
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func file(_ partition: PartitionID, _ digest: String) -> URL {
    folder.appendingPathComponent("\(partition.rawValue)/\(digest.prefix(2))/\(digest)")
  }

  package func write(_ data: Data, _ partition: PartitionID, _ digest: String) throws {
    let file = file(partition, digest)
    guard !FileManager.default.fileExists(atPath: file.path) else { return }
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(),
      withIntermediateDirectories: true
    )
    // A rename makes the file appear whole or not at all; the flush makes it stay.
    let partial = file.appendingPathExtension("partial")
    try data.write(to: partial)
    let handle = try FileHandle(forWritingTo: partial)
    try handle.synchronize()
    try handle.close()
    do {
      try FileManager.default.moveItem(at: partial, to: file)
    } catch {
      // Another upload of the same bytes was quicker.
      guard FileManager.default.fileExists(atPath: file.path) else { throw error }
    }
  }

  package func read(_ partition: PartitionID, _ digest: String) throws -> Data? {
    let file = file(partition, digest)
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    return try Data(contentsOf: file, options: .mappedIfSafe)
  }

  package func contains(_ partition: PartitionID, _ digest: String) -> Bool {
    FileManager.default.fileExists(atPath: file(partition, digest).path)
  }

  package func sweep(keeping used: Set<String>) throws {
    let manager = FileManager.default
    for partition in try manager.contentsOfDirectory(atPath: folder.path) {
      let partitionFolder = folder.appendingPathComponent(partition)
      for prefix in try manager.contentsOfDirectory(atPath: partitionFolder.path) {
        let prefixFolder = partitionFolder.appendingPathComponent(prefix)
        for digest in try manager.contentsOfDirectory(atPath: prefixFolder.path)
        where !used.contains("\(partition)/\(digest)") {
          try manager.removeItem(at: prefixFolder.appendingPathComponent(digest))
        }
      }
    }
  }
}
