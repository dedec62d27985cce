import AsyncHTTPClient
import CloudKitServer
import Crypto
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOHTTP1

/// Signs users in at an OpenID Connect issuer, with the authorization code flow and PKCE.
package actor OpenIDProvider: IdentityProvider {
  private let settings: OpenIDSettings
  private let patience: TimeAmount
  private let now: @Sendable () -> Date
  /// The issuer's discovery document, and when it expires.
  private var discovered: (document: OpenIDDiscovery, until: Date)?
  /// The issuer's keys, and when they expire: a withdrawn key must not stay valid.
  private var keys: (set: OpenIDKeys, until: Date)?

  package nonisolated var name: String { settings.name }
  package nonisolated var registration: RegistrationPolicy? { settings.registration }
  package nonisolated var linksByEmail: Bool { settings.linksByEmail }

  /// `patience`: the longest wait for a reply of the issuer, while a user waits for the page.
  package init(
    _ settings: OpenIDSettings,
    patience: TimeAmount = .seconds(10),
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.settings = settings
    self.patience = patience
    self.now = now
  }

  // MARK: To the issuer

  package func signInAddress(
    _ challenge: IdentityChallenge,
    state: String
  ) async throws -> String {
    let endpoint = try await discovery().authorizationEndpoint
    let digest = Data(SHA256.hash(data: Data(challenge.verifier.utf8)))
    var items = [
      ("response_type", "code"), ("client_id", settings.clientID),
      ("redirect_uri", challenge.redirectURL), ("scope", settings.scopes.joined(separator: " ")),
      ("state", state), ("nonce", challenge.nonce),
      ("code_challenge", Self.base64URL(digest)), ("code_challenge_method", "S256"),
    ]
    if challenge.requiresAuthenticationSince != nil {
      items += [("prompt", "login"), ("max_age", "0")]
    }
    return endpoint + (endpoint.contains("?") ? "&" : "?") + Self.form(items)
  }

  // MARK: Return

  package func identity(
    code: String,
    _ challenge: IdentityChallenge
  ) async throws -> ExternalIdentity {
    let discovery = try await discovery()
    let tokens = try await trade(code, challenge, discovery)
    var claims = try await verify(tokens.idToken, discovery)
    do {
      try claims.check(
        issuer: settings.issuer,
        clientID: settings.clientID,
        nonce: challenge.nonce,
        now: now(),
        requiresAuthenticationSince: challenge.requiresAuthenticationSince.map {
          Date(timeIntervalSince1970: Double($0) / 1000)
        }
      )
    } catch {
      throw IdentityFailure(.refused, "\(error)")
    }
    if claims.person.email == nil, let endpoint = discovery.userinfoEndpoint,
      let token = tokens.accessToken
    {
      claims.person = try await moreOf(claims, endpoint, token)
    }
    return ExternalIdentity(
      issuer: claims.iss,
      subject: claims.sub,
      emailAddress: claims.person.verifiedEmail,
      userName: claims.person.preferredUserName,
      givenName: claims.person.givenName ?? claims.person.name,
      familyName: claims.person.familyName
    )
  }

  private struct Tokens: Decodable {
    var idToken: String
    var accessToken: String?

    private enum CodingKeys: String, CodingKey {
      case idToken = "id_token"
      case accessToken = "access_token"
    }
  }

  private struct Refusal: Decodable {
    var error: String
  }

  /// Exchanges the code; the verifier proves that it was issued to this server.
  private func trade(
    _ code: String,
    _ challenge: IdentityChallenge,
    _ discovery: OpenIDDiscovery
  ) async throws -> Tokens {
    var items = [
      ("grant_type", "authorization_code"), ("code", code),
      ("redirect_uri", challenge.redirectURL), ("code_verifier", challenge.verifier),
    ]
    var request = HTTPClientRequest(url: discovery.tokenEndpoint)
    request.method = .POST
    request.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
    if let secret = settings.clientSecret, discovery.takesBasicAuthentication {
      let pair = "\(Self.escape(settings.clientID)):\(Self.escape(secret))"
      let value = Data(pair.utf8).base64EncodedString()
      request.headers.add(name: "authorization", value: "Basic \(value)")
    } else {
      items.append(("client_id", settings.clientID))
      if let secret = settings.clientSecret { items.append(("client_secret", secret)) }
    }
    request.body = .bytes(ByteBuffer(string: Self.form(items)))
    let (status, body) = try await send(request, "token endpoint")
    guard status == 200 else {
      let word = (try? JSONDecoder().decode(Refusal.self, from: body))?.error ?? ""
      throw IdentityFailure(
        status >= 500 ? .unavailable : .refused,
        "the token endpoint answered \(status) \(word.prefix(64))"
      )
    }
    return try Self.decode(body, "token endpoint")
  }

  /// The claims of a token with a valid signature.
  private func verify(
    _ token: String,
    _ discovery: OpenIDDiscovery
  ) async throws -> OpenIDClaims {
    do {
      if let keys, keys.until > now() {
        do {
          return try await keys.set.verify(token)
        } catch OpenIDKeys.Failure.unknownKey {
          // The issuer has replaced its keys since.
        }
      }
      let (status, body) = try await send(HTTPClientRequest(url: discovery.keys), "key set")
      guard status == 200 else {
        throw IdentityFailure(.unavailable, "the key set answered \(status)")
      }
      let fetched = try OpenIDKeys(json: body)
      keys = (fetched, now() + 3600)
      return try await fetched.verify(token)
    } catch let failure as OpenIDKeys.Failure {
      throw IdentityFailure(.refused, "\(failure)")
    }
  }

  /// The userinfo of a user besides the token; only of the token's own subject.
  private func moreOf(
    _ claims: OpenIDClaims,
    _ endpoint: String,
    _ accessToken: String
  ) async throws -> OpenIDClaims.Person {
    var request = HTTPClientRequest(url: endpoint)
    request.headers.add(name: "authorization", value: "Bearer \(accessToken)")
    let (status, body) = try await send(request, "userinfo endpoint")
    guard status == 200,
      let answer = try? JSONDecoder().decode(OpenIDClaims.UserInformation.self, from: body),
      answer.sub == claims.sub
    else { return claims.person }
    return claims.person.filled(from: answer.person)
  }

  // MARK: Discovery

  private func discovery() async throws -> OpenIDDiscovery {
    if let discovered, discovered.until > now() { return discovered.document }
    var issuer = settings.issuer
    if issuer.hasSuffix("/") { issuer.removeLast() }
    let request = HTTPClientRequest(url: issuer + "/.well-known/openid-configuration")
    let (status, body) = try await send(request, "discovery document")
    guard status == 200 else {
      throw IdentityFailure(.unavailable, "the discovery document answered \(status)")
    }
    let document: OpenIDDiscovery = try Self.decode(body, "discovery document")
    guard document.issuer == settings.issuer else {
      throw IdentityFailure(
        .unavailable,
        "the issuer names itself \(document.issuer.prefix(200)), and the configuration "
          + settings.issuer
      )
    }
    if let address = document.addresses.first(where: { !OpenIDSettings.isSafe($0) }) {
      throw IdentityFailure(.unavailable, "\(address.prefix(200)) is not an HTTPS address")
    }
    discovered = (document, now() + 3600)
    return document
  }

  // MARK: Network

  /// A client that follows no redirects, which could send secrets elsewhere.
  private static let client: HTTPClient = {
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.redirectConfiguration = .disallow
    // A user waits for the page, so a refused connection is not retried.
    configuration.connectionPool.retryConnectionEstablishment = false
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }()

  private static let largestAnswer = 1_048_576

  private func send(
    _ request: HTTPClientRequest,
    _ what: String
  ) async throws -> (status: Int, body: Data) {
    var request = request
    request.headers.add(name: "accept", value: "application/json")
    do {
      let response = try await Self.client.execute(request, timeout: patience)
      let body = try await response.body.collect(upTo: Self.largestAnswer)
      return (Int(response.status.code), Data(buffer: body))
    } catch {
      throw IdentityFailure(.unavailable, "the \(what) could not be reached: \(error)")
    }
  }

  private static func decode<Value: Decodable>(_ body: Data, _ what: String) throws -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: body)
    } catch {
      // The error itself is not included, because it could quote a token.
      throw IdentityFailure(.unavailable, "the \(what) sent an unexpected reply")
    }
  }

  static func base64URL(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }

  private static func form(_ items: [(String, String)]) -> String {
    items.map { "\($0.0)=\(escape($0.1))" }.joined(separator: "&")
  }

  private static func escape(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
  }

  private static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
  )
}
