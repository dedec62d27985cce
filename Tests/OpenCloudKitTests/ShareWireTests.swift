import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization
import Testing

@Suite("Shares on the wire")
struct ShareWireTests {
  private let service = ScriptedService()
  private let zoneID = CKRecordZone.ID(zoneName: "zone")

  private static let share = """
    {"recordName":"s","recordType":"cloudkit.share","recordChangeTag":"1","shortGUID":"0abc",
     "publicPermission":"READ_ONLY",
     "owner":{"participantId":"o","type":"OWNER","acceptanceStatus":"ACCEPTED",
       "permission":"READ_WRITE","userIdentity":{"userRecordName":"_ada"}},
     "currentUserParticipant":{"participantId":"p"},
     "participants":[
       {"participantId":"p","type":"USER","acceptanceStatus":"INVITED","permission":"READ_WRITE",
        "userIdentity":{"lookupInfo":{"emailAddress":"b@c.d"}}},
       {"participantId":"o","type":"OWNER","acceptanceStatus":"ACCEPTED","permission":"READ_WRITE",
        "userIdentity":{"userRecordName":"_ada","nameComponents":{"givenName":"Ada"}}},
       {"participantId":"q","type":"SOMETHING","acceptanceStatus":"ODD","permission":"LOTS"}],
     "fields":{"cloudkit.title":{"value":"Title","type":"STRING"}}}
    """

