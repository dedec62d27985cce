import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Stores files in a folder for each partition.
package final class FolderAssetStore: AssetStore {
  private static let partialExtension = "partial"
  /// Bytes per read.
  private static let chunkSize: Int64 = 262_144

  private let folder: URL
  private let writes = Atomic<UInt64>(0)
  /// Called between listing a folder and reading its files' attributes: for tests.
  private let afterListing: (@Sendable (URL) -> Void)?

  package init(folder: URL, afterListing: (@Sendable (URL) -> Void)? = nil) throws {
    self.folder = folder
    self.afterListing = afterListing
    try PrivateFile.makeFolder(folder)
  }

  /// Creates the folder of a file and the partition's above it.
  ///
  /// A folder is an entry of its parent: until the parent is flushed, a power failure can lose the
  /// new folder with every file in it.
  private func makeFolder(_ prefix: URL) throws {
    guard !FileManager.default.fileExists(atPath: prefix.path) else { return }
    try PrivateFile.makeFolder(prefix)
    try DurableFolder.synchronize(prefix.deletingLastPathComponent())
    try DurableFolder.synchronize(folder)
  }

  private func file(_ place: AssetPlace) -> URL {
    folder.appendingPathComponent(
      "\(place.partition.rawValue)/\(place.file.prefix(2))/\(place.file)"
    )
  }

  package func begin(_ place: AssetPlace) async throws -> any AssetUpload {
    let file = file(place)
    try makeFolder(file.deletingLastPathComponent())
    let number = writes.wrappingAdd(1, ordering: .relaxed).newValue
    let pid = ProcessInfo.processInfo.processIdentifier
    let partial = file.appendingPathExtension("\(pid)-\(number).\(Self.partialExtension)")
    return FolderUpload(handle: try PrivateFile.create(partial), partial: partial, file: file)
  }

  package func size(of place: AssetPlace) async throws -> Int64? {
    let path = file(place).path
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    return try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64
      ?? (try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.int64Value
  }

  package func read(
    _ place: AssetPlace,
    _ range: Range<Int64>,
    into sink: @Sendable (Data) async throws -> Void
  ) async throws {
    let handle = try FileHandle(forReadingFrom: file(place))
    defer { try? handle.close() }
    try handle.seek(toOffset: UInt64(range.lowerBound))
    var left = range.upperBound - range.lowerBound
    while left > 0 {
      guard let chunk = try handle.read(upToCount: Int(min(left, Self.chunkSize))), !chunk.isEmpty
      else { throw CocoaError(.fileReadCorruptFile) }
      left -= Int64(chunk.count)
      try await sink(chunk)
    }
  }

  package func remove(_ place: AssetPlace) async throws {
    let file = file(place)
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    try FileManager.default.removeItem(at: file)
  }

  package func partitions() async throws -> [PartitionID] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).compactMap { name in
      Int64(name).map { PartitionID(rawValue: $0) }
    }.sorted { $0.rawValue < $1.rawValue }
  }

  package func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
    try await everything(in: partition).filter { !$0.file.name.hasSuffix(Self.partialExtension) }
      .map(\.file)
  }

  static let identityName = "identity"

  private static func identityFile(of folder: URL) -> URL {
    folder.appendingPathComponent(identityName)
  }

  package func identity() async throws -> String? { try Self.identity(of: folder) }

  /// The identity of the store in a folder, which is not created if it is missing.
  static func identity(of folder: URL) throws -> String? {
    let identityFile = identityFile(of: folder)
    // A store that may not be read has an identity nevertheless.
    guard try ForeignFile.isThere(folder), try ForeignFile.isThere(identityFile) else { return nil }
    let text = try String(contentsOf: identityFile, encoding: .utf8)
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  package func keep(identity: String) async throws {
    do {
      let file = try PrivateFile.create(Self.identityFile(of: folder))
      try file.write(contentsOf: Data("\(identity)\n".utf8))
      try file.close()
    } catch let error as CocoaError where error.code == .fileWriteFileExists {
      // Another server was first; both read the same identity.
    }
  }

  package func removeRemains(before date: Date) async throws {
    for partition in try await partitions() {
      for (file, url) in try await everything(in: partition)
      where file.name.hasSuffix(Self.partialExtension) && file.written < date {
        _ = try Self.ignoringMissingFile { try FileManager.default.removeItem(at: url) }
      }
    }
  }

  private func everything(
    in partition: PartitionID
  ) async throws -> [(file: StoredAssetFile, url: URL)] {
    let manager = FileManager.default
    let partitionFolder = folder.appendingPathComponent("\(partition.rawValue)")
    func names(in folder: URL) throws -> [String] {
      try Self.ignoringMissingFile { try manager.contentsOfDirectory(atPath: folder.path).sorted() }
        ?? []
    }
    var found: [(file: StoredAssetFile, url: URL)] = []
    for prefix in try names(in: partitionFolder) {
      // A partition may have millions of files, and each is looked at: other tasks run in between.
      await Task.yield()
      let prefixFolder = partitionFolder.appendingPathComponent(prefix)
      let files = try names(in: prefixFolder)
      afterListing?(prefixFolder)
      for name in files {
        let url = prefixFolder.appendingPathComponent(name)
        // A finished upload has been renamed since, and a removed one does not exist.
        let known = try Self.ignoringMissingFile { try manager.attributesOfItem(atPath: url.path) }
        guard let attributes = known else { continue }
        let file = StoredAssetFile(
          name: name,
          size: (attributes[.size] as? NSNumber)?.int64Value ?? 0,
          written: attributes[.modificationDate] as? Date ?? .distantPast
        )
        found.append((file, url))
      }
    }
    return found
  }

  /// The result, or nil if the file or the folder was removed in between.
  private static func ignoringMissingFile<Result>(_ body: () throws -> Result) throws -> Result? {
    do {
      return try body()
    } catch let error as CocoaError
      where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile
    {
      return nil
    }
  }
}

/// A rename makes the complete file visible; flushing file and folder makes it durable.
private final class FolderUpload: AssetUpload, @unchecked Sendable {
  // Unchecked: one task uses an upload, one call at a time.
  private let handle: FileHandle
  private let partial: URL
  private let file: URL

  init(handle: FileHandle, partial: URL, file: URL) {
    self.handle = handle
    self.partial = partial
    self.file = file
  }

  func write(_ data: Data) async throws {
    try handle.write(contentsOf: data)
  }

  func finish() async throws {
    try handle.synchronize()
    try handle.close()
    guard rename(partial.path, file.path) == 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    try DurableFolder.synchronize(file.deletingLastPathComponent())
  }

  func cancel() async {
    // A file that is left is removed by the next housekeeping.
    try? handle.close()
    try? FileManager.default.removeItem(at: partial)
  }
}
