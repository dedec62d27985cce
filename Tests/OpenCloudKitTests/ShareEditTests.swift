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

    func save(_ policy: CKModifyRecordsOperation.RecordSavePolicy) async throws {
      let results = try await database.modifyRecords(
        saving: [copy],
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

  @Test(
    "A title that is set on an older copy removes no participant",
    arguments: [CKModifyRecordsOperation.RecordSavePolicy.changedKeys, .allKeys]
  )
  func title(policy: CKModifyRecordsOperation.RecordSavePolicy) async throws {
    let world = try await world()
    world.copy[CKShare.SystemFieldKey.title] = "Title"
    try await world.save(policy)
    #expect(try await world.present()[CKShare.SystemFieldKey.title] as? String == "Title")
    #expect(try await world.others()[world.bobID]?.role == .publicUser)
    #expect(try await world.bob.sharedCloudDatabase.allRecordZones().count == 1)
    #expect(world.copy.participants.count == 2)
  }

  @Test("A person who is added to an older copy joins those who have come meanwhile")
  func addition() async throws {
    let world = try await world()
    world.copy.publicPermission = .readOnly
    // Bob is no invited participant: a link for reading keeps those who joined.
    try await world.save(.changedKeys)
    #expect(Set(try await world.others().keys) == [world.bobID])
    let cleo = try await person("cleo", for: world)
    let older = try #require(world.copy.copy() as? CKShare)
    older.addParticipant(cleo)
    let bob = try #require(older.participants.first { $0.role == .publicUser })
    older.removeParticipant(bob)
    let results = try await world.database.modifyRecords(
      saving: [older],
      deleting: [],
      savePolicy: .changedKeys
    )
    for result in results.saveResults.values { _ = try result.get() }
    // A participant in the copy is removed by it.
    #expect(try await world.others()[world.bobID] == nil)
    #expect(try await world.others().count == 1)
    #expect(try await world.bob.sharedCloudDatabase.allRecordZones().isEmpty)
  }

  @Test("A permission that another device changed stays, and one that this copy changes is set")
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
    let results = try await world.database.modifyRecords(
      saving: [older],
      deleting: [],
      savePolicy: .changedKeys
    )
    for result in results.saveResults.values { _ = try result.get() }
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
    world.copy.publicPermission = .none
    world.copy.addParticipant(cleo)
    let data = try NSKeyedArchiver.archivedData(
      withRootObject: world.copy,
      requiringSecureCoding: true
    )
    let restored = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: CKShare.self, from: data)
    )
    let results = try await world.database.modifyRecords(
      saving: [restored],
      deleting: [],
      savePolicy: .changedKeys
    )
    for result in results.saveResults.values { _ = try result.get() }
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
