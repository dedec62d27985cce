import CloudKitServer
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Two users and a share, from the invitation to the end.
@Suite("Sharing, from both sides")
struct SharedStoryTests {
  private let zone = CKRecordZone(zoneName: "lists")

  private func id(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: zone.zoneID)
  }

  private func record(_ name: String, parent: CKRecord? = nil) -> CKRecord {
    let record = CKRecord(recordType: "Item", recordID: id(name))
    record["title"] = name
    record.setParent(parent)
    return record
  }

  /// Saves a list with an item, shared with a user.
  private func share(
    _ ada: CKContainer,
    with person: String?,
    permission: CKShare.ParticipantPermission = .readWrite,
    public publicPermission: CKShare.ParticipantPermission = .none
  ) async throws -> (share: CKShare, root: CKRecord, item: CKRecord) {
    let database = ada.privateCloudDatabase
    try await database.save(zone)
    let root = record("list")
    let item = record("item", parent: root)
    let share = CKShare(rootRecord: root)
    share[CKShare.SystemFieldKey.title] = "Groceries"
    share.publicPermission = publicPermission
    if let person {
      let guest = try await ada.shareParticipant(forEmailAddress: "\(person)@example.org")
      guest.permission = permission
      share.addParticipant(guest)
    }
    let results = try await database.modifyRecords(saving: [root, share, item], deleting: [])
    for result in results.saveResults.values { _ = try result.get() }
    return (share, root, item)
  }

  /// Opens a link and accepts its share, with operations.
  @discardableResult
  private func accept(_ share: CKShare, _ person: CKContainer) async throws -> CKShare {
    let url = try #require(share.url)
    let fetch = CKFetchShareMetadataOperation(shareURLs: [url])
    fetch.shouldFetchRootRecord = true
    let found = Mutex<CKShare.Metadata?>(nil)
    fetch.perShareMetadataResultBlock = { _, result in
      found.withLock { $0 = try? result.get() }
    }
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      fetch.fetchShareMetadataResultBlock = { continuation.resume(with: $0) }
      person.add(fetch)
    }
    let metadata = try #require(found.withLock { $0 })
    let accept = CKAcceptSharesOperation(shareMetadatas: [metadata])
    let accepted = Mutex<CKShare?>(nil)
    accept.perShareResultBlock = { _, result in accepted.withLock { $0 = try? result.get() } }
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      accept.acceptSharesResultBlock = { continuation.resume(with: $0) }
      person.add(accept)
    }
    return try #require(accepted.withLock { $0 })
  }

  /// The only zone that is shared with a user.
  private func sharedZone(_ person: CKContainer) async throws -> CKRecordZone.ID {
    let changes = try await person.sharedCloudDatabase.databaseChanges(since: nil)
    #expect(changes.modifications.count == 1)
    return try #require(changes.modifications.first).zoneID
  }

  private func titles(
    _ changes: [CKRecord.ID: Result<CKDatabase.RecordZoneChange.Modification, any Error>]
  ) throws -> Set<String> {
    Set(try changes.values.compactMap { try $0.get().record["title"] as? String })
  }

  @Test(
    "An invitation is visible before it is accepted, and the shared records after",
    arguments: TransportKind.allCases
  )
  func invitation(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let made = try await share(ada, with: "ben")
      let metadata = try await ben.shareMetadata(for: try #require(made.share.url))
      #expect(metadata.containerIdentifier == TestCloud.container)
      #expect(metadata.participantStatus == .pending)
      #expect(metadata.participantPermission == .readWrite)
      #expect(metadata.participantRole == .privateUser)
      #expect(metadata.hierarchicalRootRecordID?.recordName == "list")
      #expect(metadata.share[CKShare.SystemFieldKey.title] as? String == "Groceries")
      #expect(metadata.ownerIdentity.nameComponents?.givenName == "Ada")
      let before = try await ben.sharedCloudDatabase.databaseChanges(since: nil)
      #expect(before.modifications.isEmpty)

      let accepted = try await accept(made.share, ben)
      #expect(accepted.currentUserParticipant?.acceptanceStatus == .accepted)
      #expect(accepted.currentUserParticipant?.role == .privateUser)
      let zoneID = try await sharedZone(ben)
      #expect(zoneID.zoneName == "lists")
      #expect(try await ada.userRecordID().recordName == zoneID.ownerName)
      let changes = try await ben.sharedCloudDatabase.recordZoneChanges(
        inZoneWith: zoneID,
        since: nil
      )
      #expect(try titles(changes.modificationResultsByID) == ["list", "item"])
      let root = try await ben.sharedCloudDatabase.record(
        for: CKRecord.ID(recordName: "list", zoneID: zoneID)
      )
      #expect(root.share?.recordID.recordName == made.share.recordID.recordName)
      let known = try await ada.privateCloudDatabase.record(for: made.share.recordID)
      let guest = try #require((known as? CKShare)?.participants.first { $0.role != .owner })
      #expect(guest.acceptanceStatus == .accepted)
      #expect(try await ben.userRecordID() == guest.userIdentity.userRecordID)
    }
  }

  @Test("The owner sees a participant's edits and additions", arguments: TransportKind.allCases)
  func edits(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let made = try await share(ada, with: "ben")
      try await accept(made.share, ben)
      let zoneID = try await sharedZone(ben)
      let shared = ben.sharedCloudDatabase
      let first = try await shared.recordZoneChanges(inZoneWith: zoneID, since: nil)
      let item = try await shared.record(for: CKRecord.ID(recordName: "item", zoneID: zoneID))
      item["title"] = "Milk"
      let added = CKRecord(
        recordType: "Item",
        recordID: CKRecord.ID(recordName: "bread", zoneID: zoneID)
      )
      added["title"] = "Bread"
      added.setParent(CKRecord.ID(recordName: "list", zoneID: zoneID))
      let results = try await shared.modifyRecords(saving: [item, added], deleting: [])
      for result in results.saveResults.values { _ = try result.get() }

      let copy = try await ada.privateCloudDatabase.record(for: id("item"))
      #expect(copy["title"] as? String == "Milk")
      #expect(try await ben.userRecordID() == copy.lastModifiedUserRecordID)
      let bread = try await ada.privateCloudDatabase.record(for: id("bread"))
      #expect(bread.parent?.recordID == id("list"))
      // A save over a participant's save is a conflict for the owner, and the reverse.
      made.item["title"] = "Cheese"
      let error = await #expect(throws: CKError.self) {
        try await ada.privateCloudDatabase.save(made.item)
      }
      #expect(error?.code == .serverRecordChanged)
      #expect(error?.serverRecord?["title"] as? String == "Milk")

      copy["title"] = "Oat milk"
      try await ada.privateCloudDatabase.save(copy)
      let next = try await shared.recordZoneChanges(
        inZoneWith: zoneID,
        since: first.changeToken
      )
      #expect(try titles(next.modificationResultsByID) == ["Oat milk", "Bread"])
    }
  }

  @Test(
    "A participant with read permission, and a user who is no participant, cannot write",
    arguments: TransportKind.allCases
  )
  func readOnly(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let eve = try await place.device(of: "eve")
      let made = try await share(ada, with: "ben", permission: .readOnly)
      try await accept(made.share, ben)
      let zoneID = try await sharedZone(ben)
      let item = try await ben.sharedCloudDatabase.record(
        for: CKRecord.ID(recordName: "item", zoneID: zoneID)
      )
      item["title"] = "mine"
      let refused = await #expect(throws: CKError.self) {
        try await ben.sharedCloudDatabase.save(item)
      }
      #expect(refused?.code == .permissionFailure)
      let url = try #require(made.share.url)
      let strange = await #expect(throws: CKError.self) { try await eve.shareMetadata(for: url) }
      #expect(strange?.code == .unknownItem || strange?.code == .participantMayNeedVerification)
      let nothing = await #expect(throws: CKError.self) {
        try await eve.sharedCloudDatabase.record(for: item.recordID)
      }
      #expect(nothing?.code == .unknownItem || nothing?.code == .zoneNotFound)
    }
  }

  @Test(
    "A participant who leaves sees no more records, and the owner sees the removal",
    arguments: TransportKind.allCases
  )
  func leaving(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let made = try await share(ada, with: "ben")
      let accepted = try await accept(made.share, ben)
      let before = try await ben.sharedCloudDatabase.databaseChanges(since: nil)
      try await ben.sharedCloudDatabase.deleteRecord(withID: accepted.recordID)
      let after = try await ben.sharedCloudDatabase.databaseChanges(since: before.changeToken)
      #expect(after.deletions.map(\.zoneID) == before.modifications.map(\.zoneID))
      let left = try await ada.privateCloudDatabase.record(for: made.share.recordID) as? CKShare
      #expect(left?.participants.filter { $0.acceptanceStatus == .accepted }.count == 1)
      #expect(try await ada.privateCloudDatabase.record(for: id("item"))["title"] != nil)
    }
  }

  @Test(
    "An owner who stops sharing keeps the records, and participants lose them",
    arguments: TransportKind.allCases
  )
  func stopping(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let made = try await share(ada, with: "ben")
      try await accept(made.share, ben)
      let before = try await ben.sharedCloudDatabase.databaseChanges(since: nil)
      try await ada.privateCloudDatabase.deleteRecord(withID: made.share.recordID)
      let after = try await ben.sharedCloudDatabase.databaseChanges(since: before.changeToken)
      #expect(after.deletions.map(\.zoneID) == before.modifications.map(\.zoneID))
      let root = try await ada.privateCloudDatabase.record(for: id("list"))
      #expect(root.share == nil)
      let url = try #require(made.share.url)
      let error = await #expect(throws: CKError.self) { try await ben.shareMetadata(for: url) }
      #expect(error?.code == .unknownItem)
    }
  }

  @Test(
    "Everyone with the link may read, until the owner ends it",
    arguments: TransportKind.allCases
  )
  func publicLink(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let eve = try await place.device(of: "eve")
      let made = try await share(ada, with: nil, public: .readOnly)
      let metadata = try await eve.shareMetadata(for: try #require(made.share.url))
      #expect(metadata.participantPermission == .readOnly)
      let accepted = try await accept(made.share, eve)
      #expect(accepted.publicPermission == .readOnly)
      let zoneID = try await sharedZone(eve)
      let item = try await eve.sharedCloudDatabase.record(
        for: CKRecord.ID(recordName: "item", zoneID: zoneID)
      )
      item["title"] = "mine"
      let refused = await #expect(throws: CKError.self) {
        try await eve.sharedCloudDatabase.save(item)
      }
      #expect(refused?.code == .permissionFailure)
      let current = try await ada.privateCloudDatabase.record(for: made.share.recordID)
      let share = try #require(current as? CKShare)
      share.publicPermission = .none
      try await ada.privateCloudDatabase.save(share)
      let error = await #expect(throws: CKError.self) {
        try await eve.sharedCloudDatabase.record(for: item.recordID)
      }
      #expect(error?.code == .unknownItem || error?.code == .zoneNotFound)
    }
  }

  @Test("A shared zone is shared completely, with later records", arguments: TransportKind.allCases)
  func zoneWide(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      try await ada.privateCloudDatabase.save(zone)
      try await ada.privateCloudDatabase.save(record("first"))
      let share = CKShare(recordZoneID: zone.zoneID)
      let guest = try await ada.shareParticipant(forEmailAddress: "ben@example.org")
      guest.permission = .readWrite
      share.addParticipant(guest)
      let saved = try #require(try await ada.privateCloudDatabase.save(share) as? CKShare)
      #expect(saved.url != nil)
      let accepted = try await accept(saved, ben)
      #expect(accepted.recordID.recordName == CKRecordNameZoneWideShare)
      let zoneID = try await sharedZone(ben)
      let added = CKRecord(
        recordType: "Item",
        recordID: CKRecord.ID(recordName: "second", zoneID: zoneID)
      )
      added["title"] = "second"
      try await ben.sharedCloudDatabase.save(added)
      #expect(try await ada.privateCloudDatabase.record(for: id("second"))["title"] != nil)
      let changes = try await ben.sharedCloudDatabase.recordZoneChanges(
        inZoneWith: zoneID,
        since: nil
      )
      #expect(try titles(changes.modificationResultsByID) == ["first", "second"])
    }
  }

  @Test("A participant is notified of changes in shared records", arguments: TransportKind.allCases)
  func notifications(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let made = try await share(ada, with: "ben")
      try await accept(made.share, ben)
      let subscription = CKDatabaseSubscription(subscriptionID: "shared")
      let info = CKSubscription.NotificationInfo()
      info.shouldSendContentAvailable = true
      subscription.notificationInfo = info
      try await ben.sharedCloudDatabase.save(subscription)
      let channel = try ben.pushChannel()
      #expect(try await channel.next() == .connected)
      made.item["title"] = "new"
      try await ada.privateCloudDatabase.save(made.item)
      guard case .changed(let scope, _, let subscriptionID) = try await channel.next() else {
        Issue.record("the channel told of something else")
        return
      }
      #expect(scope == .shared)
      #expect(subscriptionID == "shared")
    }
  }

  // MARK: Users

  @Test(
    "Users are found by address and record, each with their name",
    arguments: TransportKind.allCases
  )
  func people(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let benID = try await ben.userRecordID()
      let infos = [
        CKUserIdentity.LookupInfo(emailAddress: "BEN@example.org"),
        CKUserIdentity.LookupInfo(userRecordID: benID),
        CKUserIdentity.LookupInfo(emailAddress: "nobody@example.org"),
        CKUserIdentity.LookupInfo(userRecordID: CKRecord.ID(recordName: "_nobody")),
      ]
      let operation = CKFetchShareParticipantsOperation(userIdentityLookupInfos: infos)
      let found = Mutex<[CKUserIdentity.LookupInfo: Result<CKShare.Participant, any Error>]>([:])
      operation.perShareParticipantResultBlock = { info, result in
        found.withLock { $0[info] = result }
      }
      let outcome: Result<Void, any Error> = await withCheckedContinuation { continuation in
        operation.fetchShareParticipantsResultBlock = { continuation.resume(returning: $0) }
        ada.add(operation)
      }
      #expect(throws: CKError.self) { try outcome.get() }
      let people = found.withLock { $0 }
      let byAddress = try #require(try people[infos[0]]?.get())
      #expect(byAddress.userIdentity.userRecordID == benID)
      #expect(byAddress.userIdentity.nameComponents?.givenName == "Ben")
      #expect(byAddress.userIdentity.hasiCloudAccount)
      #expect(try people[infos[1]]?.get().userIdentity.userRecordID == benID)
      #expect(try people[infos[2]]?.get().userIdentity.hasiCloudAccount == false)
      let unknown = #expect(throws: CKError.self) { try people[infos[3]]?.get() }
      #expect(unknown?.code == .unknownItem)
    }
  }

  @Test(
    "One's own user record can be changed, another user's cannot",
    arguments: TransportKind.allCases
  )
  func userRecord(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let adaID = try await ada.userRecordID()
      let own = try await ada.publicCloudDatabase.record(for: adaID)
      #expect(own.recordType == CKRecord.SystemType.userRecord)
      own["nickname"] = "Countess"
      try await ada.publicCloudDatabase.save(own)
      let again = try await ada.publicCloudDatabase.record(for: adaID)
      #expect(again["nickname"] as? String == "Countess")
      let operation = CKFetchRecordsOperation.fetchCurrentUserRecordOperation()
      let name = Mutex<String?>(nil)
      operation.perRecordResultBlock = { recordID, _ in
        name.withLock { $0 = recordID.recordName }
      }
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        operation.fetchRecordsResultBlock = { continuation.resume(with: $0) }
        ada.publicCloudDatabase.add(operation)
      }
      #expect(name.withLock { $0 } == adaID.recordName)
      own["nickname"] = "x"
      let copy = CKRecord(recordType: CKRecord.SystemType.userRecord, recordID: adaID)
      copy["nickname"] = "stolen"
      let results = try? await ben.publicCloudDatabase.modifyRecords(
        saving: [copy],
        deleting: [],
        savePolicy: .allKeys
      )
      let stolen = try? results?.saveResults[adaID]?.get()
      #expect(stolen == nil)
      let still = try await ada.publicCloudDatabase.record(for: adaID)
      #expect(still["nickname"] as? String == "Countess")
    }
  }
}
