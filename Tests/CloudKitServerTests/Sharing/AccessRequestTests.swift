import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// A share that accepts requests, its owner, a participant and a user who only has the link.
private struct RequestableShare {
  let tree: SharedTree
  let asker: Person
  let guid: String

  init(
    opens: Bool = true,
    limits: (inout ServiceLimits) -> Void = { _ in }
  ) async throws {
    tree = try await SharedTree(limits: limits)
    asker = try await tree.server.person("dan")
    guid = try #require(tree.share.shortGUID)
    if opens { try await answer(denyAccessRequests: false) }
  }

  /// Saves the share with its owner's current version and these request settings.
  @discardableResult
  func answer(
    by person: Person? = nil,
    participants: [ShareParticipant]? = nil,
    requesters: [ShareParticipant]? = nil,
    blocked: [ShareParticipant]? = nil,
    denyAccessRequests: Bool? = nil
  ) async throws -> ShareDictionary {
    let owner = person ?? tree.owner
    let share = try await person == nil ? shareRecord() : seenByGuest()
    let operation = RecordOperation(
      operationType: .update,
      record: RecordDictionary(
        recordName: "share",
        recordType: ShareDictionary.recordType,
        recordChangeTag: share.recordChangeTag,
        sharing: ShareDictionary(
          participants: participants,
          requesters: requesters,
          blocked: blocked,
          denyAccessRequests: denyAccessRequests
        )
      )
    )
    let saved = try await owner.modify(
      [operation],
      in: person == nil ? .private : .shared,
      zone: person == nil ? TestServer.zone : tree.zone
    )
    return try #require(try saved[0].get().sharing)
  }

  func shareRecord() async throws -> RecordDictionary { try await tree.owner.lookup("share") }

  func share() async throws -> ShareDictionary { try #require(try await shareRecord().sharing) }

  func seenByGuest() async throws -> RecordDictionary {
    try await tree.guest.lookup("share", in: .shared, zone: tree.zone)
  }

  func requesters() async throws -> [String] {
    try await share().requesters?.compactMap { $0.userIdentity?.lookupInfo?.emailAddress } ?? []
  }
}

extension Person {
  /// The unchanged reply to a request for a share.
  fileprivate func ask(
    _ guid: String,
    in scope: DatabaseScope = .public
  ) async throws -> WebServiceResponse {
    let request = ShortGUIDsRequest(shortGUIDs: [ShortGUID(value: guid)])
    return await send(.requestAccess, try WireCoding.encode(request), in: scope)
  }
}

@Suite("Access requests for shares", .everyEngine)
struct AccessRequestTests {
  @Test("By default a share accepts no requests")
  func closed() async throws {
    let world = try await RequestableShare(opens: false)
    #expect(try await world.share().denyAccessRequests == true)
    #expect(try await world.asker.ask(world.guid).status == 200)
    #expect(try await world.share().requesters == [])
  }

  @Test("An unverified address of a requester is not shown to the owner")
  func typedAddress() async throws {
    let world = try await RequestableShare()
    let server = world.tree.server
    let path = AccountService.signUpPath(invitation: try await server.service.accounts.invite())
    let form = Data("user=mallory&email=late@example.com&password=long+enough".utf8)
    #expect(await server.send("POST", path, body: form).status == 200)
    let mallory = try await server.person("mallory")
    #expect(try await mallory.ask(world.guid).status == 200)
    let asker = try #require(try await world.share().requesters?.first)
    #expect(asker.userIdentity?.userRecordName == (try await mallory.userRecordName))
    #expect(try await world.requesters() == [])
  }

