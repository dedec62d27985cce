import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// The sender of a request.
private enum Caller: String, CaseIterable {
  case unauthenticated, visitor, stranger, invited, reader, writer, owner
}

/// A request: an endpoint, a database, and a body about the owner's zone.
private struct Request: CustomTestStringConvertible, Sendable {
  var endpoint: Endpoint
  var scope: DatabaseScope
  /// `$zone` is replaced by the owner's zone.
  var body: String

  var testDescription: String { "\(endpoint.rawValue) \(scope.rawValue) \(body)" }
}

/// The result; the first that applies.
private enum Outcome: String {
  /// The API token is missing or wrong.
  case unauthenticated
  /// A user must sign in.
  case signIn
  /// The endpoint is not for this database.
  case badRequest
  /// The zone or record does not exist for the caller.
  case absent
  case denied
  case success
}

/// Requests beyond the rights of a share, with the expected outcome for each participation;
/// `EndpointMatrixTests` has the requests within the rights.
///
/// The columns are: no token, visitor, stranger, invited, reader, writer, owner.
private let matrix: [(Request, String)] = [
  // Only the owner may see unshared records of the zone.
  (Request(endpoint: .lookupRecords, scope: .shared, body: hidden), "u s a a a a a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: overwrite), "u s a a d d a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: loose), "u s a a d d a"),
  // Only its owner may change the share itself.
  (Request(endpoint: .modifyRecords, scope: .shared, body: open), "u s a a d d a"),
  // The public database does not have the owner's zone.
  (Request(endpoint: .lookupRecords, scope: .public, body: record), "u a a a a a a"),
  // A request for access does not reveal whether the share exists.
  (Request(endpoint: .requestAccess, scope: .public, body: nothing), "u s + + + + +"),
  // Only the owner decides whether requests are accepted, and answers them.
  (Request(endpoint: .modifyRecords, scope: .shared, body: answer), "u s a a d d a"),
  (Request(endpoint: .modifyRecords, scope: .shared, body: block), "u s a a d d a"),
]

private let record = #"{"records":[{"recordName":"a"}],"zoneID":$zone}"#
private let hidden = #"{"records":[{"recordName":"c"}],"zoneID":$zone}"#
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

private func modify(_ record: String) -> String {
  #"{"operations":[{"operationType":"forceUpdate","record":\#(record)}],"zoneID":$zone}"#
}

/// The users of the matrix around one share.
private struct Cast {
  let tree: SharedTree
  let people: [Caller: Person]

