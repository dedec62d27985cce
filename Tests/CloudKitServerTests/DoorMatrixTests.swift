import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// The ways in beside the documented endpoints, which `AuthMatrixTests` has: who may use them is data
/// here too.
@Suite("The matrix of other doors")
struct DoorMatrixTests {
  // MARK: The admin API

  /// Each call; with an empty body it fails for that alone, or does no harm.
  static let adminCalls = [
    "server/status", "server/housekeep", "server/rotate-key", "users/list", "users/create",
    "users/update", "users/delete", "users/restore", "users/reset-password", "users/sign-out",
    "server/renew-token", "tokens/own", "users/remove-factor", "users/devices",
    "users/revoke-device", "users/sign-in",
    "invitations/create", "tokens/list",
    "tokens/create", "tokens/remove", "keys/list", "keys/add", "keys/remove", "schema/export",
    "schema/validate", "schema/import", "schema/diff", "schema/promote",
    "schema/reset-development", "schema/set-index", "schema/set-roles", "backup/create",
    "audit/list",
  ]

  enum Bearer: String, CaseIterable {
    case none, garbage, noScheme, apiToken, personsToken, refreshToken, invitation, expiredSession
    case disabledAdministrator, demotedAdministrator
    case `operator`, administrator

    /// The status that an unfit caller gets; nil where the call is let through.
    var refusal: Int? {
      switch self {
      case .operator, .administrator: nil
      case .demotedAdministrator: 403
      default: 401
      }
    }
  }

