import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// A server with an administrator, a user with a device, and their credentials.
struct PathMatrixWorld {
  /// In a record that only its owner may read.
  static let marker = "h1dden"

  let server: TestServer
  let ada: Person
  private let accountTokens: [PathMatrixTests.AccountCaller: String]
  private let originToken: String
  let headers: [PathMatrixTests.Bearer: String?]
  private let device: DeviceCredentials
  private let otherToken: String
  private let addresses: [PathMatrixTests.Capability: String]

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
    let early = try await Self.session("early", server)
    let old = try await server.person("old")
    server.clock.advance(seconds: 15 * 24 * 3600)
    ada = try await server.person()
    let shut = try await Self.session("shut", server)
    try await service.accounts.change("shut", .init(isDisabled: true))
    let demoted = try await Self.session("demoted", server)
    try await service.accounts.change("demoted", .init(isAdministrator: false))
    let ended = try await server.person("ended")
    try await service.sessions.signOutEverywhere("ended")
    let closed = try await server.person("closed")
    try await service.accounts.change("closed", .init(isDisabled: true))
    let session = try await Self.session("root", server)
    accountTokens = [
      .garbage: "%%%", .expiredSession: old.webAuthToken ?? "",
      .endedSession: ended.webAuthToken ?? "", .disabledAccount: closed.webAuthToken ?? "",
      .administratorsSession: session,
    ]
    originToken = try await service.createAPIToken(
      container: TestServer.container,
      allowedOrigins: ["https://app.example"]
    )
    otherToken = try await service.createAPIToken(container: "iCloud.other")
    let signIn = await server.send(
      "POST",
      "/account/sign-in?ckAPIToken=\(server.apiToken)",
      body: Data(PathMatrixTests.AccountCall.password.utf8)
    )
    device = try WireCoding.decode(DeviceCredentials.self, from: signIn.body)
    headers = [
      .none: String?.none, .garbage: "Bearer x", .noScheme: "operator's own",
      .apiToken: "Bearer \(server.apiToken)", .personsToken: "Bearer \(ada.webAuthToken ?? "")",
      .refreshToken: "Bearer \(device.refreshToken)",
      .invitation: "Bearer \(try await service.accounts.invite(isAdministrator: true))",
      .expiredSession: "Bearer \(early)", .disabledAdministrator: "Bearer \(shut)",
      .demotedAdministrator: "Bearer \(demoted)", .operator: "Bearer operator's own",
      .administrator: "bearer \(session)",
    ]
    try await ada.makeZone()
    try await ada.save(.create, "c", ["title": .string(Self.marker)])
    try await ada.save(
      .create,
      "a",
      ["file": .asset(try await ada.upload(Data([1])))]
    )
    let share = try await ada.share("a", publicPermission: .readOnly)
    let url = try #require(try await ada.lookup("a").content("file")?.assets[0].downloadURL)
    // There is a notification, so that a poll returns immediately.
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

  /// Sends a call about the own account without parameters.
  func ask(
    _ call: OwnAccountCall,
    as caller: PathMatrixTests.AccountCaller
  ) async -> WebServiceResponse {
    var items: [(name: String, value: String)] = []
    switch caller {
    case .noCredential: break
    case .unknownToken: items.append((WebServiceName.apiToken, "0123"))
    case .foreignOrigin: items.append((WebServiceName.apiToken, originToken))
    default: items.append((WebServiceName.apiToken, server.apiToken))
    }
    if let token = caller.isLetThrough || items.isEmpty ? ada.webAuthToken : accountTokens[caller] {
      items.append((WebServiceName.webAuthToken, token))
    } else if [.unknownToken, .foreignOrigin].contains(caller), let token = ada.webAuthToken {
      items.append((WebServiceName.webAuthToken, token))
    }
    let query = items.map { "\($0.name)=\(WebServicePath.escape($0.value))" }
    return await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/account/\(call.rawValue)?\(query.joined(separator: "&"))",
        headers: caller == .foreignOrigin ? ["origin": "https://evil.example"] : [:],
        body: Data("{}".utf8)
      )
    )
  }

  func status(
    of capability: PathMatrixTests.Capability,
    _ holding: PathMatrixTests.Holding
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
      let others: [PathMatrixTests.Capability: PathMatrixTests.Capability] = [
        .upload: .download, .download: .upload, .webcourier: .share, .events: .download,
        .share: .webcourier,
      ]
      let other = try #require(others[capability].flatMap { addresses[$0] })
      path = place + (other.split(separator: "/").last ?? "")
    case .expired: server.clock.advance(seconds: 2 * 24 * 3600)
    }
    guard capability != .events else {
      do {
        _ = try server.service.devices.openEventStream(path: path, lastEventID: nil)
        return 200
      } catch let error as ErrorDictionary {
        return error.serverErrorCode.httpStatus
      }
    }
    return await server.send(capability == .upload ? "POST" : "GET", path).status
  }
}