  @Test("The owner finds each requester once in the share, with a name and an address")
  func asking() async throws {
    let world = try await RequestableShare()
    let before = try await world.tree.owner.changes()
    #expect(try await world.asker.ask(world.guid).status == 200)
    #expect(try await world.asker.ask(world.guid).status == 200)
    let changes = try await world.tree.owner.changes(since: before.syncToken)
    #expect(changes.names == ["share"])
    let asker = try #require(try await world.share().requesters?.first)
    #expect(try await world.requesters() == ["dan@example.com"])
    #expect(asker.userIdentity?.userRecordName == (try await world.asker.userRecordName))
    #expect(asker.userIdentity?.nameComponents?.givenName == "Dan")
    // A participant who may not invite sees nothing of it.
    let seen = try await world.seenByGuest()
    #expect(seen.sharing?.requesters == nil)
    #expect(seen.sharing?.blocked == nil)
    #expect(seen.modified == before.records.compactMap(\.item).last?.modified)
    #expect(
      !String(decoding: try WireCoding.encode(seen), as: UTF8.self)
        .contains(try await world.asker.userRecordName)
    )
  }

  @Test("A person with as many shares as one may join makes no further request")
  func full() async throws {
    let world = try await RequestableShare { $0.joinedSharesPerUser = 1 }
    let tree = world.tree
    try await tree.owner.save(.create, "open")
    let other = try await tree.owner.share("open", "public", publicPermission: .readWrite)
    try await world.asker.accept(other)
    #expect(try await world.asker.ask(world.guid).status == 200)
    #expect(try await world.requesters() == [])
  }

  @Test("The reply is the same whether the share exists, accepts requests, or has blocked the user")
  func silence() async throws {
    let world = try await RequestableShare()
    func answer(_ person: Person, _ guid: String) async throws -> String {
      let reply = try await person.ask(guid)
      #expect(reply.status == 200)
      return String(decoding: reply.body, as: UTF8.self).replacing(guid, with: "guid")
    }
    let answered = try await answer(world.asker, world.guid)
    #expect(answered == #"{"results":[{"shortGUID":{"value":"guid"}}]}"#)
    #expect(try await answer(world.asker, "0nothing") == answered)
    #expect(try await answer(world.tree.guest, world.guid) == answered)
    #expect(try await answer(world.tree.owner, world.guid) == answered)
    try await world.answer(blocked: try await world.share().requesters)
    #expect(try await answer(world.asker, world.guid) == answered)
    try await world.answer(denyAccessRequests: true)
    #expect(try await answer(world.tree.server.person("eve"), world.guid) == answered)
    #expect(try await world.share().requesters == [])
    // The link still cannot be resolved.
    await #expect(throws: ErrorDictionary.self) { try await world.asker.resolve(world.guid) }
  }

