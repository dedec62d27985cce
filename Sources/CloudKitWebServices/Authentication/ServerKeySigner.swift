import Crypto
import Foundation

/// Signs requests with a server-to-server key: ECDSA over P-256.
package struct ServerKeySigner: Sendable {
  /// The key's identifier, as the service issued it.
  package let keyID: String
  private let key: P256.Signing.PrivateKey

  /// The names of the three headers of a signed request.
  package enum Header {
    package static let keyID = "x-apple-cloudkit-request-keyid"
    package static let date = "x-apple-cloudkit-request-iso8601date"
    package static let signature = "x-apple-cloudkit-request-signaturev1"
  }

  /// Reads a key in the PEM form that `openssl ecparam -genkey` writes.
  package init(keyID: String, pem: String) throws {
    self.keyID = keyID
    key = try P256.Signing.PrivateKey(pemRepresentation: Self.withoutParameters(pem))
  }

  /// Removes the curve parameters that OpenSSL writes before the key.
  private static func withoutParameters(_ pem: String) -> String {
    let end = "-----END EC PARAMETERS-----"
    guard let range = pem.range(of: end) else { return pem }
    return String(pem[range.upperBound...]).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// The signed message: the date, the hash of the body, and path and query as sent.
  package static func message(date: String, body: Data, path: String) -> String {
    let hash = Data(SHA256.hash(data: body)).base64EncodedString()
    return "\(date):\(hash):\(path)"
  }

  /// The date of a signature: UTC without fractions.
  package static func text(of date: Date) -> String {
    date.formatted(.iso8601)
  }

  /// The headers of a signed request.
  package func headers(path: String, body: Data, date: Date) throws -> [String: String] {
    let date = Self.text(of: date)
    let message = Self.message(date: date, body: body, path: path)
    let signature = try key.signature(for: Data(message.utf8))
    return [
      Header.keyID: keyID,
      Header.date: date,
      Header.signature: signature.derRepresentation.base64EncodedString(),
    ]
  }
}
