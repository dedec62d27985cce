import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Participants of shares", .everyEngine)
struct ShareParticipantTests {
  @Test("Participants are found by address, and only the server sets their status")
  func participants() async throws {
    let tree = try await SharedTree(accepts: false)
    let bob = try await tree.guest.userRecordName
    let invited = try #require(tree.share.sharing?.participants?.last)
    #expect(invited.userIdentity?.userRecordName == bob)
    #expect(invited.acceptanceStatus == .invited)
    #expect(invited.participantId != nil)
    // A client cannot accept for another user.
    var claim = invited
    claim.acceptanceStatus = .accepted
    let saved = try await tree.owner.updateShare(tree.share, participants: [claim])
    #expect(saved.sharing?.participants?.map(\.acceptanceStatus) == [.accepted, .invited])
    #expect(saved.sharing?.participants?.first?.type == .owner)
    #expect(saved.sharing?.participants?.last?.participantId == invited.participantId)
    // A participant who is missing in the list is removed.
    let emptied = try await tree.owner.updateShare(saved, participants: [])
    #expect(emptied.sharing?.participants?.count == 1)
    await #expect(throws: ErrorDictionary.self) { try await tree.guest.accept(tree.share) }
  }

  @Test(
    "An unverified address matches no invitation until an administrator verifies it"
  )
  func typedAddress() async throws {
    let server = try await TestServer(registration: .open)
    let owner = try await server.person("ada")
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let share = try await owner.share("root", with: [.invited("late")])
    let form = Data("user=mallory&email=late@example.com&password=long+enough".utf8)
    #expect(await server.send("POST", "/sign-up", body: form).status == 200)
    let mallory = try await server.person("mallory")
    await #expect(throws: ErrorDictionary.self) { try await mallory.resolve(share.shortGUID) }
    await #expect(throws: ErrorDictionary.self) { try await mallory.accept(share) }
    #expect(try await mallory.sharedChanges().zones.isEmpty)
    try await server.service.accounts.change(
      "mallory",
      AccountChanges(emailAddress: "late@example.com")
    )
    #expect(try await mallory.accept(share).participantStatus == .accepted)
  }

  @Test("A share has at most a hundred participants besides its owner", arguments: [100, 101])
  func participantLimit(count: Int) async throws {
    let owner = try await TestServer().person()
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let people = (0..<count).map { ShareParticipant.invited("p\($0)") }
    if count <= 100 {
      let share = try await owner.share("root", with: people)
      #expect(share.sharing?.participants?.count == 101)
    } else {
      await #expect(throws: ErrorDictionary.self) { try await owner.share("root", with: people) }
    }
  }

  @Test("Making a share public removes pending invitations; making it private removes all others")
  func publicPermission() async throws {
    let tree = try await SharedTree()
    _ = try await tree.server.person("cleo")
    let stranger = try await tree.server.person("dan")
    var share = try await tree.owner.lookup("share")
    let people = try #require(share.sharing?.participants) + [.invited("cleo")]
    share = try await tree.owner.updateShare(share, participants: people)
    share = try await tree.owner.updateShare(share, publicPermission: .readOnly)
    #expect(share.sharing?.participants?.map(\.acceptanceStatus) == [.accepted, .accepted])
    let joined = try await stranger.accept(share)
    #expect(joined.participantType == .publicUser)
    #expect(joined.participantPermission == .readOnly)
    #expect(try await stranger.feed(tree.zone).names.sorted() == ["a", "b", "root", "share"])
    share = try await tree.owner.lookup("share")
    share = try await tree.owner.updateShare(share, publicPermission: ParticipantPermission.none)
    #expect(share.sharing?.participants?.count == 1)
    for person in [stranger, tree.guest] {
      await #expect(throws: ErrorDictionary.self) { try await person.feed(tree.zone) }
      await #expect(throws: ErrorDictionary.self) { try await person.resolve(share.shortGUID) }
    }
  }

