import CloudKitServer
import Foundation
import OpenCloudKit
import Synchronization
import Testing

/// Requesting access to a share, as an app's users see it.
@Suite("Access requests, from both sides")
struct AccessRequestStoryTests {
  private let zone = CKRecordZone(zoneName: "lists")

  /// Saves a list without participants, whose owner accepts requests.
  private func share(_ ada: CKContainer, opens: Bool = true) async throws -> CKShare {
    try await ada.privateCloudDatabase.save(zone)
    let root = CKRecord(
      recordType: "List",
      recordID: CKRecord.ID(recordName: "list", zoneID: zone.zoneID)
    )
    let share = CKShare(rootRecord: root)
    #expect(!share.allowsAccessRequests)
    share.allowsAccessRequests = opens
    let results = try await ada.privateCloudDatabase.modifyRecords(
      saving: [root, share],
      deleting: []
    )
    return try #require(try results.saveResults[share.recordID]?.get() as? CKShare)
  }

  private func current(_ share: CKShare, _ ada: CKContainer) async throws -> CKShare {
    try #require(try await ada.privateCloudDatabase.record(for: share.recordID) as? CKShare)
  }

  /// Requests access with an operation, as apps do.
  private func ask(_ urls: [URL], _ person: CKContainer) async throws -> [URL: Bool] {
    let operation = CKShareRequestAccessOperation(shareURLs: urls)
    let results = Mutex<[URL: Bool]>([:])
    operation.perShareAccessRequestResultBlock = { url, result in
      results.withLock { $0[url] = (try? result.get()) != nil }
    }
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      operation.shareAccessRequestResultBlock = { continuation.resume(with: $0) }
      person.add(operation)
    }
    return results.withLock { $0 }
  }

  @Test(
    "The owner accepts a requester, who then finds the share",
    arguments: TransportKind.allCases
  )
  func letIn(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let share = try await share(ada)
      #expect(share.allowsAccessRequests)
      let url = try #require(share.url)
      let nowhere = url.deletingLastPathComponent().appendingPathComponent("0nothing")
      #expect(try await ask([url, nowhere], ben) == [url: true, nowhere: true])
      let closed = await #expect(throws: CKError.self) { try await ben.shareMetadata(for: url) }
      #expect(closed?.code == .unknownItem)

      let asked = try await current(share, ada)
      let requester = try #require(asked.requesters.first)
      #expect(asked.requesters.count == 1)
      #expect(requester.userIdentity.nameComponents?.givenName == "Ben")
      #expect(requester.participantLookupInfo.emailAddress == "ben@example.org")
      let found = try await ada.shareParticipants(for: [requester.participantLookupInfo])
      let guest = try #require(try found[requester.participantLookupInfo]?.get())
      guest.permission = .readWrite
      asked.addParticipant(guest)
      let saved = try #require(try await ada.privateCloudDatabase.save(asked) as? CKShare)
      #expect(saved.requesters.isEmpty)
      #expect(saved.participants.map(\.isApprovedRequester) == [false, true])
      let metadata = try await ben.shareMetadata(for: url)
      #expect(metadata.participantStatus == .pending)
      #expect(metadata.share.requesters.isEmpty)
      let accepted = try await ben.accept(metadata)
      #expect(accepted.currentUserParticipant?.acceptanceStatus == .accepted)
    }
  }

  @Test("Denied users may request again, blocked ones may not", arguments: TransportKind.allCases)
  func refused(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let share = try await share(ada)
      let url = try #require(share.url)
      _ = try await ask([url], ben)
      var known = try await current(share, ada)
      known.denyRequesters(known.requesters)
      try await ada.privateCloudDatabase.save(known)
      #expect(try await current(share, ada).requesters.isEmpty)

      _ = try await ask([url], ben)
      known = try await current(share, ada)
      #expect(known.requesters.count == 1)
      known.blockRequesters(known.requesters)
      try await ada.privateCloudDatabase.save(known)
      #expect(try await ask([url], ben) == [url: true])
      known = try await current(share, ada)
      #expect(known.requesters.isEmpty)
      #expect(known.blockedIdentities.map { $0.userIdentity.nameComponents?.givenName } == ["Ben"])

      known.unblockIdentities(known.blockedIdentities)
      try await ada.privateCloudDatabase.save(known)
      _ = try await ask([url], ben)
      #expect(try await current(share, ada).requesters.count == 1)
    }
  }

  @Test("A save without request settings does not change them", arguments: TransportKind.allCases)
  func otherSaves(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      let share = try await share(ada)
      _ = try await ask([try #require(share.url)], ben)
      let other = try await current(share, ada)
      other[CKShare.SystemFieldKey.title] = "Groceries"
      try await ada.privateCloudDatabase.save(other)
      let known = try await current(share, ada)
      #expect(known[CKShare.SystemFieldKey.title] as? String == "Groceries")
      #expect(known.requesters.count == 1)
      #expect(known.allowsAccessRequests)
    }
  }

  @Test("Requests and blocked users are in the share's archive")
  func archive() async throws {
    try await TransportKind.process.run { place in
      let ada = try await place.device(of: "ada")
      let share = try await share(ada)
      for name in ["ben", "eve"] {
        _ = try await ask([try #require(share.url)], try await place.device(of: name))
      }
      let known = try await current(share, ada)
      known.blockRequesters([try #require(known.requesters.last)])
      let data = try NSKeyedArchiver.archivedData(
        withRootObject: known,
        requiringSecureCoding: true
      )
      let read = try #require(
        try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShare.self, from: data)
      )
      #expect(read.allowsAccessRequests)
      #expect(read.requesters == known.requesters)
      #expect(read.blockedIdentities == known.blockedIdentities)
      try await ada.privateCloudDatabase.save(read)
      #expect(try await current(share, ada).blockedIdentities.count == 1)
    }
  }

  @Test("A zone has a reference to the share of the whole zone", arguments: TransportKind.allCases)
  func zoneShare(transport: TransportKind) async throws {
    try await transport.run { place in
      let ada = try await place.device(of: "ada")
      let ben = try await place.device(of: "ben")
      #expect(try await ada.privateCloudDatabase.save(zone).share == nil)
      let share = CKShare(recordZoneID: zone.zoneID)
      share.addParticipant(try await ada.shareParticipant(forEmailAddress: "ben@example.org"))
      try await ada.privateCloudDatabase.save(share)
      let own = try await ada.privateCloudDatabase.recordZone(for: zone.zoneID)
      #expect(own.share?.recordID == share.recordID)
      let all = try await ada.privateCloudDatabase.allRecordZones()
      #expect(all.compactMap { $0.share?.recordID } == [share.recordID])
      #expect(try await ada.privateCloudDatabase.save(zone).share?.recordID == share.recordID)
      let reference = try #require(own.share)
      let fetched = try await ada.privateCloudDatabase.record(for: reference.recordID)
      #expect(fetched is CKShare)

      _ = try await ben.accept(try await ben.shareMetadata(for: try #require(share.url)))
      let zones = try await ben.sharedCloudDatabase.allRecordZones()
      let theirs = try #require(zones.first?.share)
      #expect(theirs.recordID.recordName == CKRecordNameZoneWideShare)
      #expect(theirs.recordID.zoneID == zones.first?.zoneID)
      #expect(try await ben.sharedCloudDatabase.record(for: theirs.recordID) is CKShare)
      try await ada.privateCloudDatabase.deleteRecord(withID: share.recordID)
      #expect(try await ada.privateCloudDatabase.recordZone(for: zone.zoneID).share == nil)
    }
  }
}
