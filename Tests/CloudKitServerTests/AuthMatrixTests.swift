import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Every endpoint, every kind of credential, every database; what should come of it is data.
@Suite("The matrix of rights")
struct AuthMatrixTests {
  /// What a request meets before its body counts.
  enum Outcome: String {
    /// 401 AUTHENTICATION_FAILED: the credential itself is no good, or not for this.
    case refused
    /// 421 AUTHENTICATION_REQUIRED: a person has to sign in.
    case signIn
    /// Whatever the request itself deserves.
    case passed
  }

  enum Credential: String, CaseIterable {
    case none, unknownToken, otherContainersToken, otherEnvironmentsToken, foreignOrigin
    case tokenAlone, tokenWithNull, tokenWithGarbage, expiredSession, revokedSession
    case otherContainersSession, disabledAccount, adminSession
    case person, visit
    case key, unknownKey, wrongSignature, oldSignature, removedKey, otherContainersKey
  }

  /// What somebody with an API token alone may ask of the public database.
  static let visitorInPublic: [Endpoint: Outcome] = [
    .queryRecords: .passed, .lookupRecords: .passed, .modifyRecords: .signIn,
    .changedRecords: .signIn, .listZones: .passed, .lookupZones: .passed, .modifyZones: .signIn,
    .changedZones: .signIn, .databaseChanges: .signIn, .zoneChanges: .signIn,
    .listSubscriptions: .signIn, .lookupSubscriptions: .signIn, .modifySubscriptions: .signIn,
    .caller: .signIn, .currentUser: .signIn, .discoverUsers: .signIn,
    .lookupUsersByEmail: .signIn, .lookupUsersByID: .signIn, .lookupContacts: .signIn,
    .uploadAssets: .signIn, .rereferenceAssets: .signIn, .createToken: .passed,
    .registerToken: .passed, .resolveShares: .passed, .acceptShares: .signIn,
    .requestAccess: .signIn,
  ]

  /// What a server-to-server key may not ask of the public database.
  static let closedToKeys: Set<Endpoint> = [
    .discoverUsers, .lookupUsersByEmail, .lookupUsersByID, .lookupContacts,
  ]

  /// What somebody at a share that anybody may read may ask of the shared database.
  static let openToVisits: Set<Endpoint> = [
    .queryRecords, .lookupRecords, .changedRecords, .listZones, .lookupZones, .changedZones,
    .databaseChanges, .zoneChanges,
  ]

  static func expected(
    _ credential: Credential,
    _ endpoint: Endpoint,
    _ scope: DatabaseScope
  ) -> Outcome? {
    switch credential {
    case .none, .unknownToken, .otherContainersToken, .otherEnvironmentsToken, .foreignOrigin,
      .unknownKey, .wrongSignature, .oldSignature, .removedKey, .otherContainersKey:
      return .refused
    case .tokenAlone, .tokenWithNull, .tokenWithGarbage, .expiredSession, .revokedSession,
      .otherContainersSession, .disabledAccount, .adminSession:
      // Device tokens are nobody's, whatever database stands in the path.
      if [.createToken, .registerToken].contains(endpoint) { return .passed }
      // A short ID says where a share is; the database in the path does not matter.
      if [.resolveShares, .acceptShares, .requestAccess].contains(endpoint) {
        return visitorInPublic[endpoint]
      }
      return scope == .public ? visitorInPublic[endpoint] : .signIn
    case .person: return .passed
    case .visit:
      // A share that anybody may read is read, and nothing else.
      let isRead = scope == .shared && openToVisits.contains(endpoint)
      return isRead ? .passed : expected(.tokenAlone, endpoint, scope)
    case .key:
      return scope == .public && !closedToKeys.contains(endpoint) ? .passed : .refused
    }
  }

  @Test("Each of them meets what the table says", arguments: Credential.allCases)
  func matrix(credential: Credential) async throws {
    let world = try await MatrixWorld()
    var wrong: [String] = []
    for endpoint in Endpoint.allCases {
      for scope in DatabaseScope.allCases {
        let expected = try #require(
          Self.expected(credential, endpoint, scope),
          "the table lacks \(endpoint.rawValue)"
        )
        let found = try await world.outcome(credential, endpoint, scope)
        if found != expected {
          wrong.append("\(endpoint.rawValue) in \(scope): \(found), not \(expected)")
        }
      }
    }
    #expect(wrong == [])
  }

  @Test("No reply to anybody else holds a byte of a person's private data")
  func taint() async throws {
    let world = try await MatrixWorld()
    let marker = "marker-of-ada"
    let ada = world.ada
    try await ada.save(
      .create,
      "\(marker)-name",
      ["\(marker.replacing("-", with: "_"))_field": .string("\(marker)-value")]
    )
    let owner: UserIdentity = try await ada.call(.caller, [String: String](), in: .public)
    let zone =
      #"{"zoneName":"notes","ownerRecordName":"\#(owner.userRecordName ?? "")"}"#
    let bodies = [
      #"{"zoneID":\#(zone),"records":[{"recordName":"\#(marker)-name"}]}"#,
      #"{"zoneID":\#(zone),"query":{"recordType":"Note"}}"#,
      #"{"zones":[{"zoneID":\#(zone)}],"syncToken":""}"#,
      #"{"zones":[\#(zone)]}"#,
      #"{"zoneID":\#(zone),"assets":[{"recordName":"\#(marker)-name","fieldName":"f"}]}"#,
      #"{"zoneID":\#(zone),"operations":[{"operationType":"forceUpdate","#
        + #""record":{"recordName":"\#(marker)-name","recordType":"Note"}}]}"#,
      "{}",
    ]
    let others = [world.bob, ada.server.visitor]
    for endpoint in Endpoint.allCases {
      for scope in DatabaseScope.allCases {
        for body in bodies {
          for other in others {
            let reply = await other.extended.send(endpoint, Data(body.utf8), in: scope)
            // A name that the request itself gave may come back in an error.
            let text = String(decoding: reply.body, as: UTF8.self)
            #expect(!text.contains("\(marker)-value"), "\(endpoint.rawValue) in \(scope)")
          }
        }
      }
    }
  }
}

