import CloudKitMirroring
import CloudKitTesting
import Foundation
import Testing

@Suite("Large values that are not uploaded")
struct UploadFailureTests {
  /// The outcomes of a batch that creates a record with a file and another one.
  private func send(_ bytes: Data?, assetSize: Int) async throws -> [CloudOutcome] {
    let cloud = try await TestCloud(limits: { $0.assetSize = assetSize })
    let container = try await cloud.container(for: "ada", device: "phone")
    let database = CloudKitDatabase(container: container, scope: .private)
    _ = try await database.account()
    try await database.saveZone(MirrorNames.zone)
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("value-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try bytes?.write(to: file)
    var operation = CloudOperation(.create, name: "large", recordType: "CD_Post")
    let print = MirrorFingerprint(of: bytes ?? Data())
    operation.set["CD_text_ckAsset"] = .asset(MirrorAsset(fingerprint: print, file: file.path))
    return try await database.modify(
      MirrorNames.zone,
      CloudBatch(
        device: "d",
        sequence: 1,
        operations: [operation, CloudOperation(.create, name: "small", recordType: "CD_Post")]
      )
    )
  }

  @Test("A file for which the database has no room fails the batch and refuses no record")
  func noRoom() async throws {
    let failure = await #expect(throws: CloudFailure.self) {
      try await send(Data("too many bytes".utf8), assetSize: 4)
    }
    guard case .overQuota? = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
  }

  @Test("A missing file refuses its record, and the other records of the batch are sent again")
  func missing() async throws {
    let outcomes = try await send(nil, assetSize: 100)
    guard case .refused? = outcomes.first, outcomes.last == .batchFailed else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(outcomes.count == 2)
  }
}
