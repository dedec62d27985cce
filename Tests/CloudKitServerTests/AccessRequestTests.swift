import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// A share that accepts requests, its owner, a participant and a user who only has the link.
private struct OpenDoor {
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
    let door = try await OpenDoor(opens: false)
    #expect(try await door.share().denyAccessRequests == true)
    #expect(try await door.asker.ask(door.guid).status == 200)
    #expect(try await door.share().requesters == [])
  }

  @Test("An unverified address of a requester is not shown to the owner")
  func typedAddress() async throws {
    let door = try await OpenDoor()
    let server = door.tree.server
    let path = CloudKitService.signUpPath(invitation: try await server.service.invite())
    let form = Data("user=mallory&email=late@example.com&password=long+enough".utf8)
    #expect(await server.send("POST", path, body: form).status == 200)
    let mallory = try await server.person("mallory")
    #expect(try await mallory.ask(door.guid).status == 200)
    let asker = try #require(try await door.share().requesters?.first)
    #expect(asker.userIdentity?.userRecordName == (try await mallory.userRecordName))
    #expect(try await door.requesters() == [])
  }

  @Test("The owner finds each requester once in the share, with a name and an address")
  func asking() async throws {
    let door = try await OpenDoor()
    let before = try await door.tree.owner.changes()
    #expect(try await door.asker.ask(door.guid).status == 200)
    #expect(try await door.asker.ask(door.guid).status == 200)
    let changes = try await door.tree.owner.changes(since: before.syncToken)
    #expect(changes.names == ["share"])
    let asker = try #require(try await door.share().requesters?.first)
    #expect(try await door.requesters() == ["dan@example.com"])
    #expect(asker.userIdentity?.userRecordName == (try await door.asker.userRecordName))
    #expect(asker.userIdentity?.nameComponents?.givenName == "Dan")
    // A participant who may not invite sees nothing of it.
    let seen = try await door.seenByGuest()
    #expect(seen.sharing?.requesters == nil)
    #expect(seen.sharing?.blocked == nil)
    #expect(seen.modified == before.records.compactMap(\.item).last?.modified)
    #expect(
      !String(decoding: try WireCoding.encode(seen), as: UTF8.self)
        .contains(try await door.asker.userRecordName)
    )
  }

  @Test("The reply is the same whether the share exists, accepts requests, or has blocked the user")
  func silence() async throws {
    let door = try await OpenDoor()
    func answer(_ person: Person, _ guid: String) async throws -> String {
      let reply = try await person.ask(guid)
      #expect(reply.status == 200)
      return String(decoding: reply.body, as: UTF8.self).replacing(guid, with: "guid")
    }
    let heard = try await answer(door.asker, door.guid)
    #expect(heard == #"{"results":[{"shortGUID":{"value":"guid"}}]}"#)
    #expect(try await answer(door.asker, "0nothing") == heard)
    #expect(try await answer(door.tree.guest, door.guid) == heard)
    #expect(try await answer(door.tree.owner, door.guid) == heard)
    try await door.answer(blocked: try await door.share().requesters)
    #expect(try await answer(door.asker, door.guid) == heard)
    try await door.answer(denyAccessRequests: true)
    #expect(try await answer(door.tree.server.person("eve"), door.guid) == heard)
    #expect(try await door.share().requesters == [])
    // The link still cannot be resolved.
    await #expect(throws: ErrorDictionary.self) { try await door.asker.resolve(door.guid) }
  }

  @Test("An accepted requester resolves the share, and is marked as one")
  func letIn() async throws {
    let door = try await OpenDoor()
    _ = try await door.asker.ask(door.guid)
    await #expect(throws: ErrorDictionary.self) { try await door.asker.resolve(door.guid) }
    let people = try #require(try await door.share().participants)
    let saved = try await door.answer(participants: people + [.invited("dan", .readOnly)])
    #expect(saved.requesters == [])
    #expect(saved.participants?.map(\.isApprovedRequester) == [nil, nil, true])
    let found = try await door.asker.resolve(door.guid)
    #expect(found.participantStatus == .invited)
    try await door.asker.accept(door.tree.share)
    #expect(
      try await door.asker.feed(door.tree.zone).names.sorted() == ["a", "b", "root", "share"]
    )
    #expect(try await door.share().participants?.map(\.isApprovedRequester) == [nil, nil, true])
  }

  @Test("A denied requester may request again")
  func denied() async throws {
    let door = try await OpenDoor()
    _ = try await door.asker.ask(door.guid)
    #expect(try await door.answer(requesters: []).requesters == [])
    await #expect(throws: ErrorDictionary.self) { try await door.asker.resolve(door.guid) }
    _ = try await door.asker.ask(door.guid)
    #expect(try await door.requesters() == ["dan@example.com"])
  }

  @Test("Requests of a blocked user are ignored until they are unblocked")
  func blocked() async throws {
    let door = try await OpenDoor()
    _ = try await door.asker.ask(door.guid)
    let asked = try #require(try await door.share().requesters)
    let saved = try await door.answer(requesters: [], blocked: asked)
    #expect(saved.requesters == [])
    #expect(saved.blocked?.map { $0.userIdentity?.lookupInfo?.emailAddress } == ["dan@example.com"])
    _ = try await door.asker.ask(door.guid)
    #expect(try await door.requesters().isEmpty)
    #expect(try await door.answer(blocked: []).blocked == [])
    _ = try await door.asker.ask(door.guid)
    #expect(try await door.requesters() == ["dan@example.com"])
  }

  @Test("Blocking a participant removes them; other users cannot be blocked in advance")
  func blockedParticipant() async throws {
    let door = try await OpenDoor()
    let people = try #require(try await door.share().participants)
    let guest = try #require(people.first { $0.type == .user })
    let owner = try #require(people.first { $0.type == .owner })
    let stranger = ShareParticipant(
      userIdentity: UserIdentity(userRecordName: try await door.asker.userRecordName)
    )
    let saved = try await door.answer(blocked: [guest, owner, stranger])
    #expect(saved.participants?.map(\.type) == [.owner])
    #expect(
      saved.blocked?.map { $0.userIdentity?.userRecordName } == [
        try await door.tree.guest.userRecordName
      ]
    )
    await #expect(throws: ErrorDictionary.self) { try await door.tree.guest.feed(door.tree.zone) }
    _ = try await door.tree.guest.ask(door.guid)
    #expect(try await door.requesters().isEmpty)
  }

  @Test("Only users who may invite can answer requests")
  func strangersAnswer() async throws {
    let door = try await OpenDoor()
    _ = try await door.asker.ask(door.guid)
    let denied = await #expect(throws: ErrorDictionary.self) {
      try await door.answer(by: door.tree.guest, requesters: [])
    }
    #expect(denied?.serverErrorCode == .accessDenied)
    #expect(try await door.requesters() == ["dan@example.com"])
  }

  @Test("Only signed-in users can request access, and in the public database")
  func who() async throws {
    let door = try await OpenDoor()
    #expect(try await door.tree.server.visitor.ask(door.guid).status == 421)
    #expect(try await door.asker.ask(door.guid, in: .private).status == 400)
    #expect(try await door.requesters().isEmpty)
  }

  @Test(
    "A share accepts a limited number of requests, one below, at and one above",
    arguments: [1, 2, 3]
  )
  func limit(count: Int) async throws {
    let door = try await OpenDoor(limits: { $0.requestersPerShare = 2 })
    for number in 0..<count {
      #expect(try await door.tree.server.person("p\(number)").ask(door.guid).status == 200)
    }
    #expect(try await door.requesters().count == min(count, 2))
  }

  @Test("A public share needs no requests, and joining by the link removes a request")
  func open() async throws {
    let door = try await OpenDoor()
    _ = try await door.asker.ask(door.guid)
    try await door.tree.owner.updateShare(
      try await door.shareRecord(),
      publicPermission: .readOnly
    )
    try await door.asker.accept(door.tree.share)
    #expect(try await door.requesters().isEmpty)
    _ = try await door.tree.server.person("eve").ask(door.guid)
    #expect(try await door.requesters().isEmpty)
  }

  @Test("A purged account leaves no request, and a share that ends removes all")
  func forgotten() async throws {
    let door = try await OpenDoor()
    _ = try await door.asker.ask(door.guid)
    _ = try await door.tree.server.person("eve").ask(door.guid)
    try await door.answer(
      blocked: try await door.share().requesters?.filter {
        $0.userIdentity?.lookupInfo?.emailAddress == "eve@example.com"
      }
    )
    try await door.tree.server.service.deleteAccount("dan", purgesNow: true)
    try await door.tree.server.service.deleteAccount("eve", purgesNow: true)
    #expect(try await door.share().requesters == [])
    #expect(try await door.share().blocked == [])
    try await door.tree.owner.save(.forceDelete, "share", recordType: nil)
    let again = try await door.tree.owner.share("root")
    #expect(again.sharing?.denyAccessRequests == true)
  }
}
