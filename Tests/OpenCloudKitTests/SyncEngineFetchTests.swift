import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("CKSyncEngine: incomplete and expired fetches")
struct SyncEngineFetchTests {
  // MARK: Files

  /// Saves records with files in two zones; the service truncates the file of `broken`, which has a text.
  private func cutFile(
    _ service: RealService,
    text: String = "the bytes of broken"
  ) async throws -> CKContainer {
    let writer = try await service.device("writer")
    let database = writer.privateCloudDatabase
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("asset-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    for (zone, names) in [("first", ["broken", "whole"]), ("second", ["other"])] {
      let zoneID = try await database.save(CKRecordZone(zoneName: zone)).zoneID
      for name in names {
        try Data((name == "broken" ? text : "the bytes of \(name)").utf8).write(to: file)
        let record = CKRecord(
          recordType: "Note",
          recordID: CKRecord.ID(recordName: name, zoneID: zoneID)
        )
        record["text"] = name
        record["file"] = CKAsset(fileURL: file)
        try await database.save(record)
      }
    }
    let inner = service.service
    service.intercept { request in
      guard request.path.contains("/assets/"), request.method == "GET" else { return nil }
      let transport = InProcessTransport { await inner.respond(to: $0) }
      guard var response = try? await transport.send(request) else { return nil }
      // A resumed download requests the last byte, and gets an empty body.
      let isCut = [text, String(text.suffix(1))].contains(
        String(decoding: response.body, as: UTF8.self)
      )
      if isCut { response.body.removeLast() }
      return response
    }
    return try await service.device("reader")
  }

  @Test("A record with an incomplete file is reported and fetched later; its zone continues")
  func brokenFile() async throws {
    let service = try await RealService()
    let reader = try await cutFile(service)
    let notes = SyncedNotes()
    let engine = notes.engine(on: reader)
    let error = try #require(
      await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    )
    #expect(notes.texts == ["whole": "whole", "other": "other"])
    let zones = error.partialErrorsByItemID ?? [:]
    #expect(zones.keys.compactMap { ($0.base as? CKRecordZone.ID)?.zoneName } == ["first"])
    let records = (zones.values.first as? CKError)?.partialErrorsByItemID ?? [:]
    #expect(records.keys.compactMap { ($0.base as? CKRecord.ID)?.recordName } == ["broken"])
    #expect(engine.state.zoneIDsWithUnfetchedServerChanges.isEmpty)

    // Another engine with the stored state fetches it when the file is complete again.
    service.intercept(nil)
    let state = try #require(notes.serialization)
    let archive = try JSONEncoder().encode(state)
    let kept = try JSONDecoder().decode(CKSyncEngine.State.Serialization.self, from: archive)
    let later = SyncedNotes()
    try await later.engine(on: reader, state: kept).fetchChanges()
    #expect(later.texts == ["broken": "broken"])
    let asset = try #require(later.record("broken")?["file"] as CKAsset?)
    let bytes = try Data(contentsOf: try #require(asset.fileURL))
    #expect(bytes == Data("the bytes of broken".utf8))
  }

