import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Services with equal seeds give equal names to files, so the tests run one after another.
@Suite("Asset transfers", .serialized)
struct TransferTests {
  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("transfer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }

  /// Creates a sparse file of a given size.
  private func sparseFile(_ url: URL, size: Int64) throws {
    try Data().write(to: url)
    let handle = try FileHandle(forWritingTo: url)
    try handle.truncate(atOffset: UInt64(size))
    try handle.close()
  }

  @Test("A large file is read in chunks, one at a time")
  func pieces() async throws {
    try await withFolder { folder in
      let file = folder.appendingPathComponent("large")
      let size: Int64 = 64 << 20
      try sparseFile(file, size: size)
      let read = Mutex<Int64>(0)
      var largest = 0
      var total: Int64 = 0
      for try await piece in FileChunks(
        of: file,
        size: size,
        progress: { count in
          read.withLock { $0 = count }
        }
      ) {
        largest = max(largest, piece.count)
        total += Int64(piece.count)
        #expect(read.withLock { $0 } == total)
      }
      #expect(total == size)
      #expect(largest <= FileChunks.pieceSize)
    }
  }

  @Test("A file whose size changed fails with assetFileModified", arguments: [-1, 1])
  func modified(difference: Int64) async throws {
    try await withFolder { folder in
      let file = folder.appendingPathComponent("file")
      try sparseFile(file, size: 600_000)
      let error = await #expect(throws: CKError.self) {
        for try await _ in FileChunks(of: file, size: 600_000 - difference) {}
      }
      #expect(error?.code == .assetFileModified)
    }
  }

  /// A service whose first download breaks after half of the bytes, and which may support ranges.
  private final class Breaking: CloudKitTransport {
    let bytes: Data
    let ranges = Mutex<[String?]>([])
    let canGoOn: Bool

    init(_ bytes: Data, canGoOn: Bool) {
      self.bytes = bytes
      self.canGoOn = canGoOn
    }

    func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
      WebServiceResponse(
        status: 200,
        body: Data(
          """
          {"records":[{"recordName":"n","recordType":"T","fields":{"f":{"type":"ASSETID",
           "value":{"fileChecksum":"c","size":\(bytes.count),"downloadURL":"http://d.test/1"}}}}]}
          """.utf8
        )
      )
    }

    func download(
      _ request: WebServiceRequest,
      to file: URL,
      progress: @escaping @Sendable (Int64) -> Void
    ) async throws -> WebServiceResponse {
      let range = request.headers["range"]
      let isFirst = ranges.withLock { ranges in
        ranges.append(range)
        return ranges.count == 1
      }
      let half = bytes.count / 2
      let goesOn = range == "bytes=\(half)-" && canGoOn
      var sink = try FileSink(file, appending: goesOn)
      try sink.write(isFirst ? bytes.prefix(half) : goesOn ? bytes.suffix(from: half) : bytes)
      try sink.close()
      progress(sink.count)
      if isFirst { throw TransportError(wasSent: true, reason: "reset") }
      return WebServiceResponse(status: goesOn ? 206 : 200)
    }
  }

  @Test("An interrupted download resumes or starts again", arguments: [true, false])
  func resuming(canGoOn: Bool) async throws {
    let bytes = Data((0..<1000).map { UInt8(truncatingIfNeeded: $0) })
    let service = Breaking(bytes, canGoOn: canGoOn)
    let container = CKContainer(
      identifier: "iCloud.test",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://service.test"),
        apiToken: "api",
        webAuthToken: "person"
      ),
      transport: service,
      effects: Effects(
        clock: LeapingClock(),
        randomness: SystemRandomness(),
        tasks: PoolTaskSpawner()
      )
    )
    let operation = CKFetchRecordsOperation(recordIDs: [CKRecord.ID(recordName: "n")])
    let fetched = Mutex<CKRecord?>(nil)
    let fractions = Mutex<[Double]>([])
    operation.perRecordProgressBlock = { _, fraction in
      fractions.withLock { $0.append(fraction) }
    }
    operation.perRecordResultBlock = { _, result in fetched.withLock { $0 = try? result.get() } }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      container.privateCloudDatabase.add(operation)
    }
    let record = try #require(fetched.withLock { $0 })
    let asset = try #require(record["f"] as? CKAsset)
    #expect(try Data(contentsOf: #require(asset.fileURL)) == bytes)
    #expect(service.ranges.withLock { $0 } == [nil, "bytes=500-"])
    #expect(fractions.withLock { $0 } == [0.5, 1])
    TemporaryAssets.discard(filesOf: [record])
  }

  @Test("A download of the wrong length is a networkFailure")
  func wrongLength() async throws {
    let service = ScriptedService()
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"T","fields":{"f":{"type":"ASSETID",
       "value":{"fileChecksum":"c","size":10,"downloadURL":"http://d.test/1"}}}}]}
      """
    )
    service.answer("short")
    let database = service.container().privateCloudDatabase
    let error = await #expect(throws: CKError.self) {
      try await database.record(for: CKRecord.ID(recordName: "n"))
    }
    #expect(error?.code == .networkFailure)
  }

  @Test("A download with a checksum in Apple's form is accepted without comparing it")
  func otherChecksums() async throws {
    let service = ScriptedService()
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"T","fields":{"f":{"type":"ASSETID","value":
       {"fileChecksum":"AZrABAdOEON4l5zTpsm/h/NH7tXc","size":5,"downloadURL":"http://d.test/1"}}}}]}
      """
    )
    service.answer("right")
    let record = try await service.container().privateCloudDatabase
      .record(for: CKRecord.ID(recordName: "n"))
    let asset = try #require(record["f"] as? CKAsset)
    #expect(try Data(contentsOf: #require(asset.fileURL)) == Data("right".utf8))
    TemporaryAssets.discard(filesOf: [record])
  }

  @Test("A download whose bytes do not match its checksum is an error, and is restarted")
  func wrongBytes() async throws {
    try await withFolder { folder in
      let file = folder.appendingPathComponent("file")
      try Data("right".utf8).write(to: file)
      let checksum = try AssetDigest(of: file).checksum
      for (answers, isRight) in [
        (["wrong", "wrong", "wrong"], false), (["wrong", "right"], true),
      ] {
        let service = ScriptedService()
        service.answer(
          """
          {"records":[{"recordName":"n","recordType":"T","fields":{"f":{"type":"ASSETID",
           "value":{"fileChecksum":"\(checksum)","size":5,"downloadURL":"http://d.test/1"}}}}]}
          """
        )
        let form = [WebServiceName.checksumForm: WebServiceName.checksumFormValue]
        for answer in answers { service.answer(answer, headers: form) }
        let database = service.container(retries: .interactive)
          .privateCloudDatabase
        do {
          let record = try await database.record(for: CKRecord.ID(recordName: "n"))
          #expect(isRight)
          let asset = try #require(record["f"] as? CKAsset)
          #expect(try Data(contentsOf: #require(asset.fileURL)) == Data("right".utf8))
          TemporaryAssets.discard(filesOf: [record])
        } catch let error as CKError {
          #expect(!isRight)
          #expect(error.code == .networkFailure)
        }
      }
    }
  }
}