  @Test("An accepted requester resolves the share, and is marked as one")
  func letIn() async throws {
    let world = try await RequestableShare()
    _ = try await world.asker.ask(world.guid)
    await #expect(throws: ErrorDictionary.self) { try await world.asker.resolve(world.guid) }
    let people = try #require(try await world.share().participants)
    let saved = try await world.answer(participants: people + [.invited("dan", .readOnly)])
    #expect(saved.requesters == [])
    #expect(saved.participants?.map(\.isApprovedRequester) == [nil, nil, true])
    let found = try await world.asker.resolve(world.guid)
    #expect(found.participantStatus == .invited)
    try await world.asker.accept(world.tree.share)
    #expect(
      try await world.asker.feed(world.tree.zone).names.sorted() == ["a", "b", "root", "share"]
    )
    #expect(try await world.share().participants?.map(\.isApprovedRequester) == [nil, nil, true])
  }

  @Test("A denied requester may request again")
  func denied() async throws {
    let world = try await RequestableShare()
    _ = try await world.asker.ask(world.guid)
    #expect(try await world.answer(requesters: []).requesters == [])
    await #expect(throws: ErrorDictionary.self) { try await world.asker.resolve(world.guid) }
    _ = try await world.asker.ask(world.guid)
    #expect(try await world.requesters() == ["dan@example.com"])
  }

  @Test("Requests of a blocked user are ignored until they are unblocked")
  func blocked() async throws {
    let world = try await RequestableShare()
    _ = try await world.asker.ask(world.guid)
    let asked = try #require(try await world.share().requesters)
    let saved = try await world.answer(requesters: [], blocked: asked)
    #expect(saved.requesters == [])
    #expect(saved.blocked?.map { $0.userIdentity?.lookupInfo?.emailAddress } == ["dan@example.com"])
    _ = try await world.asker.ask(world.guid)
    #expect(try await world.requesters().isEmpty)
    #expect(try await world.answer(blocked: []).blocked == [])
    _ = try await world.asker.ask(world.guid)
    #expect(try await world.requesters() == ["dan@example.com"])
  }

  @Test("Blocking a participant removes them; other users cannot be blocked in advance")
  func blockedParticipant() async throws {
    let world = try await RequestableShare()
    let people = try #require(try await world.share().participants)
    let guest = try #require(people.first { $0.type == .user })
    let owner = try #require(people.first { $0.type == .owner })
    let stranger = ShareParticipant(
      userIdentity: UserIdentity(userRecordName: try await world.asker.userRecordName)
    )
    let saved = try await world.answer(blocked: [guest, owner, stranger])
    #expect(saved.participants?.map(\.type) == [.owner])
    #expect(
      saved.blocked?.map { $0.userIdentity?.userRecordName } == [
        try await world.tree.guest.userRecordName
      ]
    )
    await #expect(throws: ErrorDictionary.self) { try await world.tree.guest.feed(world.tree.zone) }
    _ = try await world.tree.guest.ask(world.guid)
    #expect(try await world.requesters().isEmpty)
  }

  @Test("Only users who may invite can answer requests")
  func strangersAnswer() async throws {
    let world = try await RequestableShare()
    _ = try await world.asker.ask(world.guid)
    let denied = await #expect(throws: ErrorDictionary.self) {
      try await world.answer(by: world.tree.guest, requesters: [])
    }
    #expect(denied?.serverErrorCode == .accessDenied)
    #expect(try await world.requesters() == ["dan@example.com"])
  }

  @Test("Only signed-in users can request access, and in the public database")
  func who() async throws {
    let world = try await RequestableShare()
    #expect(try await world.tree.server.visitor.ask(world.guid).status == 421)
    #expect(try await world.asker.ask(world.guid, in: .private).status == 400)
    #expect(try await world.requesters().isEmpty)
  }

  @Test(
    "A share accepts a limited number of requests, one below, at and one above",
    arguments: [1, 2, 3]
  )
  func limit(count: Int) async throws {
    let world = try await RequestableShare(limits: { $0.requestersPerShare = 2 })
    for number in 0..<count {
      #expect(try await world.tree.server.person("p\(number)").ask(world.guid).status == 200)
    }
    #expect(try await world.requesters().count == min(count, 2))
  }

  @Test("A public share needs no requests, and joining by the link removes a request")
  func open() async throws {
    let world = try await RequestableShare()
    _ = try await world.asker.ask(world.guid)
    try await world.tree.owner.updateShare(
      try await world.shareRecord(),
      publicPermission: .readOnly
    )
    try await world.asker.accept(world.tree.share)
    #expect(try await world.requesters().isEmpty)
    _ = try await world.tree.server.person("eve").ask(world.guid)
    #expect(try await world.requesters().isEmpty)
  }

  @Test("A purged account leaves no request, and a share that ends removes all")
  func forgotten() async throws {
    let world = try await RequestableShare()
    _ = try await world.asker.ask(world.guid)
    _ = try await world.tree.server.person("eve").ask(world.guid)
    try await world.answer(
      blocked: try await world.share().requesters?.filter {
        $0.userIdentity?.lookupInfo?.emailAddress == "eve@example.com"
      }
    )
    try await world.tree.server.service.accounts.delete("dan", purgesNow: true)
    try await world.tree.server.service.accounts.delete("eve", purgesNow: true)
    #expect(try await world.share().requesters == [])
    #expect(try await world.share().blocked == [])
    try await world.tree.owner.save(.forceDelete, "share", recordType: nil)
    let again = try await world.tree.owner.share("root")
    #expect(again.sharing?.denyAccessRequests == true)
  }
}
