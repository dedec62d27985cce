import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Every endpoint, every part that a signed-in person has in another person's share, every database.
///
/// `AuthMatrixTests` has the credentials; here all of them are good, and what comes of a request about
/// the owner's zone is data again. An endpoint without a row fails the test.
@Suite("The matrix of parts in a share")
struct PartMatrixTests {
  enum Part: String, CaseIterable {
    case stranger, invited, reader, writer, removed, owner
  }

  /// The columns are those of `Part`, for the private, the shared and the public database.
  ///
  /// `+` answered, `d` denied, `a` absent as far as the caller is told, `b` not for this database.
  ///
  /// A person who was removed meets what a stranger meets, everywhere.
  static let rows: [Endpoint: [DatabaseScope: String]] = [
    .queryRecords: [.private: "a a a a a +", .shared: "a a + + a a", .public: "a a a a a a"],
    .lookupRecords: [.private: "a a a a a +", .shared: "a a + + a a", .public: "a a a a a a"],
    .changedRecords: [.private: "a a a a a +", .shared: "a a + + a a", .public: "b b b b b b"],
    .zoneChanges: [.private: "a a a a a +", .shared: "a a + + a a", .public: "b b b b b b"],
    .modifyRecords: [.private: "a a a a a +", .shared: "a a d + a a", .public: "a a a a a a"],
    .uploadAssets: [.private: "a a a a a +", .shared: "a a d + a a", .public: "a a a a a a"],
    .rereferenceAssets: [.private: "a a a a a b", .shared: "a a b b a a", .public: "a a a a a a"],
    .listZones: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .lookupZones: [.private: "a a a a a +", .shared: "a a + + a a", .public: "a a a a a a"],
    .modifyZones: [.private: "+ + + + + +", .shared: "b b b b b b", .public: "b b b b b b"],
    .changedZones: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "b b b b b b"],
    .databaseChanges: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "b b b b b b"],
    .listSubscriptions: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .lookupSubscriptions: [
      .private: "a a a a a a", .shared: "a a a a a a", .public: "a a a a a a",
    ],
    .modifySubscriptions: [
      .private: "a a a a a +", .shared: "b b b b b b", .public: "b b b b b b",
    ],
    .resolveShares: [.private: "b b b b b b", .shared: "b b b b b b", .public: "a + + + a +"],
    .acceptShares: [.private: "b b b b b b", .shared: "b b b b b b", .public: "a + + + a +"],
    .requestAccess: [.private: "b b b b b b", .shared: "b b b b b b", .public: "+ + + + + +"],
    .caller: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .currentUser: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .discoverUsers: [.private: "b b b b b b", .shared: "b b b b b b", .public: "+ + + + + +"],
    .lookupUsersByEmail: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .lookupUsersByID: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .lookupContacts: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .createToken: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
    .registerToken: [.private: "+ + + + + +", .shared: "+ + + + + +", .public: "+ + + + + +"],
  ]

  @Test("Each part meets what the table says", arguments: Endpoint.allCases)
  func matrix(endpoint: Endpoint) async throws {
    let world = try await PartWorld()
    for scope in DatabaseScope.allCases {
      var found: [String] = []
      for part in Part.allCases { found.append(try await world.outcome(part, endpoint, scope)) }
      #expect(
        Self.rows[endpoint]?[scope] == found.joined(separator: " "),
        "\(endpoint.rawValue) in \(scope.rawValue)"
      )
    }
  }

  @Test("No byte of what is not shared comes to anybody else, whatever is asked")
  func taint() async throws {
    let world = try await PartWorld()
    let secret = "s3cr3t"
    try await world.plant(secret)
    let key = try await SigningClient(world.server)
    let elsewhere = try await world.server.service.signIn(
      userName: "stranger",
      container: "iCloud.other"
    )
    var callers = Part.allCases.filter { $0 != .owner }.compactMap { world.people[$0] }
    callers.append(world.server.visitor)
    callers.append(Person(server: world.server, webAuthToken: elsewhere))
    callers += callers.map(\.extended)
    var leaks: [String] = []
    for endpoint in Endpoint.allCases {
      let bodies = [try await world.body(endpoint), "{}"]
      for scope in DatabaseScope.allCases {
        for body in bodies {
          var replies: [WebServiceResponse] = []
          for caller in callers {
            replies.append(await caller.send(endpoint, Data(body.utf8), in: scope))
          }
          let signed = try key.signed(key.path(endpoint, scope), Data(body.utf8))
          replies.append(await key.send(signed))
          for reply in replies {
            let text =
              String(decoding: reply.body, as: UTF8.self)
              + reply.headers.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
            if text.contains(secret) { leaks.append("\(endpoint.rawValue) in \(scope.rawValue)") }
          }
        }
      }
    }
    #expect(leaks == [])
  }

  @Test("A signature that is sent again gets the first reply, at every endpoint")
  func replays() async throws {
    let world = try await PartWorld()
    let key = try await SigningClient(world.server)
    for endpoint in Endpoint.allCases {
      let body = Data(try await world.body(endpoint).utf8)
      for scope in DatabaseScope.allCases {
        let request = try key.signed(key.path(endpoint, scope), body)
        let first = await key.send(request)
        let again = await key.send(request)
        #expect(again.status == first.status, "\(endpoint.rawValue) in \(scope.rawValue)")
        #expect(
          scope == .public || first.status == 401,
          "\(endpoint.rawValue) in \(scope.rawValue)"
        )
        if first.status == 200 { #expect(again.body == first.body, "\(endpoint.rawValue)") }
      }
    }
  }
}

