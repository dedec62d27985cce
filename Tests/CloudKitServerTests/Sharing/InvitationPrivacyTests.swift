import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// An invitation reveals no more about accounts than a look-up of people does.
@Suite("What an invitation reveals", .everyEngine)
struct InvitationPrivacyTests {
  @Test("An invited user who has not consented to be found is shown after they have accepted")
  func consent() async throws {
    let server = try await TestServer(discovery: .consent)
    let owner = try await server.person("ada")
    let guest = try await server.person("bob")
    let name = try await guest.userRecordName
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let share = try await owner.share("root", with: [.invited("bob"), .invited("nobody")])
    for shown in [share, try await owner.lookup("share")] {
      for entry in try #require(shown.sharing?.participants).dropFirst() {
        #expect(entry.userIdentity?.userRecordName == nil)
        #expect(entry.userIdentity?.nameComponents == nil)
        #expect(entry.userIdentity?.lookupInfo?.emailAddress != nil)
      }
    }
    // The invited user sees their own identity.
    let found = try await guest.resolve(share.shortGUID)
    let me = try #require(found.share.sharing?.currentUserParticipant)
    #expect(me.userIdentity?.userRecordName == name)
    // The invitation is bound to the account nevertheless.
    #expect(try await guest.accept(share).participantStatus == .accepted)
    let joined = try #require(try await owner.lookup("share").sharing?.participants)
    #expect(joined[1].userIdentity?.userRecordName == name)
    #expect(joined[1].userIdentity?.nameComponents?.givenName == "Bob")
  }

  @Test("An invitation by record name shows the record name and no other name")
  func recordName() async throws {
    let server = try await TestServer(discovery: .consent)
    let owner = try await server.person("ada")
    let name = try await server.person("bob").userRecordName
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let entry = ShareParticipant(
      type: .user,
      permission: .readOnly,
      userIdentity: UserIdentity(lookupInfo: LookupInfo(userRecordName: name))
    )
    let share = try await owner.share("root", with: [entry])
    let invited = try #require(share.sharing?.participants?.last)
    #expect(invited.userIdentity?.userRecordName == name)
    #expect(invited.userIdentity?.nameComponents == nil)
  }

  @Test("Invitations count as look-ups of people, participants of the share do not")
  func rate() async throws {
    let server = try await TestServer(limits: { $0.peopleLookedUpPerHour = 4 })
    let owner = try await server.person("ada")
    try await owner.makeZone()
    try await owner.save(.create, "root")
    var share = try await owner.share("root", with: [.invited("a"), .invited("b"), .invited("c")])
    for _ in 0..<3 {
      let known = try #require(share.sharing?.participants)
      share = try await owner.updateShare(share, participants: known)
    }
    #expect(share.sharing?.participants?.count == 4)
    let more = try #require(share.sharing?.participants) + [.invited("d"), .invited("e")]
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await owner.updateShare(share, participants: more)
    }
    #expect(refused?.serverErrorCode == .throttled)
    #expect(refused?.retryAfter != nil)
    let one = try await owner.updateShare(share, participants: Array(more.dropLast()))
    #expect(one.sharing?.participants?.count == 5)
  }
}
