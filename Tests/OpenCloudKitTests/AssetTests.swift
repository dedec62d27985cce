import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Assets")
struct AssetTests {
  private let service = ScriptedService()
  private let recordID = CKRecord.ID(
    recordName: "n",
    zoneID: CKRecordZone.ID(zoneName: "zone")
  )

  @Test("A file is uploaded before its record is saved")
  func upload() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("asset-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("image")
    try Data("pixels".utf8).write(to: file)

    service.answer(
      "{\"tokens\":[{\"recordName\":\"n\",\"fieldName\":\"f\",\"url\":\"http://up.test/1\"}]}"
    )
    service.answer("{\"singleFile\":{\"fileChecksum\":\"c\",\"size\":6,\"receipt\":\"r\"}}")
    service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\"}]}")
    let record = CKRecord(recordType: "Note", recordID: recordID)
    let asset = CKAsset(fileURL: file)
    record["f"] = asset
    let database = service.container().privateCloudDatabase
    try await database.save(record)

    #expect(
      try service.body(0) == [
        "tokens": [["recordName": "n", "recordType": "Note", "fieldName": "f"]],
        "zoneID": ["zoneName": "zone"],
      ] as NSDictionary
    )
    #expect(service.requests[1].path == "http://up.test/1")
    #expect(service.requests[1].body == Data("pixels".utf8))
    let operation = try #require((service.body(2)["operations"] as? [NSDictionary])?.first)
    let fields = (operation["record"] as? NSDictionary)?["fields"] as? NSDictionary
    #expect(
      fields?["f"] as? NSDictionary == [
        "type": "ASSETID",
        "value": ["fileChecksum": "c", "size": 6, "receipt": "r"] as NSDictionary,
      ] as NSDictionary
    )
    #expect(asset.storedFile?.fileChecksum == "c")
    #expect(asset.storedFile?.receipt == nil)
  }

  @Test("A save with a missing asset file fails before any request")
  func missingFile() async throws {
    let record = CKRecord(recordType: "Note", recordID: recordID)
    record["f"] = CKAsset(fileURL: URL(fileURLWithPath: "/nowhere/at/all"))
    let database = service.container().privateCloudDatabase
    let error = await #expect(throws: CKError.self) { try await database.save(record) }
    #expect(error?.code == .assetFileNotFound)
    #expect(service.requests.isEmpty)
  }

  @Test(
    "An atomic batch with a missing asset file fails before any request, with an error for each"
  )
  func missingFileAtomic() async throws {
    let record = CKRecord(recordType: "Note", recordID: recordID)
    record["f"] = CKAsset(fileURL: URL(fileURLWithPath: "/nowhere/at/all"))
    let other = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "m", zoneID: recordID.zoneID)
    )
    let old = CKRecord.ID(recordName: "o", zoneID: recordID.zoneID)
    let results = try await service.container().privateCloudDatabase
      .modifyRecords(saving: [other, record], deleting: [old])
    #expect(results.saveResults[recordID]?.failure?.code == .assetFileNotFound)
    #expect(results.saveResults[other.recordID]?.failure?.code == .batchRequestFailed)
    #expect(results.deleteResults[old]?.failure?.code == .batchRequestFailed)
    #expect(service.requests.isEmpty)
  }

  @Test("An operation that is not atomic saves the records whose files are there")
  func missingFileOperation() async throws {
    service.answer("{\"records\":[{\"recordName\":\"m\",\"recordType\":\"Note\"}]}")
    let record = CKRecord(recordType: "Note", recordID: recordID)
    record["f"] = CKAsset(fileURL: URL(fileURLWithPath: "/nowhere/at/all"))
    let other = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "m", zoneID: recordID.zoneID)
    )
    let operation = CKModifyRecordsOperation(recordsToSave: [record, other])
    operation.isAtomic = false
    let codes = Mutex<[String: CKError.Code?]>([:])
    operation.perRecordSaveBlock = { recordID, result in
      codes.withLock { $0[recordID.recordName] = .some(result.failure?.code) }
    }
    operation.modifyRecordsResultBlock = { result in
      codes.withLock { $0["all"] = .some(result.failure?.code) }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      service.container().privateCloudDatabase.add(operation)
    }
    #expect(
      codes.withLock { $0 } == ["n": .assetFileNotFound, "m": nil, "all": .partialFailure]
    )
    #expect(service.requests.count == 1)
  }

  @Test("The assets of a fetched record are in the temporary folder")
  func download() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"Note","fields":{
       "one":{"type":"ASSETID","value":{"fileChecksum":"c","size":22,
        "downloadURL":"http://down.test/${f}"}},
       "some":{"type":"ASSETID_LIST","value":[{"fileChecksum":"d","size":18,
        "downloadURL":"http://down.test/2"}]}}}]}
      """
    )
    service.answer { request in
      WebServiceResponse(status: 200, body: Data(request.path.utf8))
    }
    service.answer { request in
      WebServiceResponse(status: 200, body: Data(request.path.utf8))
    }
    let database = service.container(seed: 2).privateCloudDatabase
    let record = try await database.record(for: recordID)
    let one = try #require((record["one"] as? CKAsset)?.fileURL)
    let some = try #require((record["some"] as? [CKAsset])?.first?.fileURL)
    #expect(try String(contentsOf: one, encoding: .utf8) == "http://down.test/asset")
    #expect(try String(contentsOf: some, encoding: .utf8) == "http://down.test/2")
    TemporaryAssets.discard(filesOf: [record])
    #expect(!FileManager.default.fileExists(atPath: one.path))
  }

  @Test("A missing asset on the service fails its record only")
  func lostFile() async throws {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone"},"syncToken":"t","records":[
       {"recordName":"n","recordType":"Note","fields":{"f":{"type":"ASSETID","value":
        {"fileChecksum":"c","size":3,"downloadURL":"/gone"}}}},
       {"recordName":"m","recordType":"Note"}]}]}
      """
    )
    service.answer("{\"serverErrorCode\":\"NOT_FOUND\"}", status: 404)
    let database = service.container(seed: 3).privateCloudDatabase
    let changes = try await database.recordZoneChanges(inZoneWith: recordID.zoneID, since: nil)
    #expect(changes.modificationResultsByID[recordID]?.failure?.code == .assetNotAvailable)
    let other = CKRecord.ID(recordName: "m", zoneID: recordID.zoneID)
    #expect(changes.modificationResultsByID[other]?.failure == nil)
  }

  @Test("An unchanged fetched asset is not uploaded again")
  func unchanged() async throws {
    service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\"}]}")
    var system = CKRecord.SystemFields()
    system.recordChangeTag = "1"
    let asset = CKAsset(
      fileURL: URL(fileURLWithPath: "/tmp/x"),
      storedFile: CKAsset.StoredFile(fileChecksum: "c", size: 1),
      uuid: UUID()
    )
    let record = CKRecord(
      recordType: "Note",
      recordID: recordID,
      system: system,
      fields: ["f": .init(.asset(asset))]
    )
    record["t"] = "x"
    let database = service.container().privateCloudDatabase
    try await database.save(record)
    #expect(service.requests.count == 1)
  }
}
