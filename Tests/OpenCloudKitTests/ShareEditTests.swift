import CloudKitServer
import Foundation
import OpenCloudKit
import Testing

/// Saves of a share from a copy that is older than the server's.
@Suite("Edits of older copies of a share")
struct ShareEditTests {
  private let zone = CKRecordZone(zoneName: "notes")

  /// A public share that Bob joins after Ada's copy of it was fetched.
  private struct World {
    let service: RealService
    let ada: CKContainer
    let bob: CKContainer
    /// Ada's copy from before Bob joined.
    let copy: CKShare
    /// How the service identifies Bob.
    let bobID: CKRecord.ID

    var database: CKDatabase { ada.privateCloudDatabase }

    /// The share that the service has now.
    func present() async throws -> CKShare {
      try #require(try await database.record(for: copy.recordID) as? CKShare)
    }

    /// The roles of the participants besides the owner, by user, as the service has them now.
    func others() async throws -> [CKRecord.ID?: CKShare.Participant] {
      Dictionary(
        try await present().participants.filter { $0.role != .owner }.map {
          ($0.userIdentity.userRecordID, $0)
        }
      ) { first, _ in first }
    }

    func save(
      _ share: CKShare?,
      _ policy: CKModifyRecordsOperation.RecordSavePolicy
    ) async throws {
      let results = try await database.modifyRecords(
        saving: [share ?? copy],
        deleting: [],
        savePolicy: policy
      )
      for result in results.saveResults.values { _ = try result.get() }
    }
  }

  private func world() async throws -> World {
    let service = try await RealService()
    let ada = try await service.device("one")
    let bob = try await service.device("two", of: "bob")
    let database = ada.privateCloudDatabase
    try await database.save(zone)
    let root = CKRecord(
      recordType: "Note",
      recordID: CKRecord.ID(recordName: "root", zoneID: zone.zoneID)
    )
    let share = CKShare(rootRecord: root)
    share.publicPermission = .readWrite
    let saved = try await database.modifyRecords(saving: [root, share], deleting: [])
    for result in saved.saveResults.values { _ = try result.get() }
    let copy = try #require(try await database.record(for: share.recordID) as? CKShare)
    try await join(bob, share)
    return World(
      service: service,
      ada: ada,
      bob: bob,
      copy: copy,
      bobID: try await bob.userRecordID()
    )
  }

  private func join(_ person: CKContainer, _ share: CKShare) async throws {
    let url = try #require(share.url)
    _ = try await person.accept(try await person.shareMetadata(for: url))
  }

  private func person(_ name: String, for world: World) async throws -> CKShare.Participant {
    let id = try await world.service.device(name, of: name).userRecordID()
    return try await world.ada.shareParticipant(forUserRecordID: id)
  }

  /// CloudKit saves a share as `ifServerRecordUnchanged` regardless of the operation's policy.
  @Test(
    "A save of an older copy fails under each policy, and the server's copy can be edited instead",
    arguments: [
      CKModifyRecordsOperation.RecordSavePolicy.ifServerRecordUnchanged, .changedKeys, .allKeys,
    ]
  )
  func title(policy: CKModifyRecordsOperation.RecordSavePolicy) async throws {
    let world = try await world()
    world.copy[CKShare.SystemFieldKey.title] = "Title"
    let error = await #expect(throws: CKError.self) { try await world.save(nil, policy) }
    #expect(error?.code == .serverRecordChanged)
    #expect(try await world.present()[CKShare.SystemFieldKey.title] == nil)
    let server = try #require(error?.serverRecord as? CKShare)
    server[CKShare.SystemFieldKey.title] = "Title"
    try await world.save(server, policy)
    #expect(try await world.present()[CKShare.SystemFieldKey.title] as? String == "Title")
    #expect(try await world.others()[world.bobID]?.role == .publicUser)
    #expect(try await world.bob.sharedCloudDatabase.allRecordZones().count == 1)
    #expect(server.participants.count == 2)
  }

