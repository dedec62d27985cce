import Foundation

@testable import CloudKitServer

/// An asset store of tests, which forwards what it does not implement itself to a store in memory.
protocol ForwardingAssetStore: AssetStore {
  var store: MemoryAssetStore { get }
}

extension ForwardingAssetStore {
  func begin(_ place: AssetPlace) async throws -> any AssetUpload {
    try await store.begin(place)
  }

  func size(of place: AssetPlace) async throws -> Int64? { try await store.size(of: place) }

  func read(
    _ place: AssetPlace,
    _ range: Range<Int64>,
    into sink: @Sendable (Data) async throws -> Void
  ) async throws {
    try await store.read(place, range, into: sink)
  }

  func remove(_ place: AssetPlace) async throws { try await store.remove(place) }
  func partitions() async throws -> [PartitionID] { try await store.partitions() }

  func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
    try await store.files(in: partition)
  }

  func identity() async throws -> String? { try await store.identity() }
  func keep(identity: String) async throws { try await store.keep(identity: identity) }
  func removeRemains(before date: Date) async throws { try await store.removeRemains(before: date) }
}