  @Test("Failed downloads of an incomplete file leave no files behind")
  func noFilesLeft() async throws {
    let service = try await RealService()
    // Other tests have partial files in the same folder.
    let text = "the bytes of \(UUID())"
    let reader = try await cutFile(service, text: text)
    let notes = SyncedNotes()
    let engine = notes.engine(on: reader)
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    for _ in 0..<3 { await #expect(throws: CKError.self) { try await engine.fetchChanges() } }
    let files = try FileManager.default.contentsOfDirectory(
      at: TemporaryAssets.folder,
      includingPropertiesForKeys: nil
    )
    let cut = files.filter { (try? Data(contentsOf: $0)) == Data(text.dropLast().utf8) }
    #expect(cut.isEmpty)
  }

  @Test("A parked record that was deleted is not fetched again")
  func deletedWhileParked() async throws {
    let service = try await RealService()
    let reader = try await cutFile(service)
    let notes = SyncedNotes()
    let engine = notes.engine(on: reader)
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    try await reader.privateCloudDatabase.deleteRecord(
      withID: CKRecord.ID(recordName: "broken", zoneID: CKRecordZone.ID(zoneName: "first"))
    )
    try await engine.fetchChanges()
  }

  // MARK: Expired tokens

  @Test("A zone that was deleted and created again is reported as deleted first")
  func recreatedZone() async throws {
    let service = try await RealService()
    let writer = SyncedNotes()
    let one = writer.engine(on: try await service.device("one"))
    one.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: SyncedNotes.zoneID))])
    for name in ["a", "b"] { writer.write(name, "old", on: one) }
    try await one.sendChanges()
    let reader = SyncedNotes()
    let two = reader.engine(on: try await service.device("two"))
    try await two.fetchChanges()
    reader.write("b", "edited", on: two)

    let database = one.database
    try await database.deleteRecordZone(withID: SyncedNotes.zoneID)
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    let record = CKRecord(recordType: "Note", recordID: SyncedNotes.recordID("c"))
    record["text"] = "new"
    try await database.save(record)
    // The zone of the pending edit lacks its record; the delegate creates the record again, and the
    // next fetch sends it.
    await #expect(throws: CKError.self) { try await two.fetchChanges() }
    try await two.fetchChanges()
    #expect(reader.texts == ["b": "edited", "c": "new"])
    #expect(two.state.pendingRecordZoneChanges.isEmpty)
    #expect(reader.log.contains("zones +0 -1"))
  }

  @Test("A zone that was deleted during a fetch and created again is reported as deleted")
  func recreatedDuringFetch() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    func save(_ name: String) async throws {
      let record = CKRecord(recordType: "Note", recordID: SyncedNotes.recordID(name))
      record["text"] = name
      try await database.save(record)
    }
    try await save("a")
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("two"))
    try await engine.fetchChanges()
    try await save("b")
    service.intercept { request in
      // The reader has listed the zones already.
      if request.path.contains("changes/zone") {
        _ = try? await database.deleteRecordZone(withID: SyncedNotes.zoneID)
      }
      return nil
    }
    let error = await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect((error?.partialErrorsByItemID?.values.first as? CKError)?.code == .zoneNotFound)
    service.intercept(nil)
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    try await save("c")
    notes.clearLog()
    try await engine.fetchChanges()
    #expect(notes.texts == ["c": "c"])
    #expect(notes.log.contains("zones +0 -1"))
  }

  /// A reader of a zone that is deleted and created again after it was read.
  private func readerOfRecreatedZone(
    _ service: RealService
  ) async throws -> (SyncedNotes, CKSyncEngine) {
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    let record = CKRecord(recordType: "Note", recordID: SyncedNotes.recordID("a"))
    record["text"] = "old"
    try await database.save(record)
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("two"))
    try await engine.fetchChanges()
    try await database.deleteRecordZone(withID: SyncedNotes.zoneID)
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    notes.clearLog()
    return (notes, engine)
  }

  @Test("A zone whose token expired is not reported as deleted while a save of it was refused")
  func refusedSave() async throws {
    let service = try await RealService()
    let (notes, engine) = try await readerOfRecreatedZone(service)
    service.intercept { request in
      guard request.path.contains("records/modify") else { return nil }
      return WebServiceResponse(
        status: 413,
        body: Data("{\"serverErrorCode\":\"QUOTA_EXCEEDED\"}".utf8)
      )
    }
    notes.write("only", "copy", on: engine)
    for _ in 0..<2 {
      let error = await #expect(throws: CKError.self) { try await engine.fetchChanges() }
      #expect(error?.withPartialErrors.contains { $0.code == .changeTokenExpired } == true)
      #expect(notes.texts == ["a": "old", "only": "copy"])
      #expect(engine.state.pendingRecordZoneChanges.isEmpty)
    }
    // The refusal is part of the stored state.
    let state = try JSONDecoder().decode(
      CKSyncEngine.State.Serialization.self,
      from: JSONEncoder().encode(try #require(notes.serialization))
    )
    let next = notes.engine(on: engine.database.container, state: state)
    await #expect(throws: CKError.self) { try await next.fetchChanges() }
    #expect(notes.texts == ["a": "old", "only": "copy"])
    #expect(!notes.log.contains("zones +0 -1"))
    // The app adds the change again when there is space on the service.
    service.intercept(nil)
    notes.write("only", "copy", on: next)
    try await next.fetchChanges()
    #expect(notes.texts == ["only": "copy"])
    #expect(notes.log.contains("zones +0 -1"))
  }

  @Test("A pending change without a record does not delay the restart of an expired zone")
  func changeWithoutRecord() async throws {
    let service = try await RealService()
    let (notes, engine) = try await readerOfRecreatedZone(service)
    notes.change { $0.keepsPending = true }
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(SyncedNotes.recordID("gone"))])
    try await engine.fetchChanges()
    #expect(notes.texts.isEmpty)
    #expect(notes.log.contains("zones +0 -1"))
    #expect(engine.state.pendingRecordZoneChanges.count == 1)
  }

  @Test("A change added while the delegate has none to send delays an expired zone's restart")
  func changeAddedMeanwhile() async throws {
    let service = try await RealService()
    let (notes, engine) = try await readerOfRecreatedZone(service)
    notes.change { contents in
      contents.keepsPending = true
      contents.meanwhile = { notes.write("late", "copy", on: $0) }
    }
    engine.state.add(pendingRecordZoneChanges: [.saveRecord(SyncedNotes.recordID("gone"))])
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(notes.texts == ["a": "old", "late": "copy"])
    try await engine.fetchChanges()
    #expect(notes.texts == ["late": "copy"])
  }

  @Test("A record deleted before a new incarnation is reported as deleted")
  func deletedBeforeOtherService() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    for name in ["a", "b"] {
      let record = CKRecord(recordType: "Note", recordID: SyncedNotes.recordID(name))
      record["text"] = "old"
      try await database.save(record)
    }
    let notes = SyncedNotes()
    let engine = notes.engine(on: try await service.device("two"))
    try await engine.fetchChanges()
    try await database.deleteRecord(withID: SyncedNotes.recordID("a"))
    try await service.service.beginNewIncarnation()
    try await engine.fetchChanges()
    #expect(notes.texts == ["b": "old"])
  }

  /// Fails the next request for a zone's changes without a token.
  private func failOneFirstPage(of service: RealService) {
    let isLeft = Mutex(true)
    service.intercept { request in
      guard request.path.contains("changes/zone"),
        !String(decoding: request.body, as: UTF8.self).contains("syncToken"),
        isLeft.withLock({ isLeft in
          defer { isLeft = false }
          return isLeft
        })
      else { return nil }
      return WebServiceResponse(
        status: 421,
        body: Data("{\"serverErrorCode\":\"AUTHENTICATION_REQUIRED\"}".utf8)
      )
    }
  }

  @Test("A deletion from before a new incarnation is reported after a failed request too")
  func failureAfterOtherService() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    for name in ["a", "b"] {
      let record = CKRecord(recordType: "Note", recordID: SyncedNotes.recordID(name))
      record["text"] = "old"
      try await database.save(record)
    }
    let notes = SyncedNotes()
    let container = try await service.device("two")
    let engine = notes.engine(on: container)
    try await engine.fetchChanges()
    try await database.deleteRecord(withID: SyncedNotes.recordID("a"))
    try await service.service.beginNewIncarnation()
    failOneFirstPage(of: service)
    await #expect(throws: CKError.self) { try await engine.fetchChanges() }
    #expect(notes.texts == ["a": "old", "b": "old"])
    // The app is launched again.
    let next = notes.engine(on: container, state: notes.serialization)
    try await next.fetchChanges()
    #expect(notes.texts == ["b": "old"])
  }

  @Test("A deletion in a shared zone from before a new incarnation is reported")
  func sharedZoneOfOtherService() async throws {
    let service = try await RealService()
    let owner = try await service.device("one").privateCloudDatabase
    try await owner.save(CKRecordZone(zoneID: SyncedNotes.zoneID))
    for name in ["a", "b"] {
      let record = CKRecord(recordType: "Note", recordID: SyncedNotes.recordID(name))
      record["text"] = "old"
      try await owner.save(record)
    }
    let share = CKShare(recordZoneID: SyncedNotes.zoneID)
    share.publicPermission = .readWrite
    let url = try #require((try await owner.save(share) as? CKShare)?.url)
    let guest = try await service.device("two", of: "grace")
    _ = try await guest.accept(try await guest.shareMetadata(for: url))
    let notes = SyncedNotes()
    var configuration = CKSyncEngine.Configuration(
      database: guest.sharedCloudDatabase,
      stateSerialization: nil,
      delegate: notes
    )
    configuration.automaticallySync = false
    let engine = CKSyncEngine(configuration)
    try await engine.fetchChanges()
    #expect(notes.texts["a"] == "old")
    try await owner.deleteRecord(withID: SyncedNotes.recordID("a"))
    try await service.service.beginNewIncarnation()
    try await engine.fetchChanges()
    #expect(notes.texts["a"] == nil)
    #expect(notes.texts["b"] == "old")
  }

  @Test("After the service is restored from an older copy, feeds are read again without deletions")
  func olderCopy() async throws {
    let service = try await RealService()
    let writer = SyncedNotes()
    let one = writer.engine(on: try await service.device("one"))
    one.state.add(pendingDatabaseChanges: [.saveZone(CKRecordZone(zoneID: SyncedNotes.zoneID))])
    writer.write("a", "kept", on: one)
    try await one.sendChanges()
    try await one.fetchChanges()
    try await service.service.beginNewIncarnation()
    writer.clearLog()
    try await one.fetchChanges()
    #expect(writer.texts == ["a": "kept"])
    #expect(writer.log.allSatisfy { !$0.contains("-1") })
    #expect(writer.log.contains("records +1 -0"))
  }
}
