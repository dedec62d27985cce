import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("CloudKit API against Watershed's service")
struct RealServiceTests {
  private let zone = CKRecordZone(zoneName: "notes")

  private func recordID(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: zone.zoneID)
  }

  private func note(_ name: String, _ title: String) -> CKRecord {
    let record = CKRecord(recordType: "Note", recordID: recordID(name))
    record["title"] = title
    return record
  }

  @Test("Records that exceed the size of one reply are fetched in several requests")
  func largeFetch() async throws {
    let service = try await RealService(limits: { $0.bytesPerReply = 10_000 })
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(zone)
    let notes = (0..<9).map { note("n\($0)", String(repeating: "x", count: 3000)) }
    let saved = try await database.modifyRecords(saving: notes, deleting: [])
    for result in saved.saveResults.values { _ = try result.get() }
    let before = service.requestCount
    let found = try await database.records(for: notes.map(\.recordID))
    #expect(found.count == 9)
    for result in found.values { #expect((try result.get()["title"] as? String)?.count == 3000) }
    #expect(service.requestCount - before > 1)
  }

  @Test("A record with every type of value is fetched by another device")
  func everyValue() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    let two = try await service.device("two").privateCloudDatabase
    try await one.save(zone)
    let target = note("target", "t")
    let record = note("n", "Title")
    record["count"] = 42
    record["ratio"] = 2.0
    record["flag"] = true
    let exact = Date(timeIntervalSinceReferenceDate: 700_000_000.123_456_7)
    record["when"] = exact
    record["days"] = [Date.distantPast, exact, Date(timeIntervalSince1970: 0)]
    record.encryptedValues["then"] = exact
    record["bytes"] = Data([0, 255])
    record["words"] = ["a", "b"]
    record["numbers"] = [1, 2]
    record["target"] = CKRecord.Reference(record: target, action: .none)
    record["place"] = CLLocation(latitude: 48.2, longitude: 16.4)
    record.encryptedValues["secret"] = "hidden"
    let results = try await one.modifyRecords(saving: [record, target], deleting: [])
    for result in results.saveResults.values { _ = try result.get() }

    let changes = try await two.recordZoneChanges(inZoneWith: zone.zoneID, since: nil)
    let copy = try #require(try changes.modificationResultsByID[recordID("n")]?.get().record)
    #expect(copy.recordType == "Note")
    #expect(copy.recordChangeTag == record.recordChangeTag)
    #expect(copy["count"] as? Int == 42)
    #expect(copy["ratio"] as? Double == 2)
    #expect(copy["flag"] as? Bool == true)
    #expect(copy["when"] as? Date == exact)
    #expect(copy["days"] as? [Date] == record["days"] as? [Date])
    #expect(copy.encryptedValues["then"] as? Date == exact)
    #expect(copy["bytes"] as? Data == Data([0, 255]))
    #expect(copy["words"] as? [String] == ["a", "b"])
    #expect(copy["numbers"] as? [Int] == [1, 2])
    #expect((copy["target"] as? CKRecord.Reference)?.recordID == target.recordID)
    #expect((copy["place"] as? CLLocation)?.coordinate.latitude == 48.2)
    #expect(copy.encryptedValues["secret"] as? String == "hidden")
    #expect(copy.creationDate != nil)
    #expect(changes.modificationResultsByID.count == 2)
    #expect(!changes.moreComing)
  }

  @Test("A save over a newer version fails, and the error contains that version")
  func conflict() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    let two = try await service.device("two").privateCloudDatabase
    try await one.save(zone)
    try await one.save(note("n", "first"))
    let ours = try await one.record(for: recordID("n"))
    let theirs = try await two.record(for: recordID("n"))
    theirs["title"] = "theirs"
    try await two.save(theirs)
    ours["title"] = "ours"
    let before = service.requestCount
    let error = try #require(
      await #expect(throws: CKError.self) { try await one.save(ours) }
    )
    #expect(error.code == .serverRecordChanged)
    let server = try #require(error.serverRecord)
    #expect(server["title"] as? String == "theirs")
    #expect(error.ancestorRecord?["title"] as? String == "first")
    #expect(service.requestCount == before + 1)
    server["title"] = "merged"
    try await one.save(server)
    #expect(try await two.record(for: recordID("n"))["title"] as? String == "merged")
  }

  @Test("Creating an existing record is a conflict")
  func exists() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    try await one.save(note("n", "first"))
    let error = await #expect(throws: CKError.self) { try await one.save(note("n", "second")) }
    #expect(error?.code == .serverRecordChanged)
    #expect(error?.serverRecord?["title"] as? String == "first")
  }

  @Test("An atomic batch with one bad record saves nothing")
  func atomicity() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    try await one.save(note("n", "first"))
    let results = try await one.modifyRecords(
      saving: [note("m", "innocent"), note("n", "guilty")],
      deleting: []
    )
    #expect(results.saveResults[recordID("m")]?.failure?.code == .batchRequestFailed)
    #expect(results.saveResults[recordID("n")]?.failure?.code == .serverRecordChanged)
    let found = try await one.records(for: [recordID("m")])
    #expect(found[recordID("m")]?.failure?.code == .unknownItem)
  }

  @Test("A deleted record is reported with its type, and a deleted zone as deleted")
  func deletions() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    try await one.save(note("n", "first"))
    let start = try await one.recordZoneChanges(inZoneWith: zone.zoneID, since: nil)
    try await one.deleteRecord(withID: recordID("n"))
    let changes = try await one.recordZoneChanges(
      inZoneWith: zone.zoneID,
      since: start.changeToken
    )
    #expect(changes.deletions.map(\.recordID) == [recordID("n")])
    #expect(changes.deletions.map(\.recordType) == ["Note"])
    let database = try await one.databaseChanges(since: nil)
    #expect(database.modifications.map(\.zoneID) == [zone.zoneID])
    try await one.deleteRecordZone(withID: zone.zoneID)
    let end = try await one.databaseChanges(since: database.changeToken)
    #expect(end.deletions.map(\.zoneID) == [zone.zoneID])
    let error = await #expect(throws: CKError.self) {
      try await one.recordZoneChanges(inZoneWith: zone.zoneID, since: changes.changeToken)
    }
    #expect(error?.code == .zoneNotFound || error?.code == .userDeletedZone)
  }

  @Test("A query returns filtered and sorted records, page by page")
  func query() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    let records = ["a", "b", "c", "d"].map { note($0, $0 == "d" ? "other" : "same") }
    for record in records { record["rank"] = record.recordID.recordName }
    _ = try await one.modifyRecords(saving: records, deleting: [])
    let query = CKQuery(
      recordType: "Note",
      filters: [
        QueryFilter(
          comparator: .equals,
          fieldName: "title",
          fieldValue: FieldValue(.string("same"))
        )
      ],
      sorts: [QuerySort(fieldName: "rank", ascending: false)]
    )
    let first = try await one.records(
      matching: query,
      inZoneWith: zone.zoneID,
      resultsLimit: 2
    )
    #expect(first.matchResults.map(\.0.recordName) == ["c", "b"])
    let cursor = try #require(first.queryCursor)
    // An app may keep the cursor for its next launch.
    let kept = try #require(
      try NSKeyedUnarchiver.unarchivedObject(
        ofClass: CKQueryOperation.Cursor.self,
        from: NSKeyedArchiver.archivedData(withRootObject: cursor, requiringSecureCoding: true)
      )
    )
    #expect(kept == cursor)
    let second = try await one.records(continuingMatchFrom: kept)
    #expect(second.matchResults.map(\.0.recordName) == ["a"])
    #expect(second.queryCursor == nil)
  }

  @Test("An asset's bytes are fetched by another device")
  func assets() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    let two = try await service.device("two").privateCloudDatabase
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("asset-\(UUID().uuidString)")
    let bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
    try bytes.write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    try await one.save(zone)
    let record = note("n", "with file")
    record["file"] = CKAsset(fileURL: file)
    record["files"] = [CKAsset(fileURL: file), CKAsset(fileURL: file)]
    try await one.save(record)
    record["title"] = "changed, file as before"
    try await one.save(record)
    let copy = try await two.record(for: recordID("n"))
    let url = try #require((copy["file"] as? CKAsset)?.fileURL)
    #expect(try Data(contentsOf: url) == bytes)
    let urls = try #require(copy["files"] as? [CKAsset]).compactMap(\.fileURL)
    #expect(urls.count == 2)
    #expect(copy["title"] as? String == "changed, file as before")
    // A fetched asset can be saved in another record.
    let other = note("m", "copy")
    other["file"] = copy["file"] as? CKAsset
    try await two.save(other)
    let again = try await one.record(for: recordID("m"))
    let againURL = try #require((again["file"] as? CKAsset)?.fileURL)
    #expect(try Data(contentsOf: againURL) == bytes)
    TemporaryAssets.discard(filesOf: [copy, again])
  }

  @Test("A save notifies the user's other device, and not its own")
  func push() async throws {
    let service = try await RealService()
    let one = try await service.device("one")
    let two = try await service.device("two")
    try await one.privateCloudDatabase.save(zone)
    let subscription = CKDatabaseSubscription(subscriptionID: "all")
    let info = CKSubscription.NotificationInfo()
    info.shouldSendContentAvailable = true
    subscription.notificationInfo = info
    try await two.privateCloudDatabase.save(subscription)
    #expect(try await two.privateCloudDatabase.allSubscriptions().map(\.subscriptionID) == ["all"])
    let channel = try two.pushChannel()
    #expect(try await channel.next() == .connected)
    try await one.privateCloudDatabase.save(note("n", "hello"))
    guard case .changed(let scope, _, let name) = try await channel.next() else {
      Issue.record("the channel told of something else")
      return
    }
    #expect(scope == .private)
    #expect(name == "all")
    await service.service.shutdown()
  }

  @Test("A subscription keeps its record type, and a sync engine uses one for all types")
  func subscriptionOfOneType() async throws {
    let service = try await RealService()
    let container = try await service.device("one")
    let database = container.privateCloudDatabase
    try await database.save(zone)
    let typed = CKDatabaseSubscription(subscriptionID: "typed")
    typed.recordType = "Note"
    try await database.save(typed)
    let ofZone = CKRecordZoneSubscription(zoneID: zone.zoneID, subscriptionID: "zone")
    ofZone.recordType = "Note"
    try await database.save(ofZone)
    let found = try await database.subscriptions(for: ["typed", "zone"]).mapValues { try $0.get() }
    #expect((found["typed"] as? CKDatabaseSubscription)?.recordType == "Note")
    #expect((found["zone"] as? CKRecordZoneSubscription)?.recordType == "Note")
    let notes = SyncedNotes()
    let engine = CKSyncEngine(
      CKSyncEngine.Configuration(database: database, stateSerialization: nil, delegate: notes)
    )
    await notes.wait { $0.log.contains("did fetch") }
    await engine.cancelOperations()
    let names = try await database.allSubscriptions().map(\.subscriptionID)
    #expect(Set(names) == ["typed", "zone", "CKSyncEngine"])
  }

  @Test("A repeated batch with the same sequence gets the stored first reply")
  func replay() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    func batch(_ acknowledged: Int64) -> RecordModification {
      RecordModification(
        zoneID: zone.zoneID,
        saves: [
          RecordModification.Save(
            recordType: "Note",
            recordID: recordID("n"),
            condition: .isNew,
            fields: ["title": CKRecord.Field(.string("x"))]
          )
        ],
        atomic: true,
        sequence: ClientSequence(device: "one", sequence: 7, acknowledged: acknowledged)
      )
    }
    let first = try await one.modify(batch(6)).saves[0].get()
    let second = try await one.modify(batch(6)).saves[0].get()
    #expect(first.recordChangeTag != nil)
    #expect(first.recordChangeTag == second.recordChangeTag)
    let system = try await one.record(for: recordID("n")).systemFields
    #expect(system.recordChangeTag == first.recordChangeTag)
    let deletion = RecordModification(
      zoneID: zone.zoneID,
      deletes: [RecordModification.Delete(recordID: recordID("n"), changeTag: "wrong")],
      atomic: true
    )
    let refused = try await one.modify(deletion).deletes[0]
    #expect(refused.failure?.code == .serverRecordChanged)
    #expect(refused.failure?.serverRecord?.recordID == recordID("n"))
  }

  @Test("Change tokens of an earlier incarnation have expired")
  func expiredToken() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    try await one.save(note("n", "x"))
    let changes = try await one.recordZoneChanges(inZoneWith: zone.zoneID, since: nil)
    try await service.service.beginNewIncarnation()
    let error = await #expect(throws: CKError.self) {
      try await one.recordZoneChanges(inZoneWith: zone.zoneID, since: changes.changeToken)
    }
    #expect(error?.code == .changeTokenExpired)
  }

  @Test(
    "A deleted zone is reported with the service's reason",
    arguments: [
      ("", CKDatabase.DatabaseChange.Deletion.Reason.deleted),
      (#","extension":{"code":"ZONE_PURGED"}"#, .purged),
      (#","extension":{"code":"USER_DELETED_ZONE"}"#, .purged),
      (#","extension":{"code":"ENCRYPTED_DATA_RESET"}"#, .encryptedDataReset),
    ]
  )
  func reasons(given: String, reason: CKDatabase.DatabaseChange.Deletion.Reason) async throws {
    let service = try await RealService()
    service.intercept { request in
      guard request.path.contains("changes/database") else { return nil }
      let zone = #"{"zoneID":{"zoneName":"z"},"deleted":true\#(given)}"#
      return WebServiceResponse(
        status: 200,
        body: Data(#"{"zones":[\#(zone)],"syncToken":"t","moreComing":false}"#.utf8)
      )
    }
    let database = try await service.device("one").privateCloudDatabase
    let changes = try await database.databaseChanges(since: nil)
    #expect(changes.deletions.map(\.reason) == [reason])
  }

  @Test("Two devices of an account have one user record; other accounts and visitors do not")
  func users() async throws {
    let service = try await RealService()
    let one = try await service.device("one")
    let two = try await service.device("two")
    let other = try await service.device("three", of: "bob")
    let visitor = try await service.device("four", of: nil)
    let user = try await one.userRecordID()
    #expect(try await two.userRecordID() == user)
    #expect(try await other.userRecordID() != user)
    #expect(try await one.accountStatus() == .available)
    #expect(try await visitor.accountStatus() == .noAccount)
    let error = await #expect(throws: CKError.self) {
      try await visitor.privateCloudDatabase.allRecordZones()
    }
    #expect(error?.code == .notAuthenticated)
    #expect(error?.signInURL != nil)
    try await one.privateCloudDatabase.save(zone)
    #expect(
      try await !other.privateCloudDatabase.allRecordZones().contains { $0.zoneID == zone.zoneID }
    )
  }

  @Test("A record over the size limit fails with limitExceeded")
  func tooLarge() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    let error = await #expect(throws: CKError.self) {
      try await one.save(note("n", String(repeating: "x", count: 1_100_000)))
    }
    #expect(error?.code == .limitExceeded)
  }

  @Test("An anonymous client can read the public database")
  func publicDatabase() async throws {
    let service = try await RealService()
    let writer = try await service.device("one").publicCloudDatabase
    let record = CKRecord(
      recordType: "Announcement",
      recordID: CKRecord.ID(recordName: "hello")
    )
    record["text"] = "Hi"
    try await writer.save(record)
    let reader = try await service.device("two", of: nil).publicCloudDatabase
    let copy = try await reader.record(for: CKRecord.ID(recordName: "hello"))
    #expect(copy["text"] as? String == "Hi")
    #expect(copy.recordID == record.recordID)
  }

  @Test("The changedKeys policy overwrites a newer version and keeps its other fields")
  func overwriting() async throws {
    let service = try await RealService()
    let one = try await service.device("one").privateCloudDatabase
    try await one.save(zone)
    let record = note("n", "first")
    record["other"] = "kept"
    try await one.save(record)
    let stale = note("n", "forced")
    let results = try await one.modifyRecords(
      saving: [stale],
      deleting: [],
      savePolicy: .changedKeys
    )
    _ = try results.saveResults[recordID("n")]?.get()
    let copy = try await one.record(for: recordID("n"))
    #expect(copy["title"] as? String == "forced")
    #expect(copy["other"] as? String == "kept")
  }
}
