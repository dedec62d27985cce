import Foundation
import Testing

@testable import CloudKitServer

@Suite("A folder of assets that changes while it is listed")
struct AssetFolderTests {
  @Test("Files that end or go between the listing and the look at them are left out")
  func vanishing() async throws {
    try await withTemporaryFolder { folder in
      let store = try FolderAssetStore(folder: folder) { prefixFolder in
        try? FileManager.default.removeItem(at: prefixFolder.appendingPathComponent("abgone"))
      }
      let partition = PartitionID(rawValue: 7)
      for name in ["abgone", "abstays"] {
        let upload = try await store.begin(AssetPlace(partition, name))
        try await upload.write(Data(name.utf8))
        try await upload.finish()
      }
      #expect(try await store.files(in: partition).map(\.name) == ["abstays"])
      try await store.removeRemains(before: .distantFuture)
      #expect(try await store.files(in: PartitionID(rawValue: 8)).isEmpty)
    }
  }
}
