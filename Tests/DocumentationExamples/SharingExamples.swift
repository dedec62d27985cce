import CloudKit
import CloudKitTesting
import Foundation
import Testing

@Suite("Examples: sharing and subscriptions")
struct SharingExamples {
  @Test("A folder that one user shares is in the shared database of another")
  func share() async throws {
    let cloud = try await TestCloud()
    let container = try await cloud.container(for: "ada", device: "phone")
    let others = try await cloud.container(for: "grace", device: "laptop")
    let database = container.privateCloudDatabase
    let zone = try await database.save(CKRecordZone(zoneName: "Folders"))
    // example: CKShare
    let folderID = CKRecord.ID(recordName: "holidays", zoneID: zone.zoneID)
    let folder = CKRecord(recordType: "Folder", recordID: folderID)
    folder["name"] = "Holidays"

    let share = CKShare(rootRecord: folder)
    share[CKShare.SystemFieldKey.title] = "Holidays"
    share.publicPermission = .readWrite  // every user who has the link
    let (saved, _) = try await database.modifyRecords(saving: [folder, share], deleting: [])
    let link = (try saved[share.recordID]?.get() as? CKShare)?.url
    // end
    let url = try #require(link)
    // example: CKShare.Metadata
    let metadata = try await others.shareMetadata(for: url)
    _ = try await others.accept(metadata)

    let shared = others.sharedCloudDatabase
    for zone in try await shared.allRecordZones() {
      let folderID = CKRecord.ID(recordName: "holidays", zoneID: zone.zoneID)
      let folder = try await shared.record(for: folderID)
      print(folder["name"] as? String ?? "")
    }
    // end
    #expect(try await shared.allRecordZones().count == 1)
    await cloud.shutdown()
  }

  @Test("An operation accepts invitations to shares")
  func acceptShares() async throws {
    let cloud = try await TestCloud()
    let container = try await cloud.container(for: "ada", device: "phone")
    let others = try await cloud.container(for: "grace", device: "laptop")
    let database = container.privateCloudDatabase
    let zone = try await database.save(CKRecordZone(zoneName: "Folders"))
    let share = CKShare(recordZoneID: zone.zoneID)
    share.publicPermission = .readOnly
    let saved = try await database.save(share) as? CKShare
    let metadata = try await others.shareMetadata(for: #require(saved?.url))
    let accepted: Int = try await withCheckedThrowingContinuation { continuation in
      var shares: [CKShare] = []
      // example: CKAcceptSharesOperation
      let operation = CKAcceptSharesOperation(shareMetadatas: [metadata])
      operation.perShareResultBlock = { _, result in
        if case .success(let share) = result { shares.append(share) }
      }
      operation.acceptSharesResultBlock = { result in
        continuation.resume(with: result.map { shares.count })
      }
      others.add(operation)
      // end
    }
    #expect(accepted == 1)
    await cloud.shutdown()
  }

  @Test("A participant is invited by their user record")
  func participant() async throws {
    let cloud = try await TestCloud()
    let container = try await cloud.container(for: "ada", device: "phone")
    let others = try await cloud.container(for: "grace", device: "laptop")
    let zone = try await container.privateCloudDatabase.save(CKRecordZone(zoneName: "Folders"))
    let share = CKShare(recordZoneID: zone.zoneID)
    let userRecordID = try await others.userRecordID()
    // example: CKShare.Participant
    let participant = try await container.shareParticipant(forUserRecordID: userRecordID)
    participant.permission = .readWrite
    share.addParticipant(participant)
    try await container.privateCloudDatabase.save(share)
    // end
    #expect(share.participants.count == 2)
    await cloud.shutdown()
  }

  @Test("Subscriptions are saved in a database")
  func subscriptions() async throws {
    let cloud = try await TestCloud()
    let database = try await cloud.container(device: "phone").privateCloudDatabase
    let zone = try await database.save(CKRecordZone(zoneName: "Notes"))
    // example: CKSubscription
    let changes = CKDatabaseSubscription(subscriptionID: "all-changes")
    changes.notificationInfo = CKSubscription.NotificationInfo(shouldSendContentAvailable: true)
    try await database.save(changes)

    let urgent = CKQuerySubscription(
      recordType: "Note",
      predicate: NSPredicate(format: "priority > %d", 2),
      subscriptionID: "urgent-notes",
      options: [.firesOnRecordCreation, .firesOnRecordUpdate]
    )
    urgent.zoneID = zone.zoneID
    urgent.notificationInfo = CKSubscription.NotificationInfo(alertBody: "An urgent note")
    try await database.save(urgent)
    // end
    #expect(try await database.allSubscriptions().count == 2)
    await cloud.shutdown()
  }

  @Test("A query subscription fires for records that match")
  func querySubscription() async throws {
    let cloud = try await TestCloud()
    let database = try await cloud.container(device: "phone").privateCloudDatabase
    // example: CKQuerySubscription
    let urgent = CKQuerySubscription(
      recordType: "Note",
      predicate: NSPredicate(format: "priority > %d", 2),
      subscriptionID: "urgent-notes",
      options: [.firesOnRecordCreation, .firesOnRecordUpdate]
    )
    urgent.notificationInfo = CKSubscription.NotificationInfo(alertBody: "An urgent note")
    try await database.save(urgent)
    // end
    #expect(try await database.allSubscriptions().map(\.subscriptionID) == ["urgent-notes"])
    await cloud.shutdown()
  }

  @Test("A notification is read from the dictionary of a remote notification")
  func notification() throws {
    let json = #"{"ck":{"cid":"c","fet":{"sid":"s","zid":"Notes","zoid":"_o","dbs":1}}}"#
    let userInfo = try #require(
      try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    )
    var zoneName: String?
    // example: CKNotification
    switch CKNotification(fromRemoteNotificationDictionary: userInfo) {
    case let query as CKQueryNotification:
      print(query.recordID?.recordName ?? "", query.queryNotificationReason)
    case let zone as CKRecordZoneNotification:
      zoneName = zone.recordZoneID?.zoneName  // fetch the changes of this zone
    case let database as CKDatabaseNotification:
      print(database.databaseScope)
    default: break  // not one of CloudKit's
    }
    // end
    #expect(zoneName == "Notes")
  }

  private func fetchChanges(_ database: CKDatabase) async throws {}

  // Compiled and not run: it waits for notifications until its task is cancelled.
  private func notifications(_ container: CKContainer) async throws {
    // example: CKNotificationStream
    for try await notification in container.notifications {
      guard let change = notification as? CKDatabaseNotification else { continue }
      switch change.databaseScope {
      case .private: try await fetchChanges(container.privateCloudDatabase)
      case .shared: try await fetchChanges(container.sharedCloudDatabase)
      default: break
      }
    }
    // end
  }
}
