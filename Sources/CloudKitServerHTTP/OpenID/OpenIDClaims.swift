import Foundation
import JWTKit

/// The claims of an ID token.
struct OpenIDClaims: JWTPayload, Hashable {
  var iss: String
  var sub: String
  var aud: [String]
  var azp: String?
  /// Seconds since 1970.
  var exp: Double
  var iat: Double?
  var nbf: Double?
  var nonce: String?
  /// When the user authenticated, in seconds since 1970.
  var provenAt: Double?
  var person: Person

  /// The user of the token.
  struct Person: Codable, Hashable, Sendable {
    var email: String?
    /// Some issuers send it as a text.
    private var isEmailVerified: Flag?
    var preferredUserName: String?
    var name: String?
    var givenName: String?
    var familyName: String?

    private enum CodingKeys: String, CodingKey {
      case email, name
      case isEmailVerified = "email_verified"
      case preferredUserName = "preferred_username"
      case givenName = "given_name"
      case familyName = "family_name"
    }

    var verifiedEmail: String? { isEmailVerified?.value == true ? email : nil }

    /// Adds missing claims from another source; an address keeps its own verification state.
    func filled(from other: Person) -> Person {
      var filled = self
      if email == nil {
        (filled.email, filled.isEmailVerified) = (other.email, other.isEmailVerified)
      }
      filled.preferredUserName = preferredUserName ?? other.preferredUserName
      filled.name = name ?? other.name
      filled.givenName = givenName ?? other.givenName
      filled.familyName = familyName ?? other.familyName
      return filled
    }
  }

  /// The reply of the userinfo endpoint.
  struct UserInformation: Decodable {
    var sub: String
    var person: Person

    private enum CodingKeys: String, CodingKey { case sub }

    init(from decoder: any Decoder) throws {
      sub = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .sub)
      person = try Person(from: decoder)
    }
  }

  struct Flag: Codable, Hashable, Sendable {
    var value: Bool

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        value = text == "true"
      } else {
        value = try container.decode(Bool.self)
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(value)
    }
  }

  private enum CodingKeys: String, CodingKey {
    case iss, sub, aud, azp, exp, iat, nbf, nonce
    case provenAt = "auth_time"
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    iss = try container.decode(String.self, forKey: .iss)
    sub = try container.decode(String.self, forKey: .sub)
    // A single audience may be a text instead of an array.
    aud =
      try (try? container.decode([String].self, forKey: .aud))
      ?? [container.decode(String.self, forKey: .aud)]
    azp = try container.decodeIfPresent(String.self, forKey: .azp)
    exp = try container.decode(Double.self, forKey: .exp)
    iat = try container.decodeIfPresent(Double.self, forKey: .iat)
    nbf = try container.decodeIfPresent(Double.self, forKey: .nbf)
    nonce = try container.decodeIfPresent(String.self, forKey: .nonce)
    provenAt = try container.decodeIfPresent(Double.self, forKey: .provenAt)
    person = try Person(from: decoder)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(iss, forKey: .iss)
    try container.encode(sub, forKey: .sub)
    try container.encode(aud, forKey: .aud)
    try container.encodeIfPresent(azp, forKey: .azp)
    try container.encode(exp, forKey: .exp)
    try container.encodeIfPresent(iat, forKey: .iat)
    try container.encodeIfPresent(nbf, forKey: .nbf)
    try container.encodeIfPresent(nonce, forKey: .nonce)
    try container.encodeIfPresent(provenAt, forKey: .provenAt)
    try person.encode(to: encoder)
  }

  /// The claims are checked against an attempt, which the signature's verification does not have.
  func verify(using algorithm: some JWTAlgorithm) async throws {}

  /// Why a token with a valid signature is not valid for this attempt.
  enum Mismatch: Error, Hashable, CustomStringConvertible {
    case issuer, subject, audience, party, expired, early, nonce, stale, undated

    var description: String {
      switch self {
      case .issuer: "the token is of another issuer"
      case .subject: "the token has no subject"
      case .audience: "the token is for another client"
      case .party: "the token was made for another client"
      case .expired: "the token has expired"
      case .early: "the token is not valid yet"
      case .nonce: "the token belongs to another attempt"
      case .stale: "the user did not authenticate again (auth_time)"
      case .undated: "the issuer does not report when the user authenticated (auth_time)"
      }
    }
  }

  /// The tolerated difference between clocks, in seconds.
  private static let tolerance = 60.0

  /// The checks of OpenID Connect Core, 3.1.3.7.
  ///
  /// If the request limited the age of the authentication, the token must contain it; otherwise it
  /// is refused.
  func check(
    issuer: String,
    clientID: String,
    nonce: String,
    now: Date,
    requiresAuthenticationSince: Date? = nil
  ) throws(Mismatch) {
    let time = now.timeIntervalSince1970
    guard iss == issuer else { throw .issuer }
    guard !sub.isEmpty, sub.count <= 255, !sub.contains(where: \.isNewline) else {
      throw .subject
    }
    guard aud.contains(clientID) else { throw .audience }
    guard azp == clientID || (azp == nil && aud.count == 1) else { throw .party }
    guard exp > time - Self.tolerance else { throw .expired }
    guard max(nbf ?? 0, iat ?? 0) < time + Self.tolerance else { throw .early }
    guard self.nonce == nonce else { throw .nonce }
    if let requiresAuthenticationSince {
      guard let provenAt else { throw .undated }
      guard provenAt > requiresAuthenticationSince.timeIntervalSince1970 - Self.tolerance else {
        throw .stale
      }
    }
  }
}
