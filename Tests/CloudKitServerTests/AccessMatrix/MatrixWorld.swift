import CloudKitServer
import CloudKitWebServices
import Foundation

/// Texts in the owner's data.
enum MatrixMarker {
  /// In unshared data: values, names of fields and zones, a file, a device.
  static let hidden = "h1dden"
  /// In data that only participants of the share may read.
  static let shared = "sh4red"
}

/// A server with an owner, users with every kind of participation, and every kind of credential.
struct MatrixWorld {
  let server: TestServer
  let owner: Person
  let zone: ZoneID
  /// Another zone of the owner, with a public share.
  let openZone: ZoneID
  let guid: String
  private let people: [MatrixCaller: Person]
  private let keys: [MatrixCaller: SigningClient]

  static let otherContainer = "iCloud.other"

  /// Types of the public database that only a record's creator may read.
  private static let schema = TestSchema.text(
    """
    RECORD TYPE Letter (n INT64 QUERYABLE, text STRING, file ASSET,
      GRANT READ, WRITE TO "_creator", GRANT CREATE TO "_icloud");
    """
  )

  init() async throws {
    server = try await TestServer()
    let service = server.service
    try await service.schemas.importSchema(Self.schema, container: TestServer.container)
    // A session that has expired by the time of the requests.
    let early = try await server.person("early")
    server.clock.advance(seconds: 15 * 24 * 3600)

    owner = try await server.person("ada")
    var people = try await Self.parts(server)
    people[.owner] = owner
    try await Self.plant(owner)
    let share = try await Self.share(owner, people)
    guid = share.shortGUID ?? ""
    zone = try await TestServer.zone.owned(by: owner)
    openZone = try await ZoneID(zoneName: "open").owned(by: owner)
    let openShare = try await owner.share(
      "a",
      zone: ZoneID(zoneName: "open"),
      publicPermission: .readOnly
    )

    people[.expiredSession] = early
    people.merge(try await Self.badSessions(server)) { $1 }
    people.merge(try await Self.tokens(server)) { $1 }
    people[.ownerInOtherContainer] = Person(
      server: server,
      webAuthToken: try await service.signIn(userName: "ada", container: Self.otherContainer)
    )
    people[.ownerInProduction] = try await owner.inProduction
    var visitor = server.visitor
    visitor.publicAccessToken =
      try await visitor.resolve(openShare.shortGUID).anonymousPublicAccess?.token
    people[.visitor] = visitor
    people[.visitorElsewhere] = visitor
    self.people = people

    let key = try await SigningClient(server)
    let removed = try await SigningClient(server)
    try await service.serverKeys.remove(removed.keyID)
    var unknown = key
    unknown.keyID = "nobody"
    var otherContainer = key
    otherContainer.container = Self.otherContainer
    var production = key
    production.environment = .production
    keys = [
      .serverKey: key, .replayedSignature: key, .wrongSignature: key, .oldSignature: key,
      .removedKey: removed, .unknownKey: unknown, .otherContainersKey: otherContainer,
      .otherEnvironmentsKey: production,
    ]
  }

  // MARK: Sending

  /// Sends a body as a caller; `$zone` in it is the caller's zone, or the given one.
  func send(
    _ body: String,
    _ endpoint: Endpoint,
    in scope: DatabaseScope,
    by caller: MatrixCaller,
    isExtended: Bool,
    about other: ZoneID? = nil
  ) async throws -> WebServiceResponse {
    let asked = other ?? (caller == .visitor ? openZone : zone)
    let text = String(decoding: try WireCoding.encode(asked), as: UTF8.self)
    var request = try request(
      endpoint,
      scope,
      Data(body.replacing("$zone", with: text).replacing("$guid", with: guid).utf8),
      by: caller
    )
    if isExtended {
      request.headers[WebServiceName.capabilities] = WebServiceName.capabilitiesValue
    }
    if caller == .replayedSignature { _ = await server.service.respond(to: request) }
    return await server.service.respond(to: request)
  }

  private func request(
    _ endpoint: Endpoint,
    _ scope: DatabaseScope,
    _ body: Data,
    by caller: MatrixCaller
  ) throws -> WebServiceRequest {
    if let key = keys[caller] {
      let date = caller == .oldSignature ? (server.clock.now - 601).formatted(.iso8601) : nil
      var request = try key.signed(key.path(endpoint, scope), body, date: date)
      if caller == .wrongSignature { request.body.append(UInt8(ascii: " ")) }
      return request
    }
    guard let person = people[caller] else {
      let path = WebServicePath(
        container: TestServer.container,
        environment: .development,
        database: scope,
        endpoint: endpoint
      ).text()
      let headers = caller == .operatorsBearer ? ["authorization": "Bearer operator's own"] : [:]
      return WebServiceRequest(method: "POST", path: path, headers: headers, body: body)
    }
    var path = person.path(endpoint, scope)
    if caller == .ownerInOtherContainer {
      path = path.replacing(TestServer.container, with: Self.otherContainer)
    }
    let headers = person.origin.map { ["origin": $0] } ?? [:]
    return WebServiceRequest(method: "POST", path: path, headers: headers, body: body)
  }

  // MARK: Creation

  private static func parts(_ server: TestServer) async throws -> [MatrixCaller: Person] {
    var people: [MatrixCaller: Person] = [:]
    for part in [MatrixCaller.stranger, .invited, .reader, .writer, .removed] {
      people[part] = try await server.person(part.rawValue)
    }
    try await server.service.createAccount(
      userName: "root",
      password: "long enough",
      isAdministrator: true
    )
    people[.administrator] = try await server.person("root")
    return people
  }

