import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Requests and expectations of third-party clients beyond the documentation.
@Suite("Third-party clients", .everyEngine)
struct OtherClientsTests {
  private func person() async throws -> Person {
    let person = try await TestServer().person()
    try await person.makeZone()
    return person
  }

  // MARK: Requests

  @Test("Booleans may be the numbers 0 and 1, and no others", arguments: ["1", "true"])
  func flags(flag: String) async throws {
    let person = try await person()
    let record = try #require(
      try await person.items(
        .modifyRecords,
        """
        {"zoneID":{"zoneName":"notes"},"atomic":\(flag),"operations":[{"operationType":"create",\
        "record":{"recordType":"Note","recordName":"a","createShortGUID":\(flag)}}]}
        """,
        key: "records"
      ).first
    )
    #expect(record["shortGUID"] is String)
    let refused = try await person.json(
      .modifyRecords,
      #"{"atomic":2,"operations":[]}"#
    )
    #expect(refused["serverErrorCode"] as? String == "BAD_REQUEST")
  }

  @Test("Fields and operands may be bare values, as apps of CloudKit JS write them")
  func bareValues() async throws {
    let person = try await person()
    let saved = try await person.items(
      .modifyRecords,
      """
      {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create","record":\
      {"recordType":"Bare","recordName":"a","created":{"user":"x"},"modified":{},"shortGUID":7,\
      "fields":{"n":3,"t":"x","l":["a","b"],"d":2.0}}}]}
      """,
      key: "records"
    )
    let fields = try #require(saved.first?["fields"] as? [String: [String: Any]], "\(saved)")
    #expect(fields["n"]?["type"] as? String == "INT64")
    #expect(fields["t"]?["value"] as? String == "x")
    #expect(fields["l"]?["type"] as? String == "STRING_LIST")
    // A number with a point is a floating-point number of the client.
    #expect(fields["d"]?["type"] as? String == "DOUBLE")
    let more = try await person.items(
      .modifyRecords,
      """
      {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"forceUpdate","record":\
      {"recordType":"Bare","recordName":"a","fields":{"d":{"value":2.5}}}}]}
      """,
      key: "records"
    )
    #expect(more.first?["serverErrorCode"] == nil, "\(more)")
  }

  @Test("A query names its zone in itself, or beside itself")
  func zoneOfQuery() async throws {
    let person = try await person()
    let server = person.server
    try await server.service.schemas.importSchema(
      #"DEFINE SCHEMA RECORD TYPE Item ("___recordID" REFERENCE QUERYABLE, n INT64 QUERYABLE, "#
        + #"GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");"#,
      container: TestServer.container
    )
    for (name, number) in [("a", Int64(3)), ("b", 3)] {
      try await person.save(.create, name, ["n": .int64(number)], recordType: "Item")
    }
    let filter = #""filterBy":[{"fieldName":"n","comparator":"EQUALS","fieldValue":3}]"#
    func names(_ query: String, _ rest: String = "") async throws -> ([String?], String?) {
      let body = #"{"query":{"recordType":"Item",\#(filter)\#(query)},"resultsLimit":1\#(rest)}"#
      let answer = try await person.json(.queryRecords, body)
      let records = try #require(answer["records"] as? [[String: Any]], "\(answer)")
      return (records.map { $0["recordName"] as? String }, answer["continuationMarker"] as? String)
    }
    let zone = #","zoneID":{"zoneName":"notes"}"#
    #expect(try await names("").0 == [])
    let first = try await names(zone)
    #expect(first.0 == ["a"])
    // The marker is of the zone, wherever the request names it.
    let marker = #","continuationMarker":"\#(try #require(first.1))""#
    #expect(try await names(zone, marker).0 == ["b"])
    #expect(try await names("", marker + zone).0 == ["b"])
    #expect(try await names(#","zoneID":{"zoneName":"_defaultZone"}"#, zone).0 == ["a"])
  }

  @Test("A share's whole link stands for its short ID")
  func wholeLink() async throws {
    let tree = try await SharedTree(accepts: false)
    let guid = try #require(tree.share.shortGUID)
    for link in [guid, "http://127.0.0.1:8080/share/\(guid)#Title", "https://h/share/\(guid)?x=1"] {
      #expect(try await tree.guest.resolve(link).shortGUID.value == guid)
    }
  }

  @Test("An empty dictionary as a field removes the field")
  func emptyField() async throws {
    let person = try await person()
    try await person.save(.create, "a", ["title": .string("x"), "n": .int64(1)])
    _ = try await person.items(
      .modifyRecords,
      """
      {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"forceUpdate",\
      "record":{"recordType":"Note","recordName":"a","fields":{"title":{}}}}]}
      """,
      key: "records"
    )
    #expect(try await person.lookup("a").fields?.keys.sorted() == ["n"])
  }

  @Test("The owner of one's own zone may be written in any documented form")
  func owners() async throws {
    let person = try await person()
    try await person.save(.create, "a", ["title": .string("x")])
    let me = try await person.userRecordName
    for owner in ["__defaultOwner__", "_defaultOwner", "", me] {
      let zone = ZoneID(zoneName: "notes", ownerRecordName: owner)
      #expect(try await person.lookup("a", zone: zone).recordName == "a")
      #expect(try await person.changes(zone: zone).names == ["a"])
    }
    await #expect(throws: ErrorDictionary.self) {
      try await person.lookup("a", zone: ZoneID(zoneName: "notes", ownerRecordName: "_other"))
    }
  }

  @Test("Subscriptions are looked up by dictionaries and by bare IDs")
  func subscriptionIDs() async throws {
    let person = try await person()
    _ = try await person.json(
      .modifySubscriptions,
      """
      {"operations":[{"operationType":"create","subscription":{"subscriptionID":"s",\
      "subscriptionType":"zone","zoneID":{"zoneName":"notes"}}}]}
      """
    )
    for entries in [#"["s","t"]"#, #"[{"subscriptionID":"s"},{"subscriptionID":"t"}]"#] {
      let found = try await person.items(
        .lookupSubscriptions,
        "{\"subscriptions\":\(entries)}",
        key: "subscriptions"
      )
      #expect(found.map { $0["subscriptionID"] as? String } == ["s", "t"])
      #expect(found[1]["serverErrorCode"] as? String == "NOT_FOUND")
      let zone = try #require(found[0]["zoneID"] as? [String: Any])
      #expect(zone["ownerRecordName"] as? String == (try await person.userRecordName))
    }
  }

  @Test("A zone subscription of all zones is a database subscription, and keeps its name")
  func zoneWideSubscription() async throws {
    let person = try await person()
    let made = try await person.items(
      .modifySubscriptions,
      """
      {"operations":[{"operationType":"create","subscription":{"subscriptionID":"all",\
      "subscriptionType":"zone","zoneWide":true}}]}
      """,
      key: "subscriptions"
    )
    #expect(made[0]["subscriptionType"] as? String == "zone")
    let listener = try await Listener(person.on("listener"))
    try await person.on("other").save(.create, "a")
    let heard = try #require(try await listener.next())
    #expect(heard.ck?.met?.sid == "all")
    #expect(heard.ck?.met?.dbs == 1)
  }

  @Test("People are discovered by either name of the list")
  func discovery() async throws {
    let person = try await person()
    let bob = try await person.server.person("bob")
    let name = try await bob.userRecordName
    for key in ["lookupInfos", "users"] {
      let found = try await person.items(
        .discoverUsers,
        "{\"\(key)\":[{\"emailAddress\":\"bob@example.com\"}]}",
        in: .public,
        key: "users"
      )
      #expect(found.map { $0["userRecordName"] as? String } == [name])
      #expect(found[0]["lookupInfo"] is [String: Any])
    }
  }

  @Test("`reverse` may be set for all zones, and overridden for a zone")
  func reverse() async throws {
    let person = try await person()
    for name in ["a", "b"] { try await person.save(.create, name) }
    for (options, names) in [("", ["b", "a"]), (#","reverse":false"#, ["a", "b"])] {
      let zones = try await person.items(
        .zoneChanges,
        #"{"zones":[{"zoneID":{"zoneName":"notes"}\#(options)}],"reverse":true}"#,
        key: "zones"
      )
      let records = try #require(zones[0]["records"] as? [[String: Any]])
      #expect(records.map { $0["recordName"] as? String } == names)
    }
  }

  @Test("A query subscription has its firesOn values, also in replies")
  func firesOn() async throws {
    let person = try await person()
    func made(_ rest: String) async throws -> [String: Any] {
      try await person.items(
        .modifySubscriptions,
        """
        {"operations":[{"operationType":"create","subscription":{"subscriptionID":"s",\
        "subscriptionType":"query","query":{"recordType":"Note"}\(rest)}}]}
        """,
        key: "subscriptions"
      )[0]
    }
    #expect(try await made(#","firesOn":["update"]"#)["firesOn"] as? [String] == ["update"])
    for wrong in ["", #","firesOn":[]"#, #","firesOn":["create","explode"]"#] {
      let refused = try await made(wrong)
      #expect(refused["serverErrorCode"] as? String == "BAD_REQUEST")
      #expect(refused["subscriptionID"] as? String == "s")
    }
  }

  @Test("A subscription to a missing zone is refused")
  func subscriptionToMissingZone() async throws {
    let person = try await person()
    for type in [#""zone""#, #""query","query":{"recordType":"Note"},"firesOn":["create"]"#] {
      let refused = try await person.items(
        .modifySubscriptions,
        """
        {"operations":[{"operationType":"create","subscription":{"subscriptionID":"s",\
        "subscriptionType":\(type),"zoneID":{"zoneName":"elsewhere"}}}]}
        """,
        key: "subscriptions"
      )
      #expect(refused[0]["serverErrorCode"] as? String == "ZONE_NOT_FOUND")
      #expect(refused[0]["subscriptionID"] as? String == "s")
    }
  }

  @Test(
    "A location must be valid on earth",
    arguments: [(90.0, 180.0, true), (-90, -180, true), (90.1, 0, false), (0, -180.1, false)]
  )
  func places(latitude: Double, longitude: Double, isRight: Bool) async throws {
    let person = try await person()
    let place = LocationValue(latitude: latitude, longitude: longitude)
    for content in [FieldContent.location(place), .locationList([place])] {
      let name = content.type == .location ? "place" : "places"
      let item = try await person.modify([.make(.create, name, [name: content])])[0]
      #expect(item.error?.serverErrorCode == (isRight ? nil : .badRequest))
    }
  }

  @Test("A list with elements of different types is refused as such, and an empty one as empty")
  func mixedList() async throws {
    let person = try await person()
    for (list, word) in [(#"[1,"a"]"#, "differ"), ("[]", "empty list")] {
      let records = try await person.items(
        .modifyRecords,
        """
        {"zoneID":{"zoneName":"notes"},"operations":[{"operationType":"create",\
        "record":{"recordType":"Note","fields":{"list":{"value":\(list)}}}}]}
        """,
        key: "records"
      )
      #expect((records[0]["reason"] as? String)?.contains(word) == true)
    }
  }

  // MARK: Replies

  @Test("A zone's ID has an owner in the public database too")
  func publicOwner() async throws {
    let person = try await person()
    let record = try await person.save(.create, "a", in: .public, zone: nil)
    let zone = ZoneID(
      zoneName: "_defaultZone",
      ownerRecordName: "_defaultOwner",
      zoneType: "DEFAULT_ZONE"
    )
    #expect(record.zoneID == zone)
    #expect(try await person.lookup("a", in: .public, zone: zone).zoneID == zone)
  }

  @Test("A record has its plug-in fields, unless our own client reads it")
  func pluginFields() async throws {
    let person = try await person()
    try await person.save(.create, "a", ["title": .string("x")])
    for (reader, isThere) in [(person, true), (person.extended, false)] {
      for keys in ["", #","desiredKeys":[]"#] {
        let records = try await reader.items(
          .lookupRecords,
          #"{"records":[{"recordName":"a"}],"zoneID":{"zoneName":"notes"}\#(keys)}"#,
          key: "records"
        )
        #expect((records[0]["pluginFields"] as? [String: Any])?.isEmpty == (isThere ? true : nil))
      }
    }
  }

  @Test("A share has every documented key; requesters are only shown to those who invite")
  func shareKeys() async throws {
    let person = try await person()
    try await person.save(.create, "root")
    let share = try await person.share("root", publicPermission: .readOnly)
    let guest = try await person.server.person("guest")
    try await guest.accept(share)
    let zone = try await TestServer.zone.owned(by: person)
    let common: Set<String> = [
      "recordName", "recordType", "recordChangeTag", "created", "modified", "deleted", "fields",
      "pluginFields", "zoneID", "shortGUID", "publicPermission", "participants", "owner",
      "currentUserParticipant", "denyAccessRequests", "stableUrl", "displayedHostname",
    ]
    for (reader, scope) in [(person, DatabaseScope.private), (guest, .shared)] {
      let body = """
        {"records":[{"recordName":"share"}],"zoneID":{"zoneName":"notes",\
        "ownerRecordName":"\(zone.ownerRecordName ?? "")"}}
        """
      let record = try await reader.items(.lookupRecords, body, in: scope, key: "records")[0]
      let isOwner = scope == .private
      #expect(Set(record.keys) == common.union(isOwner ? ["requesters", "blocked"] : []))
      #expect((record["requesters"] as? [Any])?.isEmpty == (isOwner ? true : nil))
    }
  }

  @Test("Tokens and markers are complete base64 of the standard alphabet")
  func tokens() async throws {
    let person = try await person()
    for name in ["a", "b"] { try await person.save(.create, name, ["n": .int64(1)]) }
    let page = try await person.query(
      RecordQuery(
        recordType: "Note",
        filterBy: [QueryFilter(comparator: .equals, fieldName: "n", fieldValue: .init(.int64(1)))]
      ),
      limit: 1
    )
    let zones: ZonesResponse = try await person.call(.listZones, [String: String]())
    let tokens =
      [page.continuationMarker, try await person.changes().syncToken]
      + zones.zones.compactMap { $0.item?.syncToken }
    for token in tokens {
      let text = try #require(token)
      #expect(Data(base64Encoded: text)?.base64EncodedString() == text)
    }
  }

  @Test("A download URL has no characters that a client could escape again")
  func downloadURL() async throws {
    let person = try await person()
    try await person.save(.create, "a", ["file": .asset(try await person.upload(Data([1])))])
    let asset = try #require(try await person.lookup("a").content("file")?.assets.first)
    let url = try #require(asset.downloadURL)
    #expect(url.addingPercentEncoding(withAllowedCharacters: .urlQueryAllowed) == url)
  }
}
