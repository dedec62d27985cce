import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Who asks.
private enum Caller: String, CaseIterable {
  case nobody, visitor, stranger, invited, reader, writer, owner
}

/// What is asked for: an endpoint, a database, and a body about the owner's zone.
private struct Request: CustomTestStringConvertible, Sendable {
  var endpoint: Endpoint
  var scope: DatabaseScope
  /// `$zone` stands for the owner's zone.
  var body: String

  var testDescription: String { "\(endpoint.rawValue) \(scope.rawValue) \(body)" }
}

/// What comes back; the first that applies.
private enum Outcome: String {
  /// The API token is missing or wrong.
  case unauthenticated
  /// Somebody has to sign in.
  case signIn
  /// The endpoint is not for this database.
  case badRequest
  /// The zone or record does not exist, as far as the caller is told.
  case absent
  case denied
  case success
}

/// Endpoint × credential × database × part in a share, and what each may expect.
///
/// The columns are: nobody, visitor, stranger, invited, reader, writer, owner.
private let matrix: [(Request, String)] = [
  // The owner's zone, asked for in the private database: it is in nobody else's.
  (Request(endpoint: .lookupRecords, scope: .private, body: record), "u s a a a a +"),
  (Request(endpoint: .queryRecords, scope: .private, body: query), "u s a a a a +"),
  (Request(endpoint: .modifyRecords, scope: .private, body: write), "u s a a a a +"),
  (Request(endpoint: .zoneChanges, scope: .private, body: zones), "u s a a a a +"),
  (Request(endpoint: .changedRecords, scope: .private, body: zone), "u s a a a a +"),
  (Request(endpoint: .lookupZones, scope: .private, body: names), "u s a a a a +"),
  // In the shared database: those who take part, as far as they may.
  (Request(endpoint: .lookupRecords, scope: .shared, body: record), "u s a a + + a"),
  (Request(endpoint: .queryRecords, scope: .shared, body: query), "u s a a + + a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: write), "u s a a d + a"),
  (Request(endpoint: .zoneChanges, scope: .shared, body: zones), "u s a a + + a"),
  (Request(endpoint: .changedRecords, scope: .shared, body: zone), "u s a a + + a"),
  (Request(endpoint: .lookupZones, scope: .shared, body: names), "u s a a + + a"),
  (Request(endpoint: .uploadAssets, scope: .shared, body: upload), "u s a a d + a"),
  // What is in the zone and not shared is nobody's but the owner's.
  (Request(endpoint: .lookupRecords, scope: .shared, body: hidden), "u s a a a a a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: overwrite), "u s a a d d a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: loose), "u s a a d d a"),
  // The share itself is its owner's to change.
  (Request(endpoint: .modifyRecords, scope: .shared, body: open), "u s a a d d a"),
  (Request(endpoint: .modifyZones, scope: .shared, body: create), "u s b b b b b"),
  (Request(endpoint: .modifyZones, scope: .public, body: create), "u s b b b b b"),
  // The public database has neither zones nor changes, and knows the owner's zone not at all.
  (Request(endpoint: .zoneChanges, scope: .public, body: zones), "u s b b b b b"),
  (Request(endpoint: .databaseChanges, scope: .public, body: "{}"), "u s b b b b b"),
  (Request(endpoint: .lookupRecords, scope: .public, body: record), "u a a a a a a"),
  // Shares are resolved and accepted through the public database.
  (Request(endpoint: .resolveShares, scope: .public, body: guid), "u s a + + + +"),
  (Request(endpoint: .resolveShares, scope: .shared, body: guid), "u b b b b b b"),
  (Request(endpoint: .acceptShares, scope: .private, body: guid), "u s b b b b b"),
  (Request(endpoint: .acceptShares, scope: .public, body: guid), "u s a + + + +"),
  // To ask for access is anybody's, and tells nobody whether there is anything to ask for.
  (Request(endpoint: .requestAccess, scope: .public, body: guid), "u s + + + + +"),
  (Request(endpoint: .requestAccess, scope: .public, body: nothing), "u s + + + + +"),
  (Request(endpoint: .requestAccess, scope: .private, body: guid), "u s b b b b b"),
  (Request(endpoint: .requestAccess, scope: .shared, body: guid), "u s b b b b b"),
  // Who hears requests, and answers them, is the owner's to say.
  (Request(endpoint: .modifyRecords, scope: .shared, body: answer), "u s a a d d a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: block), "u s a a d d a"),
  // What everybody may ask about themselves.
  (Request(endpoint: .listZones, scope: .shared, body: "{}"), "u s + + + + +"),
  (Request(endpoint: .databaseChanges, scope: .shared, body: "{}"), "u s + + + + +"),
  (Request(endpoint: .databaseChanges, scope: .private, body: "{}"), "u s + + + + +"),
  (Request(endpoint: .listSubscriptions, scope: .private, body: "{}"), "u s + + + + +"),
  (Request(endpoint: .listSubscriptions, scope: .shared, body: "{}"), "u s + + + + +"),
]

private let record = #"{"records":[{"recordName":"a"}],"zoneID":$zone}"#
private let hidden = #"{"records":[{"recordName":"c"}],"zoneID":$zone}"#
private let query =
  #"{"query":{"recordType":"Note","filterBy":[{"comparator":"EQUALS","fieldName":"title","#
  + #""fieldValue":{"value":"Root"}}]},"zoneID":$zone}"#
private let write = modify(#"{"recordName":"a","recordType":"Note"}"#)
private let overwrite = modify(#"{"recordName":"c","recordType":"Note"}"#)
private let loose = modify(#"{"recordName":"new","recordType":"Note"}"#)
private let open = modify(
  #"{"recordName":"share","recordType":"cloudkit.share","publicPermission":"READ_WRITE"}"#
)
private let answer = modify(
  #"{"recordName":"share","recordType":"cloudkit.share","denyAccessRequests":false}"#
)
private let block = modify(
  #"{"recordName":"share","recordType":"cloudkit.share","requesters":[],"blocked":[]}"#
)
private let nothing = #"{"shortGUIDs":[{"value":"0nothing"}]}"#
private let zones = #"{"zones":[{"zoneID":$zone}]}"#
private let zone = #"{"zoneID":$zone}"#
private let names = #"{"zones":[$zone]}"#
private let upload = #"{"zoneID":$zone,"tokens":[{"fieldName":"file","recordType":"Note"}]}"#
private let create =
  #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"mine"}}}]}"#
private let guid = #"{"shortGUIDs":[{"value":"$guid"}]}"#

private func modify(_ record: String) -> String {
  #"{"operations":[{"operationType":"forceUpdate","record":\#(record)}],"zoneID":$zone}"#
}

/// The people of the matrix around one share.
private struct Cast {
  let tree: SharedTree
  let people: [Caller: Person]

  init() async throws {
    tree = try await SharedTree(.readWrite)
    let share = try await tree.owner.lookup("share")
    let server = tree.server
    var people: [Caller: Person] = [.owner: tree.owner, .writer: tree.guest]
    people[.visitor] = server.visitor
    people[.nobody] = server.visitor
    people[.nobody]?.apiToken = "no"
    for caller in [Caller.stranger, .invited, .reader] {
      people[caller] = try await server.person(caller.rawValue)
    }
    let participants =
      (share.sharing?.participants ?? []) + [
        .invited("invited"), .invited("reader", .readOnly),
      ]
    let saved = try await tree.owner.updateShare(share, participants: participants)
    try await people[.reader]?.accept(saved)
    self.people = people
  }

  func outcome(of request: Request, by caller: Caller) async throws -> Outcome {
    let person = try #require(people[caller])
    let zoneID = String(decoding: try WireCoding.encode(tree.zone), as: UTF8.self)
    let body = request.body.replacing("$zone", with: zoneID)
      .replacing("$guid", with: tree.share.shortGUID ?? "")
    let response = await person.send(request.endpoint, Data(body.utf8), in: request.scope)
    let text = String(decoding: response.body, as: UTF8.self)
    // A batch tells of its one item inside.
    let code = text.firstRange(of: #""serverErrorCode":""#).map {
      String(text[$0.upperBound...].prefix { $0 != "\"" })
    }
    switch code {
    case nil: return .success
    case "AUTHENTICATION_FAILED": return .unauthenticated
    case "AUTHENTICATION_REQUIRED": return .signIn
    case "ACCESS_DENIED": return .denied
    case "NOT_FOUND", "ZONE_NOT_FOUND": return .absent
    default: return .badRequest
    }
  }
}

@Suite("Who may ask what")
struct AccessMatrixTests {
  private static let letters: [String: Outcome] = [
    "u": .unauthenticated, "s": .signIn, "b": .badRequest, "a": .absent, "d": .denied,
    "+": .success,
  ]

  @Test("Every endpoint answers every caller as the matrix says")
  func answers() async throws {
    for (request, row) in matrix {
      // Each row begins with the same world: what one caller did must not help the next.
      let cast = try await Cast()
      for (caller, letter) in zip(Caller.allCases, row.split(separator: " ")) {
        let outcome = try await cast.outcome(of: request, by: caller)
        #expect(
          outcome == Self.letters[String(letter)],
          "\(request.testDescription) by \(caller.rawValue)"
        )
      }
    }
  }

  @Test("Nothing of what is hidden is in any byte that others get")
  func taint() async throws {
    let cast = try await Cast()
    let secret = "s3cr3t-marker"
    try await cast.tree.owner.save(.forceUpdate, "c", ["title": .string(secret)])
    try await cast.tree.owner.save(.create, secret, ["title": .string(secret)])
    let zoneID = String(decoding: try WireCoding.encode(cast.tree.zone), as: UTF8.self)
    for (request, _) in matrix {
      for caller in Caller.allCases where caller != .owner {
        let person = try #require(cast.people[caller])
        let body = request.body.replacing("$zone", with: zoneID)
          .replacing("$guid", with: cast.tree.share.shortGUID ?? "")
        let response = await person.send(request.endpoint, Data(body.utf8), in: request.scope)
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(!text.contains(secret), "\(request.testDescription) by \(caller.rawValue)")
      }
    }
  }
}
