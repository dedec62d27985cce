import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Uploads of records that were not saved")
struct KeptUploadTests {
  private static let zone = CKRecordZone(zoneName: "zone")

  /// A service that counts the uploads to it, and may answer saves in its place.
  private struct Counted {
    let service: RealService
    let count = Counter()

    init() async throws {
      service = try await RealService()
      answerSaves(with: nil)
    }

    func answerSaves(with status: Int?) {
      let count = count
      service.intercept { request in
        if request.path.contains("/assets/upload/") { count.increment() }
        guard let status, request.path.contains("records/modify") else { return nil }
        return WebServiceResponse(status: status, body: Data())
      }
    }
  }

  private final class Counter: Sendable {
    private let number = Mutex(0)
    var value: Int { number.withLock { $0 } }
    func increment() { number.withLock { $0 += 1 } }
  }

  private func withFile(_ body: (URL) async throws -> Void) async throws {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("upload-\(UUID().uuidString)")
    try Data("first".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    try await body(file)
  }

  private func photo(_ name: String, _ file: URL) -> CKRecord {
    let record = CKRecord(
      recordType: "Photo",
      recordID: CKRecord.ID(recordName: name, zoneID: Self.zone.zoneID)
    )
    record["file"] = CKAsset(fileURL: file)
    return record
  }

  /// Answers an upload as Watershed's service does.
  private func answerUpload(
    _ service: ScriptedService,
    of file: URL,
    _ receipt: String
  ) throws {
    let checksum = try AssetDigest(of: file).checksum
    service.answer(
      "{\"tokens\":[{\"recordName\":\"n\",\"fieldName\":\"file\",\"url\":\"http://up.test/1\"}]}"
    )
    service.answer(
      "{\"singleFile\":{\"fileChecksum\":\"\(checksum)\",\"size\":5,\"receipt\":\"\(receipt)\"}}",
      headers: [WebServiceName.checksumForm: WebServiceName.checksumFormValue]
    )
  }

  @Test("A file of a record that is refused again and again is uploaded once")
  func refused() async throws {
    try await withFile { file in
      let counted = try await Counted()
      let database = try await counted.service.device("one").privateCloudDatabase
      try await database.save(Self.zone)
      let old = CKRecord(recordType: "Photo", recordID: photo("n", file).recordID)
      try await database.save(old)
      for _ in 0..<5 {
        let error = await #expect(throws: CKError.self) {
          try await database.save(photo("n", file))
        }
        #expect(error?.code == .serverRecordChanged)
      }
      #expect(counted.count.value == 1)
      #expect(try await counted.service.service.assets.fileCount() == 1)

      // The first save that the service accepts uses the file; the next one has to upload.
      old["file"] = CKAsset(fileURL: file)
      try await database.save(old)
      #expect(counted.count.value == 1)
      let other = try await counted.service.device("two").privateCloudDatabase
      let fetched = try await other.record(for: old.recordID)
      let asset = try #require(fetched["file"] as CKAsset?)
      #expect(try Data(contentsOf: #require(asset.fileURL)) == Data("first".utf8))
      TemporaryAssets.discard(filesOf: [fetched])
      old["file"] = CKAsset(fileURL: file)
      try await database.save(old)
      #expect(counted.count.value == 2)
    }
  }

  @Test("A file of a save whose reply was lost is not uploaded again", arguments: [502, 200])
  func lostReply(status: Int) async throws {
    try await withFile { file in
      let counted = try await Counted()
      let database = try await counted.service.device("one").privateCloudDatabase
      try await database.save(Self.zone)
      counted.answerSaves(with: status)
      await #expect(throws: CKError.self) { try await database.save(photo("n", file)) }
      counted.answerSaves(with: nil)
      try await database.save(photo("n", file))
      #expect(counted.count.value == 1)
    }
  }

  @Test("A file that changed, or is of another record, is uploaded")
  func others() async throws {
    try await withFile { file in
      let counted = try await Counted()
      let database = try await counted.service.device("one").privateCloudDatabase
      try await database.save(Self.zone)
      counted.answerSaves(with: 502)
      await #expect(throws: CKError.self) { try await database.save(photo("n", file)) }
      await #expect(throws: CKError.self) { try await database.save(photo("m", file)) }
      #expect(counted.count.value == 2)
      try Data("other".utf8).write(to: file)
      counted.answerSaves(with: nil)
      let record = photo("n", file)
      try await database.save(record)
      #expect(counted.count.value == 3)
      let fetched = try await database.record(for: record.recordID)
      let asset = try #require(fetched["file"] as CKAsset?)
      #expect(try Data(contentsOf: #require(asset.fileURL)) == Data("other".utf8))
      TemporaryAssets.discard(filesOf: [fetched])
    }
  }

  @Test("A file that was uploaded for one account is not used for another one")
  func otherAccount() async throws {
    try await withFile { file in
      let counted = try await Counted()
      let container = try await counted.service.device("one")
      try await container.privateCloudDatabase.save(Self.zone)
      counted.answerSaves(with: 502)
      await #expect(throws: CKError.self) {
        try await container.privateCloudDatabase.save(photo("n", file))
      }
      counted.answerSaves(with: nil)
      let other = try await counted.service.device("two", of: "bob")
      try container.setWebAuthToken(try other.client().webAuthToken)
      try await container.privateCloudDatabase.save(Self.zone)
      try await container.privateCloudDatabase.save(photo("n", file))
      #expect(counted.count.value == 2)
    }
  }

  @Test(
    "A kept upload that the service no longer has is replaced by another one",
    arguments: [true, false]
  )
  func expired(isAtomic: Bool) async throws {
    try await withFile { file in
      let service = ScriptedService()
      try answerUpload(service, of: file, "first")
      service.answer("", status: 502)
      service.answer(
        """
        {"records":[{"recordName":"n","serverErrorCode":"BAD_REQUEST",
         "extension":{"code":"ASSET_NOT_AVAILABLE"}}]}
        """
      )
      try answerUpload(service, of: file, "second")
      service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Photo\"}]}")
      let database = service.container().privateCloudDatabase
      await #expect(throws: CKError.self) { try await database.save(photo("n", file)) }
      let results = try await database.modifyRecords(
        saving: [photo("n", file)],
        deleting: [],
        atomically: isAtomic
      )
      #expect(results.saveResults.values.allSatisfy { $0.failure == nil })
      #expect(service.requests.count == 7)
      #expect(String(decoding: service.requests[3].body, as: UTF8.self).contains("\"first\""))
      #expect(String(decoding: service.requests[6].body, as: UTF8.self).contains("\"second\""))
    }
  }

  @Test("A kept upload is used for half a day", arguments: [(43_199.0, 1), (43_201.0, 2)])
  func lifetime(seconds: Double, uploads: Int) async throws {
    try await withFile { file in
      let service = ScriptedService()
      let clock = LeapingClock()
      let database = service.container(clock: clock).privateCloudDatabase
      try answerUpload(service, of: file, "r")
      service.answer("", status: 502)
      if uploads == 2 { try answerUpload(service, of: file, "r") }
      service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Photo\"}]}")
      await #expect(throws: CKError.self) { try await database.save(photo("n", file)) }
      try await clock.sleep(seconds: seconds)
      try await database.save(photo("n", file))
      #expect(service.requests.filter { $0.path == "http://up.test/1" }.count == uploads)
    }
  }
}