  @Test("Root and share are sent in one batch: the root asks for a short ID, the share names it")
  func saving() async throws {
    service.answer(
      """
      {"records":[{"recordName":"root","recordType":"Note","recordChangeTag":"2"},
       \(Self.share)]}
      """
    )
    service.answer("{\"users\":[]}")
    let container = service.container()
    let root = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "root", zoneID: zoneID)
    )
    let share = CKShare(
      rootRecord: root,
      shareID: CKRecord.ID(recordName: "s", zoneID: zoneID)
    )
    share[CKShare.SystemFieldKey.title] = "Title"
    share.publicPermission = .readOnly
    let results = try await container.privateCloudDatabase.modifyRecords(
      saving: [root, share],
      deleting: []
    )
    for result in results.saveResults.values { _ = try result.get() }
    let operations = try #require(service.body(0)["operations"] as? [NSDictionary])
    let sentRoot = try #require(operations[0]["record"] as? NSDictionary)
    #expect(sentRoot["createShortGUID"] as? Bool == true)
    let sentShare = try #require(operations[1]["record"] as? NSDictionary)
    #expect(sentShare["recordType"] as? String == "cloudkit.share")
    #expect(sentShare["publicPermission"] as? String == "READ_ONLY")
    #expect((sentShare["forRecord"] as? NSDictionary)?["recordName"] as? String == "root")
    #expect((sentShare["participants"] as? [Any])?.isEmpty == true)
    #expect(share.url?.absoluteString == "http://service.test/share/0abc")
    #expect(share.owner.userIdentity.userRecordID?.recordName == "_ada")
    #expect(share.recordChangeTag == "1")
    #expect(root.share?.recordID == share.recordID)
  }

  @Test("A share's participants are decoded, the owner first; unknown roles do not fail it")
  func reading() async throws {
    service.answer("{\"records\":[\(Self.share)]}")
    let database = service.container().sharedCloudDatabase
    let recordID = CKRecord.ID(recordName: "s", zoneID: zoneID)
    let share = try #require(try await database.record(for: recordID) as? CKShare)
    #expect(share[CKShare.SystemFieldKey.title] as? String == "Title")
    #expect(share.publicPermission == .readOnly)
    #expect(share.participants.map(\.participantID) == ["o", "p", "q"])
    #expect(share.participants.map(\.role) == [.owner, .privateUser, .unknown])
    #expect(share.participants.map(\.acceptanceStatus) == [.accepted, .pending, .unknown])
    #expect(share.participants.map(\.permission) == [.readWrite, .readWrite, .unknown])
    #expect(share.currentUserParticipant?.participantID == "p")
    #expect(share.participants[1].userIdentity.lookupInfo?.emailAddress == "b@c.d")
    #expect(share.owner.userIdentity.nameComponents?.givenName == "Ada")
    #expect(share.changedKeys().isEmpty)
  }

  private static let metadata = """
    {"shortGUID":{"value":"0abc"},"containerIdentifier":"iCloud.test",
     "environment":"development","databaseScope":"SHARED",
     "zoneID":{"zoneName":"zone","ownerRecordName":"_ada"},"rootRecordName":"root",
     "rootRecord":{"recordName":"root","recordType":"Note"},"share":\(share),
     "ownerIdentity":{"userRecordName":"_ada"},"participantType":"USER",
     "participantStatus":"INVITED","participantPermission":"READ_WRITE"}
    """

  @Test("A link's metadata has the share, its root and its owner, in the owner's zone")
  func metadata() async throws {
    service.answer("{\"results\":[\(Self.metadata)]}")
    let url = try #require(URL(string: "http://service.test/share/0abc#Title"))
    let found = try await service.container().shareMetadata(for: url)
    #expect(service.requests[0].path.contains("/public/records/resolve"))
    #expect(
      try service.body(0) == ["shortGUIDs": [["value": "0abc"]]] as NSDictionary
    )
    #expect(found.containerIdentifier == "iCloud.test")
    let ownersZone = CKRecordZone.ID(zoneName: "zone", ownerName: "_ada")
    #expect(
      found.hierarchicalRootRecordID == CKRecord.ID(recordName: "root", zoneID: ownersZone)
    )
    #expect(found.rootRecord?.recordType == "Note")
    #expect(found.share.recordID.zoneID == ownersZone)
    #expect(found.ownerIdentity.userRecordID?.recordName == "_ada")
    #expect(found.participantRole == .privateUser)
    #expect(found.participantStatus == .pending)
    #expect(found.participantPermission == .readWrite)
    let data = try NSKeyedArchiver.archivedData(withRootObject: found, requiringSecureCoding: true)
    let copy = try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShare.Metadata.self, from: data)
    #expect(copy == found)
    #expect(copy?.share.participants == found.share.participants)
  }

  @Test("Each invalid link of several has its own error")
  func wrongLinks() async throws {
    service.answer(
      "{\"results\":[{\"serverErrorCode\":\"NOT_FOUND\",\"reason\":\"no such share\"}]}"
    )
    let gone = try #require(URL(string: "http://service.test/share/gone"))
    let odd = try #require(URL(string: "http://service.test/"))
    let operation = CKFetchShareMetadataOperation(shareURLs: [gone, odd])
    let codes = Mutex<[URL: CKError.Code]>([:])
    operation.perShareMetadataResultBlock = { url, result in
      codes.withLock { $0[url] = result.failure?.code }
    }
    let end = Mutex<CKError.Code?>(nil)
    operation.fetchShareMetadataResultBlock = { result in
      end.withLock { $0 = result.failure?.code }
    }
    await withCheckedContinuation { continuation in
      operation.completionBlock = { continuation.resume() }
      service.container().add(operation)
    }
    #expect(codes.withLock { $0 } == [gone: .unknownItem, odd: .invalidArguments])
    #expect(end.withLock { $0 } == .partialFailure)
  }

  @Test("Accepting an invitation returns the share")
  func accepting() async throws {
    service.answer("{\"results\":[\(Self.metadata)]}")
    service.answer("{\"results\":[\(Self.metadata)]}")
    let container = service.container()
    let url = try #require(URL(string: "http://service.test/share/0abc"))
    let share = try await container.accept(try await container.shareMetadata(for: url))
    #expect(service.requests[1].path.contains("/public/records/accept"))
    #expect(share.recordID.recordName == "s")
  }

  @Test("Participants are found by accounts, and created for addresses without an account")
  func participants() async throws {
    service.answer(
      """
      {"users":[{"userRecordName":"_bob","nameComponents":{"givenName":"Bob"},
       "lookupInfo":{"emailAddress":"Bob@b.c"}}]}
      """
    )
    service.answer("{\"users\":[]}")
    let container = service.container()
    let found = try await container.shareParticipants(
      forEmailAddresses: ["bob@b.c", "new@b.c"]
    )
    let bob = try #require(try found["bob@b.c"]?.get())
    #expect(bob.userIdentity.userRecordID?.recordName == "_bob")
    #expect(bob.userIdentity.hasiCloudAccount)
    #expect(bob.acceptanceStatus == .pending)
    #expect(bob.role == .privateUser)
    let new = try #require(try found["new@b.c"]?.get())
    #expect(new.userIdentity.userRecordID == nil)
    #expect(new.userIdentity.lookupInfo?.emailAddress == "new@b.c")
    let error = await #expect(throws: CKError.self) {
      try await container.shareParticipant(
        forUserRecordID: CKRecord.ID(recordName: "_nobody")
      )
    }
    #expect(error?.code == .unknownItem)
  }

  @Test("Removing a record's parent is sent to the service")
  func parents() async throws {
    service.answer(
      """
      {"records":[{"recordName":"n","recordType":"Note","recordChangeTag":"1",
       "parent":{"recordName":"p"}}]}
      """
    )
    service.answer(
      "{\"records\":[{\"recordName\":\"n\",\"recordType\":\"Note\",\"recordChangeTag\":\"2\"}]}"
    )
    let database = service.container().privateCloudDatabase
    let recordID = CKRecord.ID(recordName: "n", zoneID: zoneID)
    let record = try await database.record(for: recordID)
    #expect(record.parent?.recordID.recordName == "p")
    record.parent = nil
    try await database.save(record)
    let operations = try service.body(1)["operations"] as? [NSDictionary]
    let sent = operations?.first?["record"] as? NSDictionary
    #expect(sent?["parent"] is NSNull)
  }
}