  @Test("The admin API opens to the operator and to administrators", arguments: Bearer.allCases)
  func administration(bearer: Bearer) async throws {
    let world = try await DoorWorld()
    let header = try #require(world.headers[bearer])
    var wrong: [String] = []
    for call in Self.adminCalls {
      let response = await world.server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: "/admin/1/\(call)",
          headers: header.map { ["authorization": $0] } ?? [:],
          body: Data("{}".utf8)
        )
      )
      // Let through, a call is known and meets its empty body.
      let isRight =
        bearer.refusal.map { $0 == response.status } ?? [200, 400].contains(response.status)
      if !isRight { wrong.append("\(call): \(response.status)") }
      #expect(response.headers["access-control-allow-origin"] == nil)
    }
    #expect(wrong == [])
  }

  @Test("Nobody becomes an administrator by signing in as one is not")
  func adminSessions() async throws {
    let world = try await DoorWorld()
    for (user, password, expected) in [
      ("root", "long enough", 200), ("root", "wrong", 401), ("ada", "secret", 403),
      ("nobody", "secret", 401), ("shut", "long enough", 401),
    ] {
      let response = await world.server.send(
        "POST",
        "/admin/1/session/start",
        body: Data(#"{"userName":"\#(user)","password":"\#(password)"}"#.utf8)
      )
      #expect(response.status == expected, "\(user) with \(password)")
    }
  }

  // MARK: Addresses that are rights in themselves

  enum Capability: String, CaseIterable {
    case upload, download, webcourier, events, share
  }

  enum Holding: String, CaseIterable {
    case right, changed, empty, otherKinds, expired
  }

  static let opens: [Capability: [Holding: Int]] = [
    .upload: [.right: 200, .changed: 403, .empty: 404, .otherKinds: 403, .expired: 403],
    .download: [.right: 200, .changed: 403, .empty: 404, .otherKinds: 403, .expired: 403],
    // A device's own address lives as long as the device.
    .webcourier: [.right: 200, .changed: 404, .empty: 404, .otherKinds: 404, .expired: 200],
    .events: [.right: 200, .changed: 404, .empty: 404, .otherKinds: 404, .expired: 200],
    .share: [.right: 200, .changed: 404, .empty: 404, .otherKinds: 404, .expired: 200],
  ]

  @Test("An address opens what it was made for, while it lasts", arguments: Capability.allCases)
  func capabilities(capability: Capability) async throws {
    for holding in Holding.allCases {
      let world = try await DoorWorld()
      let expected = try #require(Self.opens[capability]?[holding])
      let found = try await world.status(of: capability, holding)
      #expect(found == expected, "\(holding)")
    }
  }

  // MARK: Calls about accounts

  /// A call, what is wrong with it, and its status.
  struct AccountCall: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var verb: String
    var body: String
    var apiToken: String?
    var status: Int

    init(
      _ description: String,
      _ verb: String,
      _ body: String,
      apiToken: String? = "$token",
      _ status: Int
    ) {
      testDescription = description
      self.verb = verb
      self.body = body
      self.apiToken = apiToken
      self.status = status
    }

    static let password = #"{"userName":"ada","password":"secret","container":"iCloud.example"}"#
    static let grant = "grant_type=urn:ietf:params:oauth:grant-type:device_code"

    static let all = [
      AccountCall("the right password", "sign-in", password, 200),
      AccountCall("no API token", "sign-in", password, apiToken: nil, 401),
      AccountCall("an unknown API token", "sign-in", password, apiToken: "x", 401),
      AccountCall("another container's API token", "sign-in", password, apiToken: "$other", 401),
      AccountCall(
        "a wrong password",
        "sign-in",
        password.replacing("secret", with: "wrong"),
        401
      ),
      AccountCall(
        "nobody's name",
        "sign-in",
        password.replacing("ada", with: "nobody"),
        401
      ),
      AccountCall(
        "a shut account",
        "sign-in",
        password.replacing("ada", with: "shut").replacing("secret", with: "long enough"),
        401
      ),
      AccountCall("no container", "sign-in", password.replacing("iCloud.example", with: ""), 400),
      AccountCall("a refresh token", "refresh", #"{"refreshToken":"$refresh"}"#, 200),
      AccountCall("no refresh token", "refresh", #"{"refreshToken":""}"#, 401),
      AccountCall("a user token as one", "refresh", #"{"refreshToken":"$person"}"#, 401),
      AccountCall("a device's without its secret", "refresh", #"{"refreshToken":"$id."}"#, 401),
      AccountCall("signing out", "sign-out", #"{"refreshToken":"$refresh"}"#, 200),
      AccountCall("signing somebody out", "sign-out", #"{"refreshToken":"$id.x"}"#, 401),
      AccountCall("deleting by a user token", "delete", #"{"refreshToken":"$person"}"#, 400),
      AccountCall(
        "deleting with a wrong password",
        "delete",
        #"{"userName":"ada","password":"wrong"}"#,
        401
      ),
      AccountCall("deleting", "delete", #"{"userName":"ada","password":"secret"}"#, 200),
      AccountCall("a code", "device", "client_id=$token&scope=iCloud.example", 200),
      AccountCall("a code for nobody's app", "device", "client_id=x&scope=iCloud.example", 401),
      AccountCall(
        "a code for another's app",
        "device",
        "client_id=$other&scope=iCloud.example",
        401
      ),
      AccountCall("a code for no container", "device", "client_id=$token", 400),
      AccountCall("a device code nobody gave out", "token", grant + "&device_code=x.y", 400),
      AccountCall("tokens for nothing", "token", "", 400),
      AccountCall(
        "a refresh token in OAuth's form",
        "token",
        "grant_type=refresh_token&refresh_token=$refresh",
        200
      ),
      AccountCall(
        "a user token in OAuth's form",
        "token",
        "grant_type=refresh_token&refresh_token=$person",
        400
      ),
      AccountCall("something else", "become", "{}", 404),
    ]
  }

  @Test("Calls about accounts do what their credential allows", arguments: AccountCall.all)
  func accounts(call: AccountCall) async throws {
    let world = try await DoorWorld()
    let query = call.apiToken.map { "?ckAPIToken=\(world.filled($0))" } ?? ""
    let response = await world.server.send(
      "POST",
      "/account/\(call.verb)\(query)",
      body: Data(world.filled(call.body).utf8)
    )
    #expect(response.status == call.status)
    let read = await world.server.send("GET", "/account/\(call.verb)\(query)")
    #expect(read.status == 404)
  }

  @Test("Pages that change something change nothing for who only opens them")
  func pages() async throws {
    let world = try await DoorWorld()
    let before = try world.server.service.accountDescriptions()
    for page in [
      "/activate?user_code=BCDF-GHJK&user=ada&password=secret",
      "/sign-up?user=x&password=0123456789",
      "/delete-account?user=ada&password=secret", "/reset-password?code=x&password=0123456789",
    ] {
      let response = await world.server.send("GET", page)
      #expect([200, 400, 403].contains(response.status), "\(page)")
    }
    #expect(try world.server.service.accountDescriptions() == before)
  }
}

/// A server with an administrator, a person with a device, and what each of them holds.
private struct DoorWorld {
  let server: TestServer
  let ada: Person
  let headers: [DoorMatrixTests.Bearer: String?]
  private let device: DeviceCredentials
  private let otherToken: String
  private let addresses: [DoorMatrixTests.Capability: String]

  init() async throws {
    server = try await TestServer(
      registration: .closed,
      administratorToken: "operator's own"
    )
    let service = server.service
    for name in ["root", "early", "shut", "demoted"] {
      try await service.createAccount(
        userName: name,
        password: "long enough",
        isAdministrator: true
      )
    }
    ada = try await server.person()
    let early = try await Self.session("early", server)
    server.clock.advance(seconds: 24 * 3600)
    let shut = try await Self.session("shut", server)
    try await service.changeAccount("shut", .init(isDisabled: true))
    let demoted = try await Self.session("demoted", server)
    try await service.changeAccount("demoted", .init(isAdministrator: false))
    otherToken = try await service.createAPIToken(container: "iCloud.other")
    let signIn = await server.send(
      "POST",
      "/account/sign-in?ckAPIToken=\(server.apiToken)",
      body: Data(DoorMatrixTests.AccountCall.password.utf8)
    )
    device = try WireCoding.decode(DeviceCredentials.self, from: signIn.body)
    headers = [
      .none: String?.none, .garbage: "Bearer x", .noScheme: "operator's own",
      .apiToken: "Bearer \(server.apiToken)", .personsToken: "Bearer \(ada.webAuthToken ?? "")",
      .refreshToken: "Bearer \(device.refreshToken)",
      .invitation: "Bearer \(try await service.invite(isAdministrator: true))",
      .expiredSession: "Bearer \(early)", .disabledAdministrator: "Bearer \(shut)",
      .demotedAdministrator: "Bearer \(demoted)", .operator: "Bearer operator's own",
      .administrator: "bearer \(try await Self.session("root", server))",
    ]
    try await ada.makeZone()
    try await ada.save(
      .create,
      "a",
      ["file": .asset(try await ada.upload(Data([1])))]
    )
    let share = try await ada.share("a", publicPermission: .readOnly)
    let url = try #require(try await ada.lookup("a").content("file")?.assets[0].downloadURL)
    // There is something to tell, so that a poll does not wait.
    let _: SubscriptionsResponse = try await ada.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(
          operationType: .create,
          subscription: Subscription(subscriptionID: "s", subscriptionType: .database)
        )
      ])
    )
    let push: DeviceTokenResponse = try await ada.extended.call(
      .createToken,
      DeviceTokenRequest(apnsEnvironment: "development"),
      in: nil
    )
    addresses = [
      .upload: try await ada.uploadPath(),
      .download: String(url.dropFirst("http://127.0.0.1:8080".count)),
      .webcourier: "/webcourier/\(push.apnsToken)", .events: "/events/\(push.apnsToken)",
      .share: "/share/\(share.shortGUID ?? "")",
    ]
  }

  private static func session(_ userName: String, _ server: TestServer) async throws -> String {
    let response = await server.send(
      "POST",
      "/admin/1/session/start",
      body: Data(#"{"userName":"\#(userName)","password":"long enough"}"#.utf8)
    )
    return try WireCoding.decode(AdminSession.self, from: response.body).token
  }

  func filled(_ text: String) -> String {
    text.replacing("$token", with: server.apiToken).replacing("$other", with: otherToken)
      .replacing("$refresh", with: device.refreshToken)
      .replacing("$person", with: ada.webAuthToken ?? "")
      .replacing("$id", with: device.refreshToken.prefix { $0 != "." })
  }

  func status(
    of capability: DoorMatrixTests.Capability,
    _ holding: DoorMatrixTests.Holding
  ) async throws -> Int {
    let address = try #require(addresses[capability])
    let parts = address.split(separator: "/")
    let place = "/" + parts.dropLast().joined(separator: "/") + "/"
    let secret = String(parts.last ?? "")
    var path = address
    switch holding {
    case .right: break
    case .changed:
      let last = secret.last == "A" ? "B" : "A"
      path = place + secret.dropLast() + last
    case .empty: path = place
    case .otherKinds:
      let others: [DoorMatrixTests.Capability: DoorMatrixTests.Capability] = [
        .upload: .download, .download: .upload, .webcourier: .share, .events: .download,
        .share: .webcourier,
      ]
      let other = try #require(others[capability].flatMap { addresses[$0] })
      path = place + (other.split(separator: "/").last ?? "")
    case .expired: server.clock.advance(seconds: 2 * 24 * 3600)
    }
    guard capability != .events else {
      do {
        _ = try server.service.openEventStream(path: path, lastEventID: nil)
        return 200
      } catch let error as ErrorDictionary {
        return error.serverErrorCode.httpStatus
      }
    }
    return await server.send(capability == .upload ? "POST" : "GET", path).status
  }
}