/// A server with two people, a key, and every kind of credential gone bad.
private struct MatrixWorld {
  let server: TestServer
  let ada: Person
  let bob: Person
  private let key: SigningClient
  private let removedKey: SigningClient
  private let tokens: [AuthMatrixTests.Credential: String]
  private let visit: String?
  private let sessions: [AuthMatrixTests.Credential: String]

  init() async throws {
    server = try await TestServer()
    let service = server.service
    bob = try await server.person("bob")
    tokens = [
      .unknownToken: "0123",
      .otherContainersToken: try await service.createAPIToken(container: "iCloud.other"),
      .otherEnvironmentsToken: try await service.createAPIToken(
        container: TestServer.container,
        environment: .production
      ),
      .foreignOrigin: try await service.createAPIToken(
        container: TestServer.container,
        allowedOrigins: ["https://app.example"]
      ),
    ]
    // A session that is over by now.
    let early = try await server.person("early")
    server.clock.advance(seconds: 15 * 24 * 3600)
    let revoked = try await server.person("revoked")
    try await service.signOutEverywhere("revoked")
    let disabled = try await server.person("disabled")
    try await service.changeAccount("disabled", .init(isDisabled: true))
    try await service.createAccount(
      userName: "root",
      password: "long enough",
      isAdministrator: true
    )
    let start = await service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/admin/1/session/start",
        body: Data(#"{"userName":"root","password":"long enough"}"#.utf8)
      )
    )
    sessions = [
      .tokenWithNull: "null", .tokenWithGarbage: "%%%", .expiredSession: early.webAuthToken ?? "",
      .revokedSession: revoked.webAuthToken ?? "", .disabledAccount: disabled.webAuthToken ?? "",
      .otherContainersSession: try await service.signIn(
        userName: "bob",
        container: "iCloud.other"
      ),
      .adminSession: try WireCoding.decode(AdminSession.self, from: start.body).token,
    ]
    key = try await SigningClient(server)
    removedKey = try await SigningClient(server)
    try await service.removeServerKey(removedKey.keyID)
    ada = try await server.person("ada")
    try await ada.makeZone()
    try await ada.save(.create, "shared")
    let share = try await ada.share("shared", publicPermission: .readOnly)
    visit = try await server.visitor.resolve(share.shortGUID).anonymousPublicAccess?.token
  }

  func outcome(
    _ credential: AuthMatrixTests.Credential,
    _ endpoint: Endpoint,
    _ scope: DatabaseScope
  ) async throws -> AuthMatrixTests.Outcome {
    let body = Data(Self.body(endpoint).utf8)
    let response: WebServiceResponse
    switch credential {
    case .key, .unknownKey, .wrongSignature, .oldSignature, .removedKey, .otherContainersKey:
      response = try await signed(credential, endpoint, scope, body)
    case .none:
      response = await server.service.respond(
        to: WebServiceRequest(method: "POST", path: key.path(endpoint, scope), body: body)
      )
    default:
      var person = Person(server: server, webAuthToken: sessions[credential])
      if credential == .person { person = ada }
      if credential == .visit { person.publicAccessToken = visit }
      if let token = tokens[credential] { person.apiToken = token }
      if credential == .foreignOrigin { person.origin = "https://evil.example" }
      response = await person.send(endpoint, body, in: scope)
    }
    switch response.status {
    case 401: return .refused
    case 421: return .signIn
    case 500: throw ErrorDictionary(.internalError, "\(endpoint.rawValue) failed")
    default: return .passed
    }
  }

  private func signed(
    _ credential: AuthMatrixTests.Credential,
    _ endpoint: Endpoint,
    _ scope: DatabaseScope,
    _ body: Data
  ) async throws -> WebServiceResponse {
    var client = credential == .removedKey ? removedKey : key
    if credential == .unknownKey { client.keyID = "nobody" }
    if credential == .otherContainersKey { client.container = "iCloud.other" }
    var date: String?
    if credential == .oldSignature {
      date = (server.clock.now - 601).formatted(.iso8601)
    }
    var request = try client.signed(client.path(endpoint, scope), body, date: date)
    if credential == .wrongSignature { request.body.append(UInt8(ascii: " ")) }
    return await client.send(request)
  }

  /// A body that each endpoint reads; what it means does not matter here.
  private static func body(_ endpoint: Endpoint) -> String {
    switch endpoint {
    case .queryRecords: #"{"query":{"recordType":"Note"}}"#
    case .modifyRecords, .modifyZones, .modifySubscriptions: #"{"operations":[]}"#
    case .lookupRecords: #"{"records":[]}"#
    case .changedRecords: #"{"zoneID":{"zoneName":"notes"}}"#
    case .lookupZones, .zoneChanges: #"{"zones":[]}"#
    case .lookupSubscriptions: #"{"subscriptions":[]}"#
    case .lookupUsersByEmail, .lookupUsersByID: #"{"users":[]}"#
    case .uploadAssets: #"{"tokens":[]}"#
    case .rereferenceAssets: #"{"assets":[]}"#
    case .resolveShares, .acceptShares, .requestAccess: #"{"shortGUIDs":[]}"#
    default: "{}"
    }
  }
}
