import CloudKitServerHTTP
import CloudKitWebServices
import Crypto
import CryptoExtras
import Foundation
import Synchronization

/// An OpenID Connect issuer on its own port, which signs the claims that a test sets.
final class TestIssuer: Sendable {
  static let clientID = "watershed"
  static let clientSecret = "a secret: 100%"

  /// How the next tokens are created.
  struct Behaviour: Sendable {
    var claims: [String: JSONValue] = [
      "sub": "person-7", "email": "ada@example.org", "email_verified": true,
      "preferred_username": "ada", "given_name": "Ada",
    ]
    /// Replaces the header's algorithm.
    var algorithm: String?
    /// Changes the signed token.
    var spoil: @Sendable (String) -> String = { $0 }
    /// Claims that only the userinfo endpoint returns.
    var more: [String: JSONValue] = [:]
    var issuer: String?
    /// The error that the sign-in page returns instead of a code.
    var refusal: String?
    var publishesKeys = true
    /// Whether it returns the time of the authentication, if its age was limited.
    var saysWhen = true
    var usesRSA = false
  }

  /// Enough of JSON for claims.
  enum JSONValue: Sendable, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral
  {
    case text(String)
    case flag(Bool)
    case number(Int)
    case list([JSONValue])

    init(stringLiteral value: String) { self = .text(value) }
    init(booleanLiteral value: Bool) { self = .flag(value) }
    init(integerLiteral value: Int) { self = .number(value) }
    init(arrayLiteral elements: JSONValue...) { self = .list(elements) }

    var object: Any {
      switch self {
      case .text(let text): text
      case .flag(let flag): flag
      case .number(let number): number
      case .list(let list): list.map(\.object)
      }
    }
  }

  private struct Visit {
    var query: [String: String]
    var nonce: String { query["nonce"] ?? "" }
  }

  private struct State {
    var behaviour = Behaviour()
    var visits: [String: Visit] = [:]
    var ellipticKey = P256.Signing.PrivateKey()
    var keyName = "first"
    var address = ""
    var keyRequests = 0
  }

  private let state = Mutex(State())
  private let rsaKey: _RSA.Signing.PrivateKey
  private let server = Mutex<RunningHTTPServer?>(nil)

  var url: String { state.withLock { $0.address } }
  var keyRequests: Int { state.withLock { $0.keyRequests } }
  var code: String { state.withLock { $0.visits.keys.first ?? "" } }

  init() async throws {
    rsaKey = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let running = try await CloudKitHTTPServer(
      logger: .quiet,
      handlers: .init(respond: { [self] in respond(to: $0) })
    ).start()
    state.withLock { $0.address = running.address.text }
    server.withLock { $0 = running }
  }

  func stop() async throws {
    let running = server.withLock { server in
      defer { server = nil }
      return server
    }
    try await running?.stop()
  }

  func behave(_ change: @Sendable (inout Behaviour) -> Void) {
    state.withLock { change(&$0.behaviour) }
  }

  /// Signs with another key from now on.
  func changeKey() {
    state.withLock {
      $0.ellipticKey = P256.Signing.PrivateKey()
      $0.keyName = "second"
    }
  }

  var settings: OpenIDSettings {
    OpenIDSettings(
      issuer: url,
      clientID: Self.clientID,
      clientSecret: Self.clientSecret,
      name: "Test"
    )
  }

  // MARK: Endpoints

  private func respond(to request: WebServiceRequest) -> WebServiceResponse {
    let parts = URLComponents(string: request.path)
    switch parts?.path {
    case "/.well-known/openid-configuration":
      return json([
        "issuer": state.withLock { $0.behaviour.issuer } ?? url,
        "authorization_endpoint": url + "/authorize", "token_endpoint": url + "/token",
        "jwks_uri": url + "/keys", "userinfo_endpoint": url + "/person",
      ])
    case "/authorize": return authorize(Self.items(parts?.percentEncodedQuery ?? ""))
    case "/token": return trade(request)
    case "/keys": return keys()
    case "/person":
      let (claims, more) = state.withLock { ($0.behaviour.claims, $0.behaviour.more) }
      guard request.headers["authorization"] == "Bearer an access token" else {
        return json(["error": "invalid_token"], status: 401)
      }
      return json(more.merging(["sub": claims["sub"] ?? ""]) { $1 }.mapValues(\.object))
    default: return json(["error": "not_found"], status: 404)
    }
  }