  @Test("A share of a zone that another device has ended is not created again by an older copy")
  func endedShare() async throws {
    let service = try await RealService()
    let database = try await service.device("one").privateCloudDatabase
    try await database.save(zone)
    let share = CKShare(recordZoneID: zone.zoneID)
    share.publicPermission = .readWrite
    try await database.save(share)
    try await database.deleteRecord(withID: share.recordID)
    share[CKShare.SystemFieldKey.title] = "Title"
    let results = try await database.modifyRecords(
      saving: [share],
      deleting: [],
      savePolicy: .changedKeys
    )
    #expect(results.saveResults[share.recordID]?.failure != nil)
    await #expect(throws: CKError.self) { try await database.record(for: share.recordID) }
  }

  @Test("A participant who joined stays when the permission changes, and goes when removed")
  func addition() async throws {
    let world = try await world()
    let readOnly = try await world.present()
    readOnly.publicPermission = .readOnly
    // Bob is no invited participant: a link for reading keeps those who joined.
    try await world.save(readOnly, .changedKeys)
    #expect(Set(try await world.others().keys) == [world.bobID])
    let cleo = try await person("cleo", for: world)
    let edited = try #require(readOnly.copy() as? CKShare)
    edited.addParticipant(cleo)
    let bob = try #require(edited.participants.first { $0.role == .publicUser })
    edited.removeParticipant(bob)
    try await world.save(edited, .changedKeys)
    #expect(try await world.others()[world.bobID] == nil)
    #expect(try await world.others().count == 1)
    #expect(try await world.bob.sharedCloudDatabase.allRecordZones().isEmpty)
  }

  @Test("A permission that another device changed stays, and one that this device changes is set")
  func permissions() async throws {
    let world = try await world()
    let share = try await world.present()
    share.publicPermission = .none
    let (cleo, dan) = (try await person("cleo", for: world), try await person("dan", for: world))
    share.addParticipant(cleo)
    share.addParticipant(dan)
    try await world.database.save(share)
    let older = try #require(try await world.database.record(for: share.recordID) as? CKShare)
    let other = try #require(try await world.database.record(for: share.recordID) as? CKShare)
    func participant(_ person: CKShare.Participant, _ share: CKShare) throws -> CKShare.Participant
    {
      try #require(
        share.participants.first {
          $0.userIdentity.userRecordID == person.userIdentity.userRecordID
        }
      )
    }
    try participant(cleo, other).permission = .readWrite
    try await world.database.save(other)
    // A participant is an object: the share does not see the assignment.
    try participant(dan, older).permission = .readWrite
    let error = await #expect(throws: CKError.self) { try await world.save(older, .changedKeys) }
    let server = try #require(error?.serverRecord as? CKShare)
    try participant(dan, server).permission = .readWrite
    try await world.save(server, .changedKeys)
    let present = try await world.present()
    #expect(try participant(cleo, present).permission == .readWrite)
    #expect(try participant(dan, present).permission == .readWrite)
    #expect(present.publicPermission == .none)
  }

  @Test("What an archived copy had is kept with its edits")
  func archive() async throws {
    let world = try await world()
    let cleo = try await person("cleo", for: world)
    // A link's permission ends invitations: Cleo is invited to a private share.
    let share = try await world.present()
    share.publicPermission = .none
    share.addParticipant(cleo)
    let data = try NSKeyedArchiver.archivedData(
      withRootObject: share,
      requiringSecureCoding: true
    )
    let restored = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShare.self, from: data)
    )
    try await world.save(restored, .changedKeys)
    let others = try await world.others()
    // Who joined by the link goes with the link.
    #expect(Set(others.keys) == [cleo.userIdentity.userRecordID])
  }

  @Test("A person who is added while the share is being saved is sent with the next save")
  func additionDuringSave() async throws {
    let world = try await world()
    let share = try await world.present()
    share.publicPermission = .none
    let (cleo, dan) = (try await person("cleo", for: world), try await person("dan", for: world))
    share.addParticipant(cleo)
    world.service.intercept { request in
      if request.path.contains("records/modify") {
        share.addParticipant(dan)
        share.removeParticipant(cleo)
      }
      return nil
    }
    try await world.database.save(share)
    world.service.intercept(nil)
    #expect(Set(try await world.others().keys) == [cleo.userIdentity.userRecordID])
    #expect(
      share.participants.filter { $0.role != .owner }.map(\.userIdentity.userRecordID)
        == [dan.userIdentity.userRecordID]
    )
    try await world.database.save(share)
    #expect(Set(try await world.others().keys) == [dan.userIdentity.userRecordID])
  }
}
