import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// The paths besides the documented endpoints, which `EndpointMatrixTests` has: the access rights
/// are data here too.
@Suite("The access matrix of pages, calls and URLs")
struct PathMatrixTests {
  // MARK: The admin API

  /// Each call with a bearer token; an empty body makes it fail, or has no effect.
  static let adminCalls = AdminEndpoint.all.filter { $0.noun != "session" }

  enum Bearer: String, CaseIterable {
    case none, garbage, noScheme, apiToken, personsToken, refreshToken, invitation, expiredSession
    case disabledAdministrator, demotedAdministrator
    case `operator`, administrator

    /// The status for a caller without the right; nil if the call is allowed.
    var refusal: Int? {
      switch self {
      case .operator, .administrator: nil
      case .demotedAdministrator: 403
      default: 401
      }
    }
  }

  @Test("The admin API accepts the operator and administrators", arguments: Bearer.allCases)
  func administration(bearer: Bearer) async throws {
    let world = try await PathMatrixWorld()
    let header = try #require(world.headers[bearer])
    var wrong: [String] = []
    for call in Self.adminCalls {
      let response = await world.server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: call.path,
          headers: header.map { ["authorization": $0] } ?? [:],
          body: Data("{}".utf8)
        )
      )
      // An allowed call is routed and fails because of its empty body.
      let isRight =
        bearer.refusal.map { $0 == response.status } ?? [200, 400].contains(response.status)
        // A backup has the keys, so it takes the operator's token.
        || bearer == .administrator && [.backup(.stream), .backup(.confirm)].contains(call)
          && response.status == 403
      if !isRight { wrong.append("\(call.path): \(response.status)") }
      #expect(response.headers["access-control-allow-origin"] == nil)
    }
    #expect(wrong == [])
  }

  @Test("Signing in does not make a user an administrator")
  func adminSessions() async throws {
    let world = try await PathMatrixWorld()
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

  @Test("The path of each call of the admin API is routed to it", arguments: AdminEndpoint.all)
  func adminPaths(call: AdminEndpoint) {
    #expect(AdminEndpoint(noun: call.noun, verb: call.verb) == call)
  }

  // MARK: Paths beside the documented endpoints

  /// The replies to a request without credentials at a path of one part: the status of a `GET` and
  /// of a `POST` without a body.
  static func statuses(_ section: Route.Section) -> (get: Int, post: Int) {
    switch section {
    // Pages with a form that requires credentials.
    case .activate: (200, 200)
    case .deleteAccount, .myAccount: (200, 401)
    // Pages opened by a link.
    case .resetPassword, .verifyAddress: (400, 400)
    // The test's server sends no mail.
    case .forgotPassword: (404, 404)
    case .signIn: (401, 401)
    case .signUp: (403, 403)
    case .share, .account, .accountData, .admin, .assets, .events, .webcourier: (404, 404)
    // The HTTP adapter handles these.
    case .landing, .health, .healthz, .metrics, .ready, .readyz: (404, 404)
    }
  }

  @Test(
    "Each path replies to callers without credentials as in the table",
    arguments: Route.Section.allCases
  )
  func sections(section: Route.Section) async throws {
    let world = try await PathMatrixWorld()
    let expected = Self.statuses(section)
    for path in ["/\(section.rawValue)", "/\(section.rawValue)?user=ada&container=iCloud.example"] {
      for (method, status) in [("GET", expected.get), ("POST", expected.post)] {
        let response = await world.server.send(method, path)
        #expect(response.status == status, "\(method) \(path)")
        let text = String(decoding: response.body, as: UTF8.self) + "\(response.headers)"
        #expect(!text.contains(PathMatrixWorld.marker), "\(method) \(path)")
        #expect(!text.contains("ada@example.com"), "\(method) \(path)")
      }
    }
  }

  // MARK: Calls about the own account

  enum AccountCaller: String, CaseIterable {
    case noCredential, unknownToken, foreignOrigin, tokenAlone, garbage, expiredSession,
      endedSession
    case administratorsSession, disabledAccount, person

    var isLetThrough: Bool {
      switch self {
      case .noCredential, .unknownToken, .foreignOrigin, .tokenAlone, .garbage, .expiredSession,
        .endedSession, .administratorsSession, .disabledAccount:
        false
      case .person: true
      }
    }
  }

  @Test(
    "Calls about the own account accept only the user's valid token",
    arguments: OwnAccountCall.allCases
  )
  func ownAccount(call: OwnAccountCall) async throws {
    let world = try await PathMatrixWorld()
    for caller in AccountCaller.allCases {
      let response = await world.ask(call, as: caller)
      #expect((response.status != 401) == caller.isLetThrough, "\(caller): \(response.status)")
    }
  }

  @Test("Each call about accounts has rows in the table")
  func accountRows() {
    let known = Set(AccountCall.all.compactMap { AccountVerb(rawValue: $0.verb) })
    #expect(known == Set(AccountVerb.allCases))
  }

  // MARK: Capability URLs

  enum Capability: String, CaseIterable {
    case upload, download, webcourier, events, share
  }

  enum Holding: String, CaseIterable {
    case right, changed, empty, otherKinds, expired
  }

  static let opens: [Capability: [Holding: Int]] = [
    .upload: [.right: 200, .changed: 403, .empty: 404, .otherKinds: 403, .expired: 403],
    .download: [.right: 200, .changed: 403, .empty: 404, .otherKinds: 403, .expired: 403],
    // A device's event URL is valid as long as the device.
    .webcourier: [.right: 200, .changed: 404, .empty: 404, .otherKinds: 404, .expired: 200],
    .events: [.right: 200, .changed: 404, .empty: 404, .otherKinds: 404, .expired: 200],
    .share: [.right: 200, .changed: 404, .empty: 404, .otherKinds: 404, .expired: 200],
  ]

  @Test("A capability URL is valid for its own purpose and time", arguments: Capability.allCases)
  func capabilities(capability: Capability) async throws {
    for holding in Holding.allCases {
      let world = try await PathMatrixWorld()
      let expected = try #require(Self.opens[capability]?[holding])
      let found = try await world.status(of: capability, holding)
      #expect(found == expected, "\(holding)")
    }
  }

  // MARK: Calls about accounts

  /// A call, its defect, and the resulting status.
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

  @Test(
    "Calls about accounts have the effect that their credential allows",
    arguments: AccountCall.all
  )
  func accounts(call: AccountCall) async throws {
    let world = try await PathMatrixWorld()
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

  @Test("Opening a page with a form changes nothing")
  func pages() async throws {
    let world = try await PathMatrixWorld()
    let before = try world.server.service.accounts.descriptions()
    for page in [
      "/activate?user_code=BCDF-GHJK&user=ada&password=secret",
      "/sign-up?user=x&password=0123456789",
      "/delete-account?user=ada&password=secret", "/reset-password?code=x&password=0123456789",
    ] {
      let response = await world.server.send("GET", page)
      #expect([200, 400, 403].contains(response.status), "\(page)")
    }
    #expect(try world.server.service.accounts.descriptions() == before)
  }
}