  private static func plant(_ owner: Person) async throws {
    let hidden = MatrixMarker.hidden
    for name in [TestServer.zone.zoneName, "open", "\(hidden)-zone"] {
      try await owner.makeZone(name)
    }
    let file = try await owner.upload(Data(MatrixMarker.shared.utf8))
    _ = try await owner.modify([
      .make(.create, "root", ["title": .string("Root")]),
      .make(
        .create,
        "a",
        ["title": .string(MatrixMarker.shared), "file": .asset(file)],
        parent: "root"
      ),
    ])
    try await owner.save(.create, "a", ["title": .string("Root")], zone: ZoneID(zoneName: "open"))
    let hiddenFile = try await owner.upload(Data("\(hidden)-file".utf8))
    let device = owner.on("\(hidden)-device")
    for zone in [TestServer.zone, ZoneID(zoneName: "open"), ZoneID(zoneName: "\(hidden)-zone")] {
      try await device.save(
        .create,
        "c",
        [
          "title": .string("\(hidden)-value"), "\(hidden)_field": .int64(1),
          "file": .asset(hiddenFile),
        ],
        zone: zone
      )
    }
    try await device.save(
      .create,
      "letter",
      ["text": .string("\(hidden)-text"), "n": .int64(7)],
      recordType: "Letter",
      in: .public,
      zone: nil
    )
    let subscriptions = ["db", "\(hidden)-id"].map { name in
      SubscriptionOperation(
        operationType: .create,
        subscription: Subscription(subscriptionID: name, subscriptionType: .database)
      )
    }
    let _: SubscriptionsResponse = try await owner.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: subscriptions)
    )
  }

  /// The share of the tree below `root`: with invited and accepted participants, and a removed one.
  private static func share(
    _ owner: Person,
    _ people: [MatrixCaller: Person]
  ) async throws -> RecordDictionary {
    try await owner.share(
      "root",
      with: [
        .invited("invited"), .invited("reader", .readOnly), .invited("writer"),
        .invited("removed"),
      ]
    )
    var share = try await owner.lookup("share")
    for part in [MatrixCaller.reader, .writer, .removed] { try await people[part]?.accept(share) }
    share = try await owner.lookup("share")
    let removed = try await people[.removed]?.userRecordName
    let left = share.sharing?.participants?.filter { $0.userIdentity?.userRecordName != removed }
    return try await owner.updateShare(share, participants: left)
  }

  /// API tokens that are not valid here, each with the owner's valid user token.
  private static func tokens(_ server: TestServer) async throws -> [MatrixCaller: Person] {
    let service = server.service
    let owner = try await server.person("ada")
    var people: [MatrixCaller: Person] = [:]
    for (caller, token) in [
      (MatrixCaller.unknownToken, "0123"),
      (.otherContainersToken, try await service.createAPIToken(container: otherContainer)),
      (
        .otherEnvironmentsToken,
        try await service.createAPIToken(
          container: TestServer.container,
          environment: .production
        )
      ),
      (
        .foreignOrigin,
        try await service.createAPIToken(
          container: TestServer.container,
          allowedOrigins: ["https://app.example"]
        )
      ),
    ] {
      people[caller] = owner
      people[caller]?.apiToken = token
    }
    people[.foreignOrigin]?.origin = "https://evil.example"
    return people
  }

  /// User tokens that are invalid, or not valid here.
  private static func badSessions(_ server: TestServer) async throws -> [MatrixCaller: Person] {
    let service = server.service
    let revoked = try await server.person("revoked")
    try await service.sessions.signOutEverywhere("revoked")
    let disabled = try await server.person("disabled")
    try await service.accounts.change("disabled", .init(isDisabled: true))
    let deleted = try await server.person("deleted")
    try await service.accounts.delete("deleted")
    let device = try await device(of: "ada", server)
    let ended = try await Self.device(of: "ada", server)
    _ = try await service.sessions.revokeDevice(String(ended.refreshToken.prefix { $0 != "." }))
    let start = await server.send(
      "POST",
      "/admin/1/session/start",
      body: Data(#"{"userName":"root","password":"long enough"}"#.utf8)
    )
    let words: [MatrixCaller: String?] = [
      .tokenAlone: nil, .wordNull: "null", .garbage: "%%%", .refreshToken: device.refreshToken,
      .revokedDevice: ended.webAuthToken,
      .otherContainersSession: try await service.signIn(
        userName: "ada",
        container: otherContainer
      ),
      .administratorsSession: try WireCoding.decode(AdminSession.self, from: start.body).token,
    ]
    var people = words.mapValues { Person(server: server, webAuthToken: $0) }
    people[.revokedSession] = revoked
    people[.disabledAccount] = disabled
    people[.deletedAccount] = deleted
    return people
  }

  private static func device(
    of userName: String,
    _ server: TestServer
  ) async throws -> DeviceCredentials {
    let body =
      #"{"userName":"\#(userName)","password":"secret","container":"\#(TestServer.container)"}"#
    let reply = await server.send(
      "POST",
      "/account/sign-in?ckAPIToken=\(server.apiToken)",
      body: Data(body.utf8)
    )
    return try WireCoding.decode(DeviceCredentials.self, from: reply.body)
  }
}
