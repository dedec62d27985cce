import Foundation
import Testing

@testable import CloudKitServer

@Suite("Listing a folder of assets while it changes")
struct AssetFolderTests {
  @Test("Files that are finished or removed between the listing and their attributes are left out")
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
