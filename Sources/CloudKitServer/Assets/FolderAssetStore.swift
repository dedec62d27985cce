import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files named by their digest, in a folder for each partition.
package final class FolderAssetStore: AssetStore {
  private let folder: URL
  private let writes = Atomic<UInt64>(0)

  package init(folder: URL) throws {
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func file(_ partition: PartitionID, _ digest: String) -> URL {
    folder.appendingPathComponent("\(partition.rawValue)/\(digest.prefix(2))/\(digest)")
  }

  package func write(_ data: Data, _ partition: PartitionID, _ digest: String) throws {
    let file = file(partition, digest)
    if FileManager.default.fileExists(atPath: file.path) {
      // Its new receipt is good from now on, so the file must look young.
      return try touch(file)
    }
    let parent = file.deletingLastPathComponent()
    try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
    // A rename makes the file appear whole or not at all; flushing file and folder makes it stay.
    let number = writes.wrappingAdd(1, ordering: .relaxed).newValue
    let partial = file.appendingPathExtension("\(number).partial")
    try data.write(to: partial)
    let handle = try FileHandle(forWritingTo: partial)
    try handle.synchronize()
    try handle.close()
    guard rename(partial.path, file.path) == 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    try flush(parent)
  }

  private func touch(_ file: URL) throws {
    guard utimes(file.path, nil) == 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  private func flush(_ folder: URL) throws {
    let descriptor = open(folder.path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CocoaError(.fileReadUnknown, userInfo: [NSFilePathErrorKey: folder.path])
    }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try handle.synchronize()
    try handle.close()
  }

  package func read(_ partition: PartitionID, _ digest: String) throws -> Data? {
    let file = file(partition, digest)
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    return try Data(contentsOf: file, options: .mappedIfSafe)
  }

  package func contains(_ partition: PartitionID, _ digest: String) -> Bool {
    FileManager.default.fileExists(atPath: file(partition, digest).path)
  }

  package func sweep(keeping used: Set<String>, olderThan date: Date) throws {
    let manager = FileManager.default
    for partition in try manager.contentsOfDirectory(atPath: folder.path) {
      let partitionFolder = folder.appendingPathComponent(partition)
      for prefix in try manager.contentsOfDirectory(atPath: partitionFolder.path) {
        let prefixFolder = partitionFolder.appendingPathComponent(prefix)
        for name in try manager.contentsOfDirectory(atPath: prefixFolder.path)
        where !used.contains("\(partition)/\(name)") {
          let file = prefixFolder.appendingPathComponent(name)
          let written = try manager.attributesOfItem(atPath: file.path)[.modificationDate] as? Date
          if let written, written < date { try manager.removeItem(at: file) }
        }
      }
    }
  }
}