  init() async throws {
    tree = try await SharedTree(.readWrite)
    let share = try await tree.owner.lookup("share")
    let server = tree.server
    var people: [Caller: Person] = [.owner: tree.owner, .writer: tree.guest]
    people[.visitor] = server.visitor
    people[.unauthenticated] = server.visitor
    people[.unauthenticated]?.apiToken = "no"
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

  func outcome(
    of request: Request,
    by caller: Caller,
    isExtended: Bool
  ) async throws -> Outcome {
    var person = try #require(people[caller])
    person.isExtended = isExtended
    let zoneID = String(decoding: try WireCoding.encode(tree.zone), as: UTF8.self)
    let body = request.body.replacing("$zone", with: zoneID)
    let response = await person.send(request.endpoint, Data(body.utf8), in: request.scope)
    let text = String(decoding: response.body, as: UTF8.self)
    // A batch contains the result of its one item.
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

@Suite("Requests beyond the rights of a share")
struct AccessMatrixTests {
  private static let letters: [String: Outcome] = [
    "u": .unauthenticated, "s": .signIn, "b": .badRequest, "a": .absent, "d": .denied,
    "+": .success,
  ]

  @Test(
    "Requests beyond the rights of a share have the outcome in the table",
    arguments: [false, true]
  )
  func answers(isExtended: Bool) async throws {
    for (request, row) in matrix {
      // Each row starts with the same state: one caller's request must not affect the next.
      let cast = try await Cast()
      for (caller, letter) in zip(Caller.allCases, row.split(separator: " ")) {
        let outcome = try await cast.outcome(of: request, by: caller, isExtended: isExtended)
        #expect(
          outcome == Self.letters[String(letter)],
          "\(request.testDescription) by \(caller.rawValue)"
        )
      }
    }
  }

  @Test("No byte of hidden data is in a reply to other callers", arguments: [false, true])
  func taint(isExtended: Bool) async throws {
    let cast = try await Cast()
    let secret = "s3cr3t-marker"
    try await cast.tree.owner.save(.forceUpdate, "c", ["title": .string(secret)])
    try await cast.tree.owner.save(.create, secret, ["title": .string(secret)])
    let zoneID = String(decoding: try WireCoding.encode(cast.tree.zone), as: UTF8.self)
    for (request, _) in matrix {
      for caller in Caller.allCases where caller != .owner {
        var person = try #require(cast.people[caller])
        person.isExtended = isExtended
        let body = request.body.replacing("$zone", with: zoneID)
        let response = await person.send(request.endpoint, Data(body.utf8), in: request.scope)
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(!text.contains(secret), "\(request.testDescription) by \(caller.rawValue)")
      }
    }
  }

  /// Types of the public database that only a record's creator may read.
  private static let guardedTypes = TestSchema.text(
    """
    RECORD TYPE Letter (text STRING, n INT64, GRANT READ, WRITE TO "_creator",
      GRANT CREATE TO "_icloud");
    RECORD TYPE Box (text STRING, n INT64, GRANT READ TO "_creator",
      GRANT CREATE, WRITE TO "_icloud");
    RECORD TYPE Note (link REFERENCE, GRANT READ TO "_world", GRANT CREATE TO "_icloud",
      GRANT WRITE TO "_creator");
    RECORD TYPE Pointer (link REFERENCE, GRANT READ, WRITE TO "_creator",
      GRANT CREATE TO "_icloud");
    """
  )

  @Test(
    "A reply about a record that the caller may not read contains nothing of it",
    arguments: [false, true],
    RecordOperationType.allCases
  )
  func unreadable(isExtended: Bool, type: RecordOperationType) async throws {
    let secret = "s3cr3t-marker"
    let server = try await TestServer()
    try await server.service.schemas.importSchema(
      Self.guardedTypes,
      container: TestServer.container
    )
    let (ada, eve) = (try await server.person("ada"), try await server.person("eve"))
    let adasName = try await ada.userRecordName
    for (name, recordType) in [("letter", "Letter"), ("box", "Box")] {
      try await ada.save(
        .create,
        name,
        ["text": .string(secret), "n": .int64(1)],
        recordType: recordType,
        in: .public,
        zone: nil
      )
    }
    let caller = isExtended ? eve.extended : eve
    for name in ["letter", "box"] {
      for recordType in ["Letter", "Box", nil] {
        for tag in ["wrong", nil] {
          let request = ModifyRecordsRequest(operations: [
            .make(type, name, ["n": .int64(2)], tag: tag, recordType: recordType)
          ])
          let response = await caller.send(
            .modifyRecords,
            try WireCoding.encode(request),
            in: .public
          )
          let text = String(decoding: response.body, as: UTF8.self)
          #expect(!text.contains(secret), "\(text)")
          #expect(!text.contains(adasName), "\(text)")
          #expect(!text.contains("serverRecord"), "\(text)")
        }
      }
    }
    // The creator's own replies are complete.
    try await ada.save(.forceUpdate, "letter", recordType: "Letter", in: .public, zone: nil)
    #expect(
      try await ada.lookup("letter", in: .public, zone: nil).content("text") == .string(secret)
    )
  }

  @Test("The record that prevents a deletion is named only to its readers")
  func hiddenHolder() async throws {
    let server = try await TestServer()
    try await server.service.schemas.importSchema(
      Self.guardedTypes,
      container: TestServer.container
    )
    let (ada, eve) = (try await server.person("ada"), try await server.person("eve"))
    // Any user may write a box, so any user's reference prevents its deletion.
    try await ada.save(.create, "target", recordType: "Box", in: .public, zone: nil)
    let link = FieldContent.reference(ReferenceValue(recordName: "target", action: .validate))
    try await eve.save(
      .create,
      "h1dden",
      ["link": link],
      recordType: "Pointer",
      in: .public,
      zone: nil
    )
    let result = try await ada.modify([.make(.forceDelete, "target")], in: .public, zone: nil)[0]
    #expect(result.error?.serverErrorCode == .validatingReferenceError)
    #expect(result.error?.reason?.contains("h1dden") == false)
  }

  @Test(
    "Another user's VALIDATE reference does not prevent a creator's deletion of a public record"
  )
  func strangersHold() async throws {
    let server = try await TestServer()
    try await server.service.schemas.importSchema(
      Self.guardedTypes,
      container: TestServer.container
    )
    let (ada, eve) = (try await server.person("ada"), try await server.person("eve"))
    for name in ["a", "b"] {
      try await ada.save(.create, name, recordType: "Note", in: .public, zone: nil)
      let link = FieldContent.reference(ReferenceValue(recordName: name, action: .validate))
      let author = name == "a" ? eve : ada
      try await author.save(
        .create,
        "\(name)-link",
        ["link": link],
        recordType: "Note",
        in: .public,
        zone: nil
      )
    }
    try await ada.save(.forceDelete, "a", in: .public, zone: nil)
    // The creator's own reference does, as in a private database.
    let own = try await ada.modify([.make(.forceDelete, "b")], in: .public, zone: nil)[0]
    #expect(own.error?.serverErrorCode == .validatingReferenceError)
  }
}
