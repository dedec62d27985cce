import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("Encoding of requests and decoding of replies")
struct WireShapeTests {
  private let service = ScriptedService()
  private let zoneID = CKRecordZone.ID(zoneName: "zone")

  @Test("A request has path, tokens, device and capabilities")
  func requestForm() async throws {
    service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\"}]}")
    let database = service.container().privateCloudDatabase
    _ = try await database.record(for: CKRecord.ID(recordName: "n", zoneID: zoneID))
    let request = try #require(service.requests.first)
    #expect(request.method == "POST")
    #expect(
      request.path
        == "/database/1/iCloud.test/development/private/records/lookup"
        + "?ckAPIToken=api&ckWebAuthToken=web%2Ftoken%2B1%3D&clientId=device-1"
    )
    #expect(request.headers["x-watershed-capabilities"] == "1")
    #expect(
      try service.body(0) == [
        "records": [["recordName": "n"]], "zoneID": ["zoneName": "zone"],
      ] as NSDictionary
    )
  }

  @Test("A new record is sent with all its values and type tags")
  func create() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"Note","recordChangeTag":"1",
       "created":{"timestamp":1700000000000,"userRecordName":"_u","deviceID":"1"},
       "modified":{"timestamp":1700000000500,"userRecordName":"_u","deviceID":"1"}}]}
      """
    )
    let database = service.container().privateCloudDatabase
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n", zoneID: zoneID)
    )
    record["text"] = "x"
    record["count"] = 2
    record["ratio"] = 1.5
    record["when"] = Date(timeIntervalSince1970: 1.235)
    record["bytes"] = Data([1])
    record["words"] = ["a"]
    record["numbers"] = NSArray(array: [NSNumber(value: 1), NSNumber(value: 1.5)])
    record["none"] = NSArray()
    record["ref"] = CKRecord.Reference(record: record, action: .deleteSelf)
    record["removed"] = "y"
    record["removed"] = nil
    record.encryptedValues["secret"] = "s"
    let saved = try await database.save(record)

    #expect(saved === record)
    #expect(record.recordChangeTag == "1")
    #expect(record.creationDate == Date(timeIntervalSince1970: 1_700_000_000))
    #expect(record.modificationDate == Date(timeIntervalSince1970: 1_700_000_000.5))
    #expect(record.creatorUserRecordID?.recordName == "_u")
    #expect(record.changedKeys().isEmpty)
    #expect(record["text"] as? String == "x")

    let body = try service.body(0)
    #expect(body["atomic"] as? Bool == true)
    #expect(body["desiredKeys"] as? [String] == [])
    let operation = try #require((body["operations"] as? [NSDictionary])?.first)
    #expect(operation["operationType"] as? String == "create")
    let fields = try #require((operation["record"] as? NSDictionary)?["fields"] as? NSDictionary)
    #expect(
      fields == [
        "text": ["value": "x", "type": "STRING"],
        "count": ["value": 2, "type": "INT64"],
        "ratio": ["value": 1.5, "type": "DOUBLE"],
        "when": ["value": 1235, "type": "TIMESTAMP"],
        "bytes": ["value": "AQ==", "type": "BYTES"],
        "words": ["value": ["a"], "type": "STRING_LIST"],
        "numbers": ["value": [1, 1.5], "type": "DOUBLE_LIST"],
        "none": ["value": [String](), "type": "UNKNOWN_LIST"],
        "ref": [
          "value": [
            "recordName": "n", "zoneID": ["zoneName": "zone"], "action": "DELETE_SELF",
          ] as NSDictionary, "type": "REFERENCE",
        ],
        "secret": ["value": "s", "type": "STRING", "isEncrypted": true],
      ] as NSDictionary
    )
  }

  @Test("A fetched record is sent with its change tag and its changed keys only")
  func update() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"Note","recordChangeTag":"1","fields":
       {"a":{"value":"x","type":"STRING"},"b":{"value":1,"type":"INT64"}}}]}
      """
    )
    service.answer(
      "{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\",\"recordChangeTag\":\"2\"}]}"
    )
    let database = service.container().privateCloudDatabase
    let record = try await database.record(for: CKRecord.ID(recordName: "n", zoneID: zoneID))
    record["a"] = nil
    record["c"] = 3
    try await database.save(record)
    let operation = try #require((service.body(1)["operations"] as? [NSDictionary])?.first)
    #expect(operation["operationType"] as? String == "update")
    #expect(
      operation["record"] as? NSDictionary == [
        "recordName": "n", "recordType": "Note", "recordChangeTag": "1",
        "fields": [
          "a": ["value": NSNull()], "c": ["value": 3, "type": "INT64"],
        ] as NSDictionary,
      ] as NSDictionary
    )
    #expect(record.recordChangeTag == "2")
    #expect(record["b"] as? Int == 1)
  }

  @Test(
    "The policies that overwrite send changed keys or all keys",
    arguments: [
      (CKModifyRecordsOperation.RecordSavePolicy.changedKeys, ["b"]),
      (.allKeys, ["a", "b"]),
    ]
  )
  func policies(policy: CKModifyRecordsOperation.RecordSavePolicy, keys: [String]) async throws {
    service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\"}]}")
    let record = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "n", zoneID: zoneID),
      system: CKRecord.SystemFields(),
      fields: ["a": .init(.string("x"))]
    )
    record["b"] = 1
    let database = service.container().privateCloudDatabase
    _ = try await database.modifyRecords(saving: [record], deleting: [], savePolicy: policy)
    let operation = try #require((service.body(0)["operations"] as? [NSDictionary])?.first)
    #expect(operation["operationType"] as? String == "forceUpdate")
    let fields = (operation["record"] as? NSDictionary)?["fields"] as? [String: Any]
    #expect(fields?.keys.sorted() == keys)
  }

  @Test("Records of several zones are sent in one request for each zone")
  func zones() async throws {
    let other = CKRecordZone.ID(zoneName: "other", ownerName: "_friend")
    service.answer("{\"records\":[{\"recordName\":\"a\",\"deleted\":true}]}")
    service.answer("{\"records\":[{\"recordName\":\"b\",\"deleted\":true}]}")
    let database = service.container().sharedCloudDatabase
    let ids = [
      CKRecord.ID(recordName: "a", zoneID: zoneID), CKRecord.ID(recordName: "b", zoneID: other),
    ]
    let results = try await database.modifyRecords(saving: [], deleting: ids)
    #expect(results.deleteResults.count == 2)
    #expect(service.requests.count == 2)
    #expect(
      try service.body(1)["zoneID"] as? NSDictionary
        == ["zoneName": "other", "ownerRecordName": "_friend"]
    )
  }

  @Test("More than 200 operations are split if not atomic, and refused if atomic")
  func limits() async throws {
    @Sendable func reply(_ request: WebServiceRequest) throws -> WebServiceResponse {
      let sent = try WireCoding.decode(ModifyRecordsRequest.self, from: request.body)
      let records = sent.operations.map {
        ItemResult.success(RecordDictionary(recordName: $0.record.recordName, deleted: true))
      }
      return WebServiceResponse(
        status: 200,
        body: try WireCoding.encode(RecordsResponse(records: records))
      )
    }
    service.answer(reply)
    service.answer(reply)
    let database = service.container().privateCloudDatabase
    let ids = (0..<201).map { CKRecord.ID(recordName: "r\($0)", zoneID: zoneID) }
    let results = try await database.modifyRecords(saving: [], deleting: ids, atomically: false)
    #expect(results.deleteResults.count == 201)
    #expect(service.requests.count == 2)
    await #expect {
      try await database.modifyRecords(saving: [], deleting: ids)
    } throws: { error in
      (error as? CKError)?.code == .limitExceeded
    }
  }

  @Test("A query sends filters and sort keys, and continues with its marker")
  func query() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"Note","zoneID":{"zoneName":"zone",
       "ownerRecordName":"_me"}}],"continuationMarker":"m"}
      """
    )
    service.answer("{\"records\":[]}")
    let database = service.container().privateCloudDatabase
    let query = CKQuery(
      recordType: "Note",
      filters: [
        QueryFilter(
          comparator: .equals,
          fieldName: "title",
          fieldValue: FieldValue(.string("x"))
        )
      ],
      sorts: [QuerySort(fieldName: "title", ascending: false)]
    )
    let page = try await database.records(matching: query, resultsLimit: 10)
    #expect(page.matchResults.first?.0 == CKRecord.ID(recordName: "n", zoneID: zoneID))
    let cursor = try #require(page.queryCursor)
    let end = try await database.records(continuingMatchFrom: cursor)
    #expect(end.matchResults.isEmpty)
    #expect(end.queryCursor == nil)
    #expect(
      try service.body(1) == [
        "query": [
          "recordType": "Note",
          "filterBy": [
            [
              "comparator": "EQUALS", "fieldName": "title",
              "fieldValue": ["value": "x", "type": "STRING"],
            ] as NSDictionary
          ], "sortBy": [["fieldName": "title", "ascending": false] as NSDictionary],
        ] as NSDictionary, "zoneWide": true, "resultsLimit": 10, "continuationMarker": "m",
      ] as NSDictionary
    )
  }

  @Test("A true predicate needs no filter; other predicates need a registered writer")
  func predicates() async throws {
    service.answer("{\"records\":[]}")
    let database = service.container().publicCloudDatabase
    _ = try await database.records(
      matching: CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
    )
    #expect(try service.body(0) == ["query": ["recordType": "Note"]] as NSDictionary)
    await #expect {
      try await database.records(
        matching: CKQuery(recordType: "Note", predicate: NSPredicate(value: false))
      )
    } throws: { error in
      (error as? CKError)?.code == .invalidArguments
    }
  }

  @Test("A zone's changes are decoded: records, tombstones, token and moreComing")
  func zoneChanges() async throws {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone","ownerRecordName":"_me"},"syncToken":"t2",
       "moreComing":true,"records":[
        {"recordName":"a","recordType":"Note","recordChangeTag":"1","fields":{
          "where":{"value":{"latitude":1,"longitude":2},"type":"LOCATION"},
          "refs":{"value":[{"recordName":"b","action":"NONE"}],"type":"REFERENCE_LIST"}}},
        {"recordName":"gone","deleted":true,"recordType":"Note"},
        {"recordName":"older","deleted":true}]}]}
      """
    )
    let database = service.container().privateCloudDatabase
    let changes = try await database.recordZoneChanges(
      inZoneWith: zoneID,
      since: CKServerChangeToken(syncToken: "t1"),
      desiredKeys: ["where", "refs"],
      resultsLimit: 3
    )
    let record = try #require(
      changes.modificationResultsByID[CKRecord.ID(recordName: "a", zoneID: zoneID)]?.get().record
    )
    #expect((record["where"] as? CLLocation)?.coordinate.longitude == 2)
    let references = try #require(record["refs"] as? [CKRecord.Reference])
    #expect(references.first?.recordID == CKRecord.ID(recordName: "b", zoneID: zoneID))
    #expect(changes.deletions.map(\.recordID.recordName) == ["gone", "older"])
    #expect(changes.deletions.map(\.recordType) == ["Note", ""])
    #expect(changes.changeToken.syncToken == "t2")
    #expect(changes.moreComing)
    #expect(
      try service.body(0) == [
        "zones": [
          [
            "zoneID": ["zoneName": "zone"], "syncToken": "t1", "desiredKeys": ["where", "refs"],
            "resultsLimit": 3,
          ] as NSDictionary
        ]
      ] as NSDictionary
    )
  }

  @Test("A database's changes are decoded: changed and deleted zones")
  func databaseChanges() async throws {
    service.answer(
      """
      {"zones":[{"zoneID":{"zoneName":"zone","ownerRecordName":"_me"}},
       {"zoneID":{"zoneName":"old"},"deleted":true}],"syncToken":"d1","moreComing":null}
      """
    )
    let database = service.container().privateCloudDatabase
    let changes = try await database.databaseChanges(since: nil)
    #expect(changes.modifications.map(\.zoneID) == [zoneID])
    #expect(changes.deletions.map(\.zoneID.zoneName) == ["old"])
    #expect(changes.deletions.first?.reason == .deleted)
    #expect(changes.changeToken.syncToken == "d1")
    #expect(!changes.moreComing)
  }

  @Test("Subscriptions are saved, listed and deleted in the wire's terms")
  func subscriptions() async throws {
    service.answer("{\"subscriptions\":[{\"subscriptionID\":\"d\"},{\"subscriptionID\":\"q\"}]}")
    service.answer(
      """
      {"subscriptions":[{"subscriptionID":"d","subscriptionType":"database",
        "notificationInfo":{"shouldSendContentAvailable":true}},
       {"subscriptionID":"z","subscriptionType":"zone","zoneID":{"zoneName":"zone"}},
       {"subscriptionID":"q","subscriptionType":"query","query":{"recordType":"Note"},
        "firesOn":["create","delete"]}]}
      """
    )
    service.answer("{\"subscriptions\":[{\"subscriptionID\":\"d\",\"deleted\":true}]}")
    let database = service.container().privateCloudDatabase
    let subscription = CKDatabaseSubscription(subscriptionID: "d")
    let info = CKSubscription.NotificationInfo()
    info.shouldSendContentAvailable = true
    subscription.notificationInfo = info
    let query = CKQuerySubscription(
      recordType: "Note",
      predicate: NSPredicate(value: true),
      subscriptionID: "q",
      options: [.firesOnRecordCreation, .firesOnRecordDeletion]
    )
    _ = try await database.modifySubscriptions(saving: [subscription, query], deleting: [])
    let operations = try #require(try service.body(0)["operations"] as? [NSDictionary])
    let sent = operations.compactMap { $0["subscription"] as? NSDictionary }
    #expect(sent.map { $0["subscriptionType"] as? String } == ["database", "query"])
    #expect(sent.last?["firesOn"] as? [String] == ["create", "delete"])

    let listed = try await database.allSubscriptions()
    #expect(listed.map(\.subscriptionType) == [.database, .recordZone, .query])
    #expect(listed.first?.notificationInfo?.shouldSendContentAvailable == true)
    #expect((listed[1] as? CKRecordZoneSubscription)?.zoneID == zoneID)
    #expect(
      (listed[2] as? CKQuerySubscription)?.querySubscriptionOptions
        == [.firesOnRecordCreation, .firesOnRecordDeletion]
    )
    #expect(try await database.deleteSubscription(withID: "d") == "d")
  }

  @Test("Zones are created, listed, looked up and deleted")
  func zoneCalls() async throws {
    let zoneJSON = """
      {"zones":[{"zoneID":{"zoneName":"zone","ownerRecordName":"_me"},"atomic":true}]}
      """
    service.answer(zoneJSON)
    service.answer(zoneJSON)
    service.answer(
      "{\"zones\":[{\"zoneID\":{\"zoneName\":\"x\"},\"serverErrorCode\":\"ZONE_NOT_FOUND\"}]}"
    )
    service.answer("{\"zones\":[{\"zoneID\":{\"zoneName\":\"zone\"},\"deleted\":true}]}")
    let database = service.container().privateCloudDatabase
    let zone = try await database.save(CKRecordZone(zoneName: "zone"))
    #expect(zone.zoneID == zoneID)
    #expect(zone.capabilities.contains([.atomic, .fetchChanges]))
    #expect(try await database.allRecordZones().map(\.zoneID) == [zoneID])
    await #expect {
      try await database.recordZone(for: CKRecordZone.ID(zoneName: "x"))
    } throws: { error in
      (error as? CKError)?.code == .zoneNotFound
    }
    #expect(try await database.deleteRecordZone(withID: zoneID) == zoneID)
    #expect(service.requests.map(\.method) == ["POST", "GET", "POST", "POST"])
  }

  @Test("A completion handler receives the asynchronous method's result")
  func completionHandlers() async throws {
    service.answer("{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\"}]}")
    let database = service.container().privateCloudDatabase
    let name = await withCheckedContinuation { continuation in
      database.fetch(withRecordID: CKRecord.ID(recordName: "n")) { record, _ in
        continuation.resume(returning: record?.recordID.recordName)
      }
    }
    #expect(name == "n")
    let code = await withCheckedContinuation { continuation in
      database.fetchAllRecordZones { _, error in
        continuation.resume(returning: (error as? CKError)?.code)
      }
    }
    #expect(code == .networkUnavailable)
  }
}
