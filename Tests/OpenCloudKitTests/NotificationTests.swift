import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("Notifications")
struct NotificationTests {
  private func dictionary(_ json: String) throws -> [AnyHashable: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
  }

  @Test("A query notification has the record, the reason and the requested fields")
  func query() throws {
    let notification = try #require(
      CKNotification(
        fromRemoteNotificationDictionary: dictionary(
          """
          {"aps":{"alert":{"body":"x","loc-key":"K","loc-args":["v"],"action-loc-key":"A",
             "launch-image":"i","title":"t","subtitle":"s"},
            "badge":1,"sound":"default","category":"c","content-available":1},
           "ck":{"nid":"uuid","cid":"iCloud.x","ce":2,"ckuserid":"_me","aux":{},
             "qry":{"sid":"s1","rid":"r1","zid":"z","zoid":"_owner","dbs":1,"fo":3,
               "af":{"title":"v","gone":null,"count":4}}}}
          """
        )
      ) as? CKQueryNotification
    )
    #expect(notification.notificationType == .query)
    #expect(notification.notificationID != nil)
    #expect(notification.containerIdentifier == "iCloud.x")
    #expect(notification.subscriptionID == "s1")
    #expect(notification.subscriptionOwnerUserRecordID?.recordName == "_me")
    #expect(!notification.isPruned)
    #expect(notification.queryNotificationReason == .recordDeleted)
    #expect(notification.databaseScope == .private)
    #expect(
      notification.recordID
        == CKRecord.ID(recordName: "r1", zoneID: CKRecordZone.ID(zoneName: "z"))
    )
    #expect(notification.recordFields?["title"] as? String == "v")
    #expect((notification.recordFields?["count"] as? NSNumber)?.intValue == 4)
    #expect(notification.recordFields?.count == 2)
  }

  @Test("A zone notification has the zone, with its owner in the shared database")
  func zone() throws {
    let notification = try #require(
      CKNotification(
        fromRemoteNotificationDictionary: dictionary(
          "{\"ck\":{\"cid\":\"c\",\"fet\":{\"sid\":\"s\",\"zid\":\"z\",\"zoid\":\"_o\",\"dbs\":2}}}"
        )
      ) as? CKRecordZoneNotification
    )
    #expect(notification.notificationType == .recordZone)
    #expect(notification.recordZoneID == CKRecordZone.ID(zoneName: "z", ownerName: "_o"))
    #expect(notification.databaseScope == .shared)
    #expect(notification.notificationID == nil)
  }

  @Test("A database notification has the database scope")
  func database() throws {
    let notification = try #require(
      CKNotification(
        fromRemoteNotificationDictionary: dictionary("{\"ck\":{\"met\":{\"sid\":\"s\",\"dbs\":2}}}")
      ) as? CKDatabaseNotification
    )
    #expect(notification.notificationType == .database)
    #expect(notification.databaseScope == .shared)
    #expect(notification.subscriptionID == "s")
  }

  @Test(
    "A payload of another sender, or a malformed one, is not a notification",
    arguments: [
      "{}", "{\"aps\":{\"alert\":\"hello\"}}", "{\"ck\":1}", "{\"ck\":{}}", "{\"ck\":{\"qry\":4}}",
      "{\"ck\":{\"new\":{\"sid\":\"s\"}}}",
    ]
  )
  func foreign(json: String) throws {
    #expect(CKNotification(fromRemoteNotificationDictionary: try dictionary(json)) == nil)
  }

  @Test("Payload values of a wrong type count as absent")
  func oddWords() throws {
    let notification = try #require(
      CKQueryNotification(
        fromRemoteNotificationDictionary: dictionary(
          """
          {"aps":{"alert":[1],"badge":"x"},
           "ck":{"nid":3,"qry":{"sid":7,"rid":"","zid":"","dbs":"one","fo":99,"af":[1]}}}
          """
        )
      )
    )
    #expect(notification.subscriptionID == nil)
    #expect(notification.recordID == nil)
    #expect(notification.recordFields == nil)
    #expect(notification.queryNotificationReason == .recordUpdated)
  }

  @Test("A notification is not created as another kind than the payload's")
  func otherKind() throws {
    let met = try dictionary("{\"ck\":{\"met\":{\"sid\":\"s\"}}}")
    #expect(CKQueryNotification(fromRemoteNotificationDictionary: met) == nil)
    #expect(CKDatabaseNotification(fromRemoteNotificationDictionary: met) != nil)
  }

  @Test("A notification identifier round-trips through an archive")
  func archive() throws {
    let notification = try #require(
      CKNotification(
        fromRemoteNotificationDictionary: dictionary("{\"ck\":{\"nid\":\"n\",\"met\":{}}}")
      )
    )
    let identifier = try #require(notification.notificationID)
    let data = try NSKeyedArchiver.archivedData(
      withRootObject: identifier,
      requiringSecureCoding: true
    )
    let copy = try NSKeyedUnarchiver.unarchivedObject(ofClass: CKNotification.ID.self, from: data)
    #expect(copy == identifier)
  }

  @Test("The stream delivers each notification, and a database notification after a gap")
  func stream() async throws {
    let service = ScriptedService()
    let token = "{\"apnsEnvironment\":\"d\",\"apnsToken\":\"a\",\"webcourierURL\":\"/c\"}"
    service.answer(token)
    service.answer("{\"ck\":{\"nid\":\"1\",\"fet\":{\"sid\":\"s\",\"zid\":\"z\",\"dbs\":1}}}")
    service.answer { _ in throw TransportError(wasSent: true, reason: "reset") }
    service.answer(token)
    service.answer("{\"ck\":{\"nid\":\"2\",\"met\":{\"sid\":\"s\",\"dbs\":1}}}")
    var iterator = service.container().notifications.makeAsyncIterator()
    let first = try await iterator.next()
    #expect((first as? CKRecordZoneNotification)?.recordZoneID?.zoneName == "z")
    let missed = [try await iterator.next(), try await iterator.next()]
    #expect(
      missed.map { ($0 as? CKDatabaseNotification)?.databaseScope } == [.private, .shared]
    )
    #expect(missed.allSatisfy { $0?.subscriptionID == nil })
    let last = try await iterator.next() as? CKDatabaseNotification
    #expect(last?.subscriptionID == "s")
  }
}
