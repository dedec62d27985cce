import Foundation
import Synchronization

/// The assets of a server without persistent storage.
package final class MemoryAssetStore: AssetStore {
  private struct File {
    var data: Data
    var written: Date
  }

  private let name = Mutex<String?>(nil)
  private let files = Mutex<[AssetPlace: File]>([:])
  private let now: @Sendable () -> Date

  package init(now: @escaping @Sendable () -> Date) {
    self.now = now
  }

  package func begin(_ place: AssetPlace) async throws -> any AssetUpload {
    MemoryUpload { [self] data in
      files.withLock { $0[place] = File(data: data, written: now()) }
    }
  }

  package func size(of place: AssetPlace) async throws -> Int64? {
    files.withLock { $0[place].map { Int64($0.data.count) } }
  }

  package func read(
    _ place: AssetPlace,
    _ range: Range<Int64>,
    into sink: @Sendable (Data) async throws -> Void
  ) async throws {
    guard let file = files.withLock({ $0[place] }), Int64(file.data.count) >= range.upperBound
    else { throw CocoaError(.fileReadNoSuchFile) }
    try await sink(Data(file.data[Int(range.lowerBound)..<Int(range.upperBound)]))
  }

  package func remove(_ place: AssetPlace) async throws {
    files.withLock { $0[place] = nil }
  }

  package func partitions() async throws -> [PartitionID] {
    Set(files.withLock { $0.keys.map(\.partition) }).sorted { $0.rawValue < $1.rawValue }
  }

  package func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
    files.withLock { files in
      files.filter { $0.key.partition == partition }.map { place, file in
        StoredAssetFile(name: place.file, size: Int64(file.data.count), written: file.written)
      }.sorted { $0.name < $1.name }
    }
  }

  package func identity() async throws -> String? { name.withLock { $0 } }

  package func keep(identity: String) async throws { name.withLock { $0 = $0 ?? identity } }

  /// Interrupted uploads leave nothing.
  package func removeRemains(before date: Date) async throws {}
}

private final class MemoryUpload: AssetUpload {
  private let data = Mutex(Data())
  private let keep: @Sendable (Data) -> Void

  init(keep: @escaping @Sendable (Data) -> Void) {
    self.keep = keep
  }

  func write(_ more: Data) async throws { data.withLock { $0.append(more) } }

  func finish() async throws { keep(data.withLock { $0 }) }

  func cancel() async { data.withLock { $0 = Data() } }
}