  @Test("The permission of participants who joined by the link changes with the link's")
  func publicUsersFollow() async throws {
    let tree = try await SharedTree(accepts: false)
    var share = try await tree.owner.updateShare(tree.share, publicPermission: .readWrite)
    let stranger = try await tree.server.person("dan")
    try await stranger.accept(share)
    try await stranger.save(.forceUpdate, "a", in: .shared, zone: tree.zone)
    share = try await tree.owner.lookup("share")
    try await tree.owner.updateShare(share, publicPermission: .readOnly)
    await #expect(throws: ErrorDictionary.self) {
      try await stranger.save(.forceUpdate, "a", in: .shared, zone: tree.zone)
    }
    // They see the owner and themselves alone.
    let seen = try await stranger.lookup("share", in: .shared, zone: tree.zone)
    #expect(seen.sharing?.participants?.map(\.type) == [.owner, .publicUser])
    #expect(seen.sharing?.owner?.userIdentity?.lookupInfo == nil)
  }

  @Test("A user invited by an address sees their invitation before they accept")
  func invitedByAddress() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    try await owner.makeZone()
    try await owner.save(.create, "root")
    // No account has the address yet.
    let share = try await owner.share("root", with: [.invited("late")])
    #expect(share.sharing?.participants?.last?.userIdentity?.userRecordName == nil)
    let late = try await server.person("late")
    let found = try await late.resolve(share.shortGUID)
    let me = try #require(found.share.sharing?.currentUserParticipant)
    #expect(me.acceptanceStatus == .invited)
    #expect(me.permission == .readWrite)
    #expect(me.userIdentity?.lookupInfo?.emailAddress == "late@example.com")
    #expect(found.participantStatus == .invited)
    #expect(found.potentialMatchList?.map(\.participantId) == [try #require(me.participantId)])
    let accepted = try await late.accept(share)
    #expect(accepted.share.sharing?.currentUserParticipant?.acceptanceStatus == .accepted)
    #expect(accepted.share.sharing?.currentUserParticipant?.participantId == me.participantId)
  }

  // MARK: Resolving

  @Test("A short ID resolves to what each caller may see")
  func resolve() async throws {
    let tree = try await SharedTree(.readOnly, accepts: false)
    let guid = tree.share.shortGUID
    let mine = try await tree.owner.resolve(guid)
    #expect(mine.databaseScope == "PRIVATE")
    #expect(mine.participantType == .owner)
    let theirs = try await tree.guest.resolve(guid, root: true)
    #expect(theirs.databaseScope == "SHARED")
    #expect(theirs.participantType == .user)
    #expect(theirs.participantStatus == .invited)
    #expect(theirs.participantPermission == .readOnly)
    #expect(theirs.containerIdentifier == TestServer.container)
    #expect(theirs.environment == "development")
    #expect(theirs.zoneID.ownerRecordName == tree.zone.ownerRecordName)
    #expect(theirs.rootRecordName == "root")
    #expect(theirs.rootRecord?.content("title") == .string("Root"))
    #expect(theirs.ownerIdentity.nameComponents?.givenName == "Ada")
    #expect(theirs.share.recordName == "share")
    #expect(theirs.webpageURL == "http://127.0.0.1:8080/share/\(guid ?? "")")
    let stranger = try await tree.server.person("dan")
    let hidden = await #expect(throws: ErrorDictionary.self) { try await stranger.resolve(guid) }
    var absent = await #expect(throws: ErrorDictionary.self) { try await stranger.resolve("0no") }
    #expect(absent?.shortGUID?.value == "0no")
    absent?.shortGUID = hidden?.shortGUID
    #expect(hidden == absent)
    let visitor = await #expect(throws: ErrorDictionary.self) {
      try await tree.server.visitor.resolve(guid)
    }
    #expect(visitor?.serverErrorCode == .authenticationRequired)
    #expect(visitor?.redirectURL != nil)
  }

  @Test("Without a user a hidden, a deleted and an invented link are answered alike")
  func hiddenWithoutUser() async throws {
    let tree = try await SharedTree(accepts: false)
    let guid = tree.share.shortGUID
    func answer(_ guid: String?) async throws -> ErrorDictionary {
      var error = try #require(
        await #expect(throws: ErrorDictionary.self) {
          try await tree.server.visitor.resolve(guid)
        }
      )
      #expect(error.shortGUID?.value == guid)
      error.shortGUID = nil
      return error
    }
    let hidden = try await answer(guid)
    #expect(hidden.serverErrorCode == .authenticationRequired)
    #expect(try await answer("0no") == hidden)
    try await tree.owner.save(.forceDelete, "share", recordType: nil)
    #expect(try await answer(guid) == hidden)
  }

  @Test("A public share resolves without a sign-in")
  func resolveSignedOut() async throws {
    let tree = try await SharedTree(accepts: false)
    try await tree.owner.updateShare(tree.share, publicPermission: .readOnly)
    let found = try await tree.server.visitor.resolve(tree.share.shortGUID, root: true)
    #expect(found.participantType == .publicUser)
    #expect(found.rootRecord?.recordName == "root")
    #expect(found.requireAppleLogin == false)
    #expect(found.share.sharing?.participants?.map(\.type) == [.owner])
  }

  @Test("Two new participants of one save never have one ID, and each joins as themselves")
  func repeatedID() async throws {
    let server = try await TestServer()
    let (owner, guest) = (try await server.person("ada"), try await server.person("bob"))
    _ = try await server.person("cleo")
    try await owner.makeZone()
    try await owner.save(.create, "root")
    var (first, second) = (
      ShareParticipant.invited("cleo", .readWrite), ShareParticipant.invited("bob", .readOnly)
    )
    first.participantId = "X"
    first.type = .administrator
    second.participantId = "X"
    let share = try await owner.share("root", with: [first, second])
    let participants = try #require(share.sharing?.participants)
    #expect(Set(participants.map(\.participantId)).count == 3)
    try await guest.accept(share)
    let joined = try await owner.lookup("share").sharing?.participants?.filter {
      $0.acceptanceStatus == .accepted && $0.type != .owner
    }
    #expect(joined?.map(\.permission) == [.readOnly])
    #expect(joined?.map(\.type) == [.user])
  }
}