/// An owner's tree, shared, and people with every part in it.
private struct PartWorld {
  let server: TestServer
  let people: [PartMatrixTests.Part: Person]
  private let owner: Person
  private let zone: ZoneID
  private let guid: String

  init() async throws {
    server = try await TestServer()
    owner = try await server.person("ada")
    var people: [PartMatrixTests.Part: Person] = [.owner: owner]
    for part in PartMatrixTests.Part.allCases where part != .owner {
      people[part] = try await server.person(part.rawValue)
    }
    self.people = people
    try await owner.makeZone()
    _ = try await owner.modify([
      .make(.create, "root", ["title": .string("Root")]), .make(.create, "a", parent: "root"),
    ])
    let invitations: [ShareParticipant] = [
      .invited("invited"), .invited("reader", .readOnly), .invited("writer"), .invited("removed"),
    ]
    var share = try await owner.share("root", with: invitations)
    for part in [PartMatrixTests.Part.reader, .writer, .removed] {
      try await people[part]?.accept(share)
    }
    share = try await owner.lookup("share")
    let removed = try await people[.removed]?.userRecordName
    let left = share.sharing?.participants?.filter {
      $0.userIdentity?.userRecordName != removed
    }
    share = try await owner.updateShare(share, participants: left)
    guid = try #require(share.shortGUID)
    zone = try await TestServer.zone.owned(by: owner)
  }

  /// Puts a text wherever the owner can, but into what is shared.
  func plant(_ secret: String) async throws {
    try await owner.makeZone("\(secret)-zone")
    let file = try await owner.upload(Data(secret.utf8))
    for zone in [TestServer.zone, ZoneID(zoneName: "\(secret)-zone"), .defaultZone] {
      try await owner.on("\(secret)-device").save(
        .create,
        "\(secret)-name",
        ["\(secret)_field": .string("\(secret)-value"), "file": .asset(file)],
        recordType: "Note",
        zone: zone
      )
    }
    let _: SubscriptionsResponse = try await owner.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(
          operationType: .create,
          subscription: Subscription(subscriptionID: "\(secret)-id", subscriptionType: .database)
        )
      ])
    )
  }

  func outcome(
    _ part: PartMatrixTests.Part,
    _ endpoint: Endpoint,
    _ scope: DatabaseScope
  ) async throws -> String {
    let person = try #require(people[part])
    let reply = await person.send(endpoint, Data(try await body(endpoint).utf8), in: scope)
    let text = String(decoding: reply.body, as: UTF8.self)
    // A batch reports on its one item inside.
    let code = text.firstRange(of: #""serverErrorCode":""#).map {
      String(text[$0.upperBound...].prefix { $0 != "\"" })
    }
    return switch code {
    case nil: "+"
    case "ACCESS_DENIED": "d"
    case "NOT_FOUND", "ZONE_NOT_FOUND": "a"
    case "BAD_REQUEST": "b"
    default: code ?? ""
    }
  }

  /// A request about the owner's zone.
  func body(_ endpoint: Endpoint) async throws -> String {
    let zone = String(decoding: try WireCoding.encode(zone), as: UTF8.self)
    return switch endpoint {
    case .queryRecords:
      #"{"query":{"recordType":"Note","filterBy":[{"comparator":"EQUALS","fieldName":"title","#
        + #""fieldValue":{"value":"Root"}}]},"zoneID":\#(zone)}"#
    case .modifyRecords:
      #"{"operations":[{"operationType":"forceUpdate","record":{"recordName":"a","#
        + #""recordType":"Note"}}],"zoneID":\#(zone)}"#
    case .lookupRecords: #"{"records":[{"recordName":"a"}],"zoneID":\#(zone)}"#
    case .changedRecords: #"{"zoneID":\#(zone)}"#
    case .resolveShares, .acceptShares, .requestAccess:
      #"{"shortGUIDs":[{"value":"\#(guid)"}]}"#
    case .lookupZones: #"{"zones":[\#(zone)]}"#
    case .modifyZones:
      #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"mine"}}}]}"#
    case .zoneChanges: #"{"zones":[{"zoneID":\#(zone)}]}"#
    case .lookupSubscriptions: #"{"subscriptions":[{"subscriptionID":"db"}]}"#
    case .modifySubscriptions:
      #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"mine","#
        + #""subscriptionType":"zone","zoneID":\#(zone)}}]}"#
    case .lookupUsersByEmail: #"{"users":[{"emailAddress":"ada@example.com"}]}"#
    case .lookupUsersByID: #"{"users":[{"userRecordName":"_nobody"}]}"#
    case .uploadAssets:
      #"{"zoneID":\#(zone),"tokens":[{"fieldName":"file","recordType":"Note"}]}"#
    case .rereferenceAssets:
      #"{"zoneID":\#(zone),"assets":[{"recordName":"a","fieldName":"file"}]}"#
    case .listZones, .changedZones, .databaseChanges, .listSubscriptions, .caller, .currentUser,
      .discoverUsers, .lookupContacts, .createToken, .registerToken:
      "{}"
    }
  }
}
