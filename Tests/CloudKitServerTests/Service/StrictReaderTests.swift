import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Requirements of the strictest clients in use: no unknown key in a reply, and no expected one
/// missing.
@Suite("Strict clients", .everyEngine)
struct StrictReaderTests {
  private func json(_ response: WebServiceResponse) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: response.body) as? [String: Any])
  }

  private func keys(_ value: Any?) throws -> Set<String> {
    Set(try #require(value as? [String: Any]).keys)
  }

  // MARK: Errors

  @Test("An item's error has the item's key, and a zone's full ID")
  func errorKeys() async throws {
    let person = try await TestServer().person()
    let me = try await person.userRecordName
    let missing = #""zoneID":{"zoneName":"nowhere"}"#
    for (endpoint, body) in [
      (Endpoint.lookupRecords, #"{"records":[{"recordName":"a"}],\#(missing)}"#),
      (
        .modifyRecords,
        """
        {"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}],\
        \(missing)}
        """
      ),
    ] {
      let error = try await person.items(endpoint, body, key: "records")[0]
      #expect(Set(error.keys) == ["recordName", "reason", "serverErrorCode"])
      #expect(error["serverErrorCode"] as? String == "ZONE_NOT_FOUND")
    }
    for (endpoint, body) in [
      (Endpoint.lookupZones, #"{"zones":[{"zoneName":"nowhere"}]}"#),
      (.zoneChanges, #"{"zones":[{\#(missing)}]}"#),
      (
        .modifyZones,
        #"{"operations":[{"operationType":"delete","zone":{\#(missing)}}]}"#
      ),
    ] {
      let error = try await person.items(endpoint, body, key: "zones")[0]
      #expect(Set(error.keys) == ["zoneID", "reason", "serverErrorCode"])
      let zone = try #require(error["zoneID"] as? [String: String])
      #expect(
        zone == [
          "zoneName": "nowhere", "ownerRecordName": me, "zoneType": "REGULAR_CUSTOM_ZONE",
        ]
      )
    }
  }

  @Test("A subscription's error has the subscription's key; its ID has 1 to 255 bytes")
  func subscriptionErrors() async throws {
    let person = try await TestServer().person()
    func made(_ id: String, _ rest: String) async throws -> [String: Any] {
      try await person.items(
        .modifySubscriptions,
        """
        {"operations":[{"operationType":"create","subscription":{"subscriptionID":"\(id)",\
        \(rest)}}]}
        """,
        key: "subscriptions"
      )[0]
    }
    let lost = try await made("s", #""subscriptionType":"zone","zoneID":{"zoneName":"nowhere"}"#)
    #expect(Set(lost.keys) == ["subscriptionID", "reason", "serverErrorCode"])
    #expect(lost["serverErrorCode"] as? String == "ZONE_NOT_FOUND")
    let long = String(repeating: "s", count: 255)
    for (id, isRight) in [("", false), (long, true), (long + "s", false)] {
      let item = try await made(id, #""subscriptionType":"database""#)
      #expect(item["subscriptionID"] as? String == id)
      #expect((item["serverErrorCode"] == nil) == isRight)
    }
  }

  @Test("A device's name that is too long is not stored")
  func longDevice() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for (length, isKept) in [(255, true), (256, false)] {
      let device = String(repeating: "d", count: length)
      let record = try await person.on(device).save(.create, "r\(length)")
      #expect(record.created?.deviceID == (isKept ? device : "1"))
    }
  }

  @Test("An upload for a missing zone is refused")
  func uploadNowhere() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for (zone, status) in [("notes", 200), ("_defaultZone", 200), ("nowhere", 404)] {
      let body = """
        {"tokens":[{"recordType":"Note","fieldName":"file"}],"zoneID":{"zoneName":"\(zone)"}}
        """
      let response = await person.send(.uploadAssets, Data(body.utf8))
      #expect(response.status == status)
    }
  }

  @Test("An error of resolve or accept names its share")
  func unresolvedShares() async throws {
    let person = try await TestServer().person()
    for endpoint in [Endpoint.resolveShares, .acceptShares] {
      let results = try await person.items(
        endpoint,
        #"{"shortGUIDs":["0one",{"value":"0two","shouldFetchRootRecord":true}]}"#,
        in: .public,
        key: "results"
      )
      #expect(
        results.map { ($0["shortGUID"] as? [String: Any])?["value"] as? String } == [
          "0one", "0two",
        ]
      )
      for result in results {
        #expect(Set(result.keys) == ["shortGUID", "reason", "serverErrorCode"])
      }
    }
  }

  // MARK: Zones

  @Test("A zone has its capabilities to be shared as a whole and by record")
  func eligibility() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    let guest = try await server.person("bob")
    try await owner.makeZone()
    func eligible(_ person: Person, _ scope: DatabaseScope) async throws -> [String: [Bool]] {
      let zones = try await person.items(.listZones, "{}", in: scope, key: "zones")
      return try zones.reduce(into: [:]) { all, zone in
        let id = try #require(zone["zoneID"] as? [String: String])
        let flags = ["isEligibleForZoneShare", "isEligibleForHierarchicalShare"]
        all[id["zoneName"] ?? ""] = try flags.map { try #require(zone[$0] as? Bool) }
      }
    }
    #expect(
      try await eligible(owner, .private) == [
        "_defaultZone": [false, false], "notes": [true, true],
      ]
    )
    try await guest.accept(owner.share(nil, with: [.invited("bob")]))
    #expect(try await eligible(owner, .private)["notes"] == [true, false])
    #expect(try await eligible(guest, .shared)["notes"] == [false, false])
    #expect(try await eligible(guest, .public) == ["_defaultZone": [false, false]])
    // A feed has only the names of zones.
    let changed = try await owner.items(.databaseChanges, "{}", key: "zones")
    #expect(try keys(changed[0]) == ["zoneID", "deleted"])
  }

  // MARK: References

  @Test("A reference is returned with its zone's owner, also if it was sent without one")
  func references() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    let guest = try await server.person("bob")
    try await owner.makeZone()
    let me = try await owner.userRecordName
    let spelt = [
      "", #","zoneID":{"zoneName":"notes"}"#,
      #","zoneID":{"zoneName":"notes","ownerRecordName":"__defaultOwner__"}"#,
      #","zoneID":{"zoneName":"notes","ownerRecordName":"\#(me)"}"#,
    ]
    let reference = spelt.map { #"{"recordName":"a","action":"NONE"\#($0)}"# }
    let fields =
      reference.enumerated().map { #""r\#($0)":{"value":\#($1)}"# }
      + [#""all":{"value":[\#(reference.joined(separator: ","))]}"#, #""n":{"value":1}"#]
    _ = try await owner.items(
      .modifyRecords,
      """
      {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create","record":\
      {"recordName":"a","recordType":"Note","fields":{\(fields.joined(separator: ","))}}}]}
      """,
      key: "records"
    )
    try await guest.accept(owner.share(nil, with: [.invited("bob")]))
    let zone = #"{"zoneName":"notes","ownerRecordName":"\#(me)"}"#
    let lookup = #"{"records":[{"recordName":"a"}],"zoneID":\#(zone)}"#
    for (reader, scope) in [(owner, DatabaseScope.private), (guest, .shared)] {
      let record = try await reader.items(.lookupRecords, lookup, in: scope, key: "records")[0]
      let fields = try #require(record["fields"] as? [String: [String: Any]])
      #expect(fields.count == 6)
      let single = fields.filter { $0.key.hasPrefix("r") }.compactMap { $0.value["value"] }
      let several = try #require(fields["all"]?["value"] as? [Any])
      #expect(single.count == 4 && several.count == 4)
      for value in single + several {
        let value = try #require(value as? [String: Any])
        #expect(value["recordName"] as? String == "a")
        #expect(
          value["zoneID"] as? [String: String] == [
            "zoneName": "notes", "ownerRecordName": me, "zoneType": "REGULAR_CUSTOM_ZONE",
          ]
        )
      }
      #expect(fields["n"]?["value"] as? Int == 1)
    }
    // Our own clients do not need it, which makes a feed of many references shorter.
    let extended = try await owner.extended.items(.lookupRecords, lookup, key: "records")[0]
    let field = (extended["fields"] as? [String: [String: Any]])?["r3"]
    #expect(try keys(field?["value"]) == ["action", "recordName"])
  }

  @Test("A reference to another owner's zone of the same name is refused")
  func foreignReference() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    let other = try await server.person("bob").userRecordName
    try await owner.makeZone()
    let reference = ReferenceValue(
      recordName: "a",
      zoneID: ZoneID(zoneName: "notes", ownerRecordName: other),
      action: ReferenceAction.none
    )
    let results = try await owner.modify([.make(.create, "a", ["r": .reference(reference)])])
    #expect(results[0].error?.serverErrorCode == .badRequest)
  }

  // MARK: Users

  @Test("Users in a share have their known keys; those in users/* have all")
  func identities() async throws {
    let server = try await TestServer()
    let owner = try await server.person()
    let bob = try await server.person("bob").userRecordName
    try await owner.makeZone()
    try await owner.save(.create, "root")
    try await owner.share(
      "root",
      with: [
        ShareParticipant(
          type: .user,
          permission: .readOnly,
          userIdentity: UserIdentity(lookupInfo: LookupInfo(userRecordName: bob))
        ), .invited("nobody"),
      ]
    )
    let share = try await owner.items(
      .lookupRecords,
      #"{"records":[{"recordName":"share"}],"zoneID":{"zoneName":"notes"}}"#,
      key: "records"
    )[0]
    let participants = try #require(share["participants"] as? [[String: Any]])
    let people = try participants.map { try #require($0["userIdentity"] as? [String: Any]) }
    #expect(people.count == 3)
    #expect(Set(people[0].keys) == ["userRecordName", "nameComponents", "lookupInfo"])
    #expect(try keys(people[0]["nameComponents"]) == ["givenName", "familyName"])
    #expect(try keys(people[0]["lookupInfo"]) == ["emailAddress"])
    #expect(people[1]["userRecordName"] as? String == bob)
    #expect(try keys(people[1]["lookupInfo"]).isEmpty)
    #expect(Set(people[2].keys) == ["lookupInfo"])
    for key in ["owner", "currentUserParticipant"] {
      let identity = (share[key] as? [String: Any])?["userIdentity"]
      #expect(try keys(identity) == Set(people[0].keys))
    }

    let caller = try json(await owner.send(.caller, Data(), in: .public, method: "GET"))
    let found = try await owner.items(
      .discoverUsers,
      #"{"lookupInfos":[{"emailAddress":"bob@example.com"}]}"#,
      in: .public,
      key: "users"
    )
    for identity in [caller] + found {
      #expect(
        try keys(identity["lookupInfo"]) == ["emailAddress", "phoneNumber", "userRecordName"]
      )
    }
  }

  // MARK: Requests

  @Test("`null` as a field removes it, and texts for Booleans and numbers are INT64")
  func oddFields() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "a", ["title": .string("x"), "n": .int64(1)])
    let fields =
      #"{"title":null,"b":{"value":true,"type":"BOOLEAN"},"c":{"value":7,"type":"NUMBER_INT64"}}"#
    _ = try await person.items(
      .modifyRecords,
      """
      {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"forceUpdate",\
      "record":{"recordType":"Note","recordName":"a","fields":\(fields)}}]}
      """,
      key: "records"
    )
    let record = try await person.lookup("a")
    #expect(record.fields?.keys.sorted() == ["b", "c", "n"])
    #expect(record.content("b") == .int64(1))
    #expect(record.content("c") == .int64(7))
  }

  @Test("An address is found regardless of the case of its ASCII letters, and of no others")
  func addresses() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    // The last begins with the Kelvin sign.
    let accounts = [("kim", "kim"), ("anne", "Änne"), ("other", "\u{212A}im")]
    for (name, address) in accounts {
      try await server.service.createAccount(
        userName: name,
        password: "secret",
        emailAddress: "\(address)@Example.org"
      )
      _ = try await server.service.signIn(userName: name, container: TestServer.container)
    }
    for (asked, count) in [
      ("KIM@EXAMPLE.ORG", 1), ("Änne@example.org", 1), ("ÄNNE@example.org", 1),
      ("änne@example.org", 0), ("\u{212A}IM@example.org", 1),
    ] {
      let body = #"{"users":[{"emailAddress":"\#(asked)"}]}"#
      let found = try await person.items(.lookupUsersByEmail, body, in: .public, key: "users")
      #expect(found.count == count, "\(asked)")
    }
    let people: UsersResponse = try await person.call(
      .lookupUsersByEmail,
      LookupUsersRequest(
        users: [
          LookupInfo(emailAddress: "kim@example.org"),
          LookupInfo(emailAddress: "\u{212A}im@example.org"),
        ]
      ),
      in: .public
    )
    #expect(Set(people.users.compactMap { $0.item?.userRecordName }).count == 2)
  }

  // MARK: Invalid requests

  @Test("A user's own record cannot be deleted")
  func userRecord() async throws {
    let person = try await TestServer().person()
    let me = try await person.userRecordName
    let deletion = RecordOperation.make(.forceDelete, me, recordType: nil)
    let item = try await person.modify([deletion], in: .public, zone: nil)[0]
    #expect(item.error?.serverErrorCode == .accessDenied)
    #expect(try await person.lookup(me, in: .public, zone: .defaultZone).recordType == "Users")
  }

  @Test("An escaped slash is no separator", arguments: ["records%2Fquery", "users%2fcaller"])
  func escapedSlash(verb: String) async throws {
    let person = try await TestServer().person()
    let path = person.path(.caller, .public).replacing("users/caller", with: verb)
    let response = await person.server.send("POST", path, body: Data("{}".utf8))
    #expect(response.status == 404)
  }

  @Test("A poll is a GET, and no other request consumes a notification")
  func pollMethod() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let listener = try await Listener(person.on("listener"))
    _ = try await person.items(
      .modifySubscriptions,
      #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","subscriptionType":"database"}}]}"#,
      key: "subscriptions"
    )
    try await person.on("other").save(.create, "a")
    for method in ["POST", "HEAD", "PUT"] {
      let path = String(listener.device.webcourierURL.dropFirst("http://127.0.0.1:8080".count))
      #expect(await person.server.send(method, path).status == 400)
    }
    #expect(try await listener.next()?.ck?.met?.sid == "s")
  }

  @Test("Unknown words in a list are named with their positions")
  func unknownWords() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for (endpoint, body, reason) in [
      (
        Endpoint.modifyZones,
        #"{"operations":[{"operationType":"rename","zone":{"zoneID":{"zoneName":"a"}}}]}"#,
        "operations[0].operationType: Unknown value 'rename'"
      ),
      (.createToken, #"{"apnsEnvironment":"staging"}"#, "invalid value for 'apnsEnvironment'"),
      (
        .zoneChanges, #"{"zones":[],"resultsLimit":1.5}"#,
        "A number is too large, or has a fraction where only whole numbers can be"
      ),
      (.databaseChanges, #"{"resultsLimit":-1}"#, "resultsLimit must not be negative"),
    ] {
      let response = await person.send(endpoint, Data(body.utf8))
      #expect(response.status == 400)
      #expect(try json(response)["reason"] as? String == reason)
    }
  }

  @Test("A compressed body is refused with the name of its encoding")
  func contentEncoding() async throws {
    let person = try await TestServer().person()
    for (coding, status) in [("gzip", 400), ("identity", 200)] {
      let response = await person.server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: person.path(.listZones, .private),
          headers: ["content-encoding": coding],
          body: Data("{}".utf8)
        )
      )
      #expect(response.status == status)
    }
  }
}
