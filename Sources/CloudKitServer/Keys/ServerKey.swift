import CloudKitWebServices
import Crypto
import Foundation

/// A server-to-server key: the public half of an ECDSA key on P-256, for one container's environment.
///
/// It is its own user: its records have that creator, and its subscriptions belong to it.
struct ServerKey: Codable, Hashable, Sendable {
  var id: String
  var name: String
  var container: String
  var environment: ContainerEnvironment
  /// SubjectPublicKeyInfo in PEM, as `openssl ec -pubout` writes it.
  var publicKey: String
  var userRecordName: String
  /// Milliseconds since 1970.
  var created: Int64

  /// The account identifier of a key among a container's users.
  static func account(of id: String) -> String { "server-key:\(id)" }

  /// The key's ID in an account identifier; nil for a user's.
  static func id(ofAccount account: String) -> String? {
    let prefix = Self.account(of: "")
    return account.hasPrefix(prefix) ? String(account.dropFirst(prefix.count)) : nil
  }

  static func key(_ id: String) -> DirectoryEntry.Key { DirectoryEntry.Key(.serverKey, id) }

  /// The owner of the entries of keys to one container's environment.
  static func owner(in container: String, _ environment: ContainerEnvironment) -> String {
    "\(environment.rawValue) \(container)"
  }

  static func owners(in container: String) -> [String] {
    ContainerEnvironment.allCases.map { owner(in: container, $0) }
  }

  /// Reads a public key, or a private one, of which it returns the public half.
  static func readPEM(_ text: String) -> P256.Signing.PublicKey? {
    if let key = try? P256.Signing.PublicKey(pemRepresentation: text) { return key }
    guard text.contains("PRIVATE KEY"),
      let key = try? P256.Signing.PrivateKey(pemRepresentation: text)
    else { return nil }
    return key.publicKey
  }
}
