import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import NIOCore

/// A user's browser: it keeps a cookie and follows redirects, one step at a time.
final class TestBrowser {
  private let cloud: TestCloud
  /// The sign-in page to which it was redirected.
  let page: String
  private var cookie: String?
  /// The URL to which it last returned.
  private(set) var lastReturn: String?

  private static let client: HTTPClient = {
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.redirectConfiguration = .disallow
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }()

  /// Opens the sign-in page of an API token, by default one that sends the token to a URL.
  init(_ cloud: TestCloud, apiToken: String? = nil, origin: String? = nil) async throws {
    self.cloud = cloud
    let token: String
    if let apiToken {
      token = apiToken
    } else {
      token = try await cloud.service.createAPIToken(
        container: TestCloud.container,
        redirectURL: "https://app.example/after"
      )
    }
    var headers: [String: String] = [:]
    if let origin { headers["origin"] = origin }
    let reply = await cloud.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/database/1/\(TestCloud.container)/development/private/users/caller"
          + "?ckAPIToken=\(token)",
        headers: headers,
        body: Data("{}".utf8)
      )
    )
    let object = try JSONSerialization.jsonObject(with: reply.body) as? [String: Any]
    page = object?["redirectURL"] as? String ?? ""
  }

  func openPage() async throws -> String { try await get(page).text }

  func begin(_ more: String = "") async throws -> HTTPReply {
    try await post(page + more, "with=identity&keep=on")
  }

  /// Opens the issuer's page and returns the URL to which that redirects.
  func visitIssuer() async throws -> String {
    let begun = try await begin()
    let back = try await get(begun.headers["location"] ?? "")
    return back.headers["location"] ?? ""
  }

  func finish(_ begun: HTTPReply) async throws -> HTTPReply {
    let back = try await get(begun.headers["location"] ?? "")
    lastReturn = back.headers["location"] ?? ""
    return try await get(lastReturn ?? "")
  }

  func signIn() async throws -> HTTPReply { try await finish(try await begin()) }

  /// Whether a user with a new browser returns signed in.
  static func signsIn(_ cloud: TestCloud) async throws -> Bool {
    try await token(TestBrowser(cloud).signIn()) != nil
  }

  /// The token in an app's callback URL.
  static func token(_ reply: HTTPReply) -> String? {
    guard reply.status == 303, let address = reply.headers["location"],
      address.hasPrefix("https://app.example/after?")
    else { return nil }
    return TestIssuer.items(URLComponents(string: address)?.percentEncodedQuery ?? "")[
      "ckWebAuthToken"
    ]
  }

  /// The hidden field of a page's form that identifies the returned user.
  static func ticket(_ reply: HTTPReply) -> String? {
    let field = reply.text.firstMatch(of: /name="ticket" type="hidden" value="([^"]+)"/)
    return field.map { String($0.1) }
  }

  func get(_ url: String) async throws -> HTTPReply { try await send(HTTPClientRequest(url: url)) }

  func post(_ url: String, _ form: String) async throws -> HTTPReply {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
    request.body = .bytes(ByteBuffer(string: form))
    return try await send(request)
  }

  private func send(_ request: HTTPClientRequest) async throws -> HTTPReply {
    var request = request
    if let cookie, request.url.hasPrefix(cloud.url) {
      request.headers.add(name: "cookie", value: "other=1; \(cookie)")
    }
    let response = try await Self.client.execute(request, timeout: .minutes(10))
    var headers: [String: String] = [:]
    for (name, value) in response.headers { headers[name.lowercased()] = value }
    if let given = headers["set-cookie"] { cookie = String(given.prefix { $0 != ";" }) }
    let body = try await response.body.collect(upTo: 1_000_000)
    return HTTPReply(
      status: Int(response.status.code),
      headers: headers,
      body: Data(buffer: body)
    )
  }
}

/// Runs the body with an issuer, and a server at which its users can sign in.
func withIssuer(
  registration: RegistrationPolicy,
  logger: Logger = .quiet,
  adjust: (inout OpenIDSettings) -> Void = { _ in },
  _ body: (TestIssuer, TestCloud) async throws -> Void
) async throws {
  let issuer = try await TestIssuer()
  var settings = issuer.settings
  adjust(&settings)
  let provider = OpenIDProvider(settings, patience: .minutes(10))
  let outcome: Result<Void, any Error>
  do {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(
        in: folder,
        adjust: {
          $0.registration = registration
          $0.identityProvider = provider
          $0.logger = logger
        }
      ) { try await body(issuer, $0) }
    }
    outcome = .success(())
  } catch {
    outcome = .failure(error)
  }
  try await issuer.stop()
  try outcome.get()
}