  /// Signs in any user immediately and redirects back.
  private func authorize(_ query: [String: String]) -> WebServiceResponse {
    let code = UUID().uuidString
    let refusal = state.withLock { state in
      state.visits = [code: Visit(query: query)]
      return state.behaviour.refusal
    }
    let answer = refusal.map { "error=\($0)" } ?? "code=\(code)"
    let back = query["redirect_uri"] ?? ""
    return WebServiceResponse(
      status: 302,
      headers: ["location": "\(back)?\(answer)&state=\(query["state"] ?? "")"]
    )
  }

  private func trade(_ request: WebServiceRequest) -> WebServiceResponse {
    let form = Self.items(String(decoding: request.body, as: UTF8.self))
    let visit = state.withLock { $0.visits.removeValue(forKey: form["code"] ?? "") }
    let secret = "a%20secret%3A%20100%25"
    let basic = "Basic " + Data("\(Self.clientID):\(secret)".utf8).base64EncodedString()
    guard let visit, request.headers["authorization"] == basic,
      visit.query["redirect_uri"] == form["redirect_uri"],
      visit.query["code_challenge_method"] == "S256",
      visit.query["code_challenge"]
        == Self.base64URL(Data(SHA256.hash(data: Data((form["code_verifier"] ?? "").utf8))))
    else { return json(["error": "invalid_grant"], status: 400) }
    guard let token = try? token(for: visit) else { return json([:], status: 500) }
    return json([
      "id_token": token, "access_token": "an access token", "token_type": "Bearer",
    ])
  }

  private func token(for visit: Visit) throws -> String {
    let (behaviour, key, name) = state.withLock { ($0.behaviour, $0.ellipticKey, $0.keyName) }
    let time = Int(Date().timeIntervalSince1970)
    var claims: [String: JSONValue] = [
      "iss": .text(url), "aud": .text(Self.clientID), "nonce": .text(visit.nonce),
      "iat": .number(time), "exp": .number(time + 300),
    ]
    if visit.query["max_age"] != nil, behaviour.saysWhen { claims["auth_time"] = .number(time) }
    claims.merge(behaviour.claims) { $1 }
    let algorithm = behaviour.algorithm ?? (behaviour.usesRSA ? "RS256" : "ES256")
    let header = ["alg": algorithm, "kid": behaviour.usesRSA ? "rsa" : name]
    let parts = [header, claims.mapValues(\.object)] as [Any]
    let text = try parts.map {
      Self.base64URL(try JSONSerialization.data(withJSONObject: $0))
    }.joined(separator: ".")
    let signature =
      behaviour.usesRSA
      ? try rsaKey.signature(
        for: SHA256.hash(data: Data(text.utf8)),
        padding: .insecurePKCS1v1_5
      ).rawRepresentation
      : try key.signature(for: Data(text.utf8)).rawRepresentation
    return behaviour.spoil(text + "." + Self.base64URL(signature))
  }

  private func keys() -> WebServiceResponse {
    let (key, name, isPublished) = state.withLock { state in
      state.keyRequests += 1
      return (state.ellipticKey, state.keyName, state.behaviour.publishesKeys)
    }
    let point = key.publicKey.rawRepresentation
    guard isPublished, let rsa = try? rsaKey.publicKey.getKeyPrimitives() else {
      return json(["keys": [Any]()])
    }
    return json([
      "keys": [
        ["kty": "oct", "kid": name, "k": "AAAA"],
        [
          "kty": "EC", "crv": "P-256", "kid": name, "use": "sig",
          "x": Self.base64URL(point.prefix(32)), "y": Self.base64URL(point.suffix(32)),
        ],
        [
          "kty": "RSA", "kid": "rsa", "alg": "RS256", "n": Self.base64URL(rsa.modulus),
          "e": Self.base64URL(rsa.publicExponent),
        ],
      ]
    ])
  }

  private func json(_ object: [String: Any], status: Int = 200) -> WebServiceResponse {
    WebServiceResponse(
      status: status,
      headers: ["content-type": "application/json"],
      body: (try? JSONSerialization.data(withJSONObject: object)) ?? Data()
    )
  }

  static func items(_ text: String) -> [String: String] {
    var components = URLComponents()
    components.percentEncodedQuery = text
    let pairs = (components.queryItems ?? []).map { ($0.name, $0.value ?? "") }
    return Dictionary(pairs) { first, _ in first }
  }

  static func base64URL(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }
}
