import Foundation
import OpenCloudKit
import Testing

@Suite("Shares as apps use them")
struct ShareTests {
  private let zoneID = CKRecordZone.ID(zoneName: "zone")

  private func root() -> CKRecord {
    CKRecord(recordType: "Note", recordID: CKRecord.ID(recordName: "root", zoneID: zoneID))
  }

  private func archived<Value: NSObject & NSSecureCoding>(_ value: Value) throws -> Value? {
    let data = try NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: true)
    return try NSKeyedUnarchiver.unarchivedObject(ofClass: Value.self, from: data)
  }

  @Test("A new share is in its root's zone, and the root references it")
  func new() {
    let root = root()
    let share = CKShare(rootRecord: root)
    #expect(share.recordType == "cloudkit.share")
    #expect(share.recordID.zoneID == zoneID)
    #expect(root.share?.recordID == share.recordID)
    #expect(share.publicPermission == .none)
    #expect(share.participants.count == 1)
    #expect(share.owner.role == .owner)
    #expect(share.owner.permission == .readWrite)
    #expect(share.owner.acceptanceStatus == .accepted)
    #expect(share.currentUserParticipant == share.owner)
    #expect(share.url == nil)
    share[CKShare.SystemFieldKey.title] = "Title"
    #expect(share["cloudkit.title"] as? String == "Title")
  }

  @Test("The share of a zone has the fixed record name")
  func zoneShare() {
    let share = CKShare(recordZoneID: zoneID)
    #expect(share.recordID.recordName == CKRecordNameZoneWideShare)
    #expect(share.recordID.zoneID == zoneID)
  }

  // The service refuses it when it is saved. Suites for Apple's platforms make such shares.
  @Test("A share of a record in the default zone can be made")
  func defaultZone() {
    let root = CKRecord(recordType: "Note")
    let share = CKShare(rootRecord: root)
    #expect(share.recordID.zoneID == .default)
    #expect(root.share?.recordID == share.recordID)
  }

  @Test("Participants are added once and can be removed, except the owner")
  func participants() {
    let share = CKShare(rootRecord: root())
    let guest = CKShare.Participant.oneTimeURLParticipant()
    #expect(guest.role == .privateUser)
    #expect(guest.permission == .readOnly)
    #expect(guest.acceptanceStatus == .pending)
    share.addParticipant(guest)
    share.addParticipant(guest)
    #expect(share.participants == [share.owner, guest])
    guest.permission = .readWrite
    #expect(share.participants.last?.permission == .readWrite)
    share.removeParticipant(share.owner)
    share.removeParticipant(guest)
    #expect(share.participants == [share.owner])
  }

  @Test("A share round-trips through an archive, whole or by its system fields")
  func archive() throws {
    let share = CKShare(rootRecord: root())
    share[CKShare.SystemFieldKey.title] = "Title"
    share.publicPermission = .readWrite
    share.addParticipant(CKShare.Participant.oneTimeURLParticipant())
    let copy = try #require(try archived(share))
    #expect(copy.recordID == share.recordID)
    #expect(copy.participants == share.participants)
    #expect(copy.publicPermission == .readWrite)
    #expect(copy[CKShare.SystemFieldKey.title] as? String == "Title")
    #expect(copy.changedKeys() == ["cloudkit.title"])

    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    share.encodeSystemFields(with: archiver)
    archiver.finishEncoding()
    let reader = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
    reader.requiresSecureCoding = true
    let bare = try #require(CKShare(coder: reader))
    #expect(bare.participants == share.participants)
    #expect(bare.allKeys().isEmpty)
    let duplicate = try #require(share.copy() as? CKShare)
    #expect(duplicate.participants == share.participants)
    #expect(duplicate.changedKeys() == share.changedKeys())
  }

  @Test("Identities and look-ups round-trip through archives")
  func people() throws {
    let infos =
      CKUserIdentity.LookupInfo.lookupInfos(withEmails: ["a@b.c"])
      + CKUserIdentity.LookupInfo.lookupInfos(withPhoneNumbers: ["+1"])
      + CKUserIdentity.LookupInfo.lookupInfos(with: [CKRecord.ID(recordName: "_u")])
    #expect(infos.map(\.emailAddress) == ["a@b.c", nil, nil])
    #expect(infos.map(\.phoneNumber) == [nil, "+1", nil])
    #expect(infos.map { $0.userRecordID?.recordName } == [nil, nil, "_u"])
    for info in infos { #expect(try archived(info) == info) }
    #expect(!"\(infos[0])".contains("a@b.c"))
    let participant = CKShare.Participant.oneTimeURLParticipant()
    #expect(try archived(participant.userIdentity) == participant.userIdentity)
    #expect(try archived(participant) == participant)
  }
}
