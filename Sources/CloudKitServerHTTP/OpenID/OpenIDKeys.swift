import Foundation
import JWTKit

/// The keys with which an issuer signs.
struct OpenIDKeys: Sendable {
  /// Why a token's signature is invalid.
  enum Failure: Error, Hashable, CustomStringConvertible {
    case unknownKey
    case algorithm(String)
    case malformed
    case signature
    case noKeys

    var description: String {
      switch self {
      case .unknownKey: "no key of the issuer has signed the token"
      case .algorithm(let name): "the token's algorithm \(name) is not accepted"
      case .malformed: "the token cannot be read"
      case .signature: "the token's signature is not valid"
      case .noKeys: "the issuer's key set cannot be read"
      }
    }
  }

  private let keys: [JWK]

  /// Reads the keys that verify signatures; unknown types are ignored.
  init(json: Data) throws(Failure) {
    guard let object = try? JSONSerialization.jsonObject(with: json) as? [String: Any],
      let entries = object["keys"] as? [[String: Any]]
    else { throw .noKeys }
    keys = entries.prefix(100).compactMap { entry in
      guard entry["use"] as? String != "enc",
        let data = try? JSONSerialization.data(withJSONObject: entry)
      else { return nil }
      return try? JSONDecoder().decode(JWK.self, from: data)
    }
  }

  /// The key type of each accepted algorithm: no symmetric ones, whose key the client has too, and
  /// never `none`.
  private static let algorithms: [String: JWK.KeyType] = [
    "RS256": .rsa, "RS384": .rsa, "RS512": .rsa, "PS256": .rsa, "PS384": .rsa, "PS512": .rsa,
    "ES256": .ecdsa, "ES384": .ecdsa, "ES512": .ecdsa, "EdDSA": .octetKeyPair,
  ]

  private struct Header: Decodable {
    var alg: String
    var kid: String?
    /// Names of extensions that a reader must support; this one supports none.
    var crit: [String]?
  }

  /// The claims of a token, after its signature was verified.
  func verify(_ token: String) async throws(Failure) -> OpenIDClaims {
    let parts = token.split(ascii: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let data = Self.bytes(parts[0]),
      let header = try? JSONDecoder().decode(Header.self, from: data), header.crit == nil
    else { throw .malformed }
    guard let kind = Self.algorithms[header.alg] else {
      throw .algorithm(String(header.alg.prefix(16).filter { $0.isASCII && $0.isLetter }))
    }
    let fitting = keys.filter { key in
      key.keyType == kind && (key.algorithm.map { $0.rawValue == header.alg } ?? true)
        && (header.kid == nil || key.keyIdentifier?.string == header.kid)
    }
    // Without a key ID there must be only one matching key.
    guard var key = fitting.first, header.kid != nil || fitting.count == 1 else {
      throw .unknownKey
    }
    // A collection of one: if it does not find an ID, it uses any key.
    key.keyIdentifier = JWKIdentifier(string: header.kid ?? "only")
    do {
      let collection = JWTKeyCollection()
      try await collection.add(jwk: key)
      return try await collection.verify(token, as: OpenIDClaims.self)
    } catch let error as JWTError where error.errorType == .signatureVerificationFailed {
      throw .signature
    } catch is DecodingError {
      throw .malformed
    } catch {
      throw .signature
    }
  }

  private static func bytes(_ text: Substring) -> Data? {
    let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
    return Data(base64Encoded: base64 + String(repeating: "=", count: (4 - base64.count % 4) % 4))
  }
}
