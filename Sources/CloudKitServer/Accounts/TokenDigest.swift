import CloudKitWebServices
import Crypto
import Foundation

/// The digest of a secret, which the storage has instead of the secret: reading the storage gives
/// no access.
enum TokenDigest {
  static func of(_ token: String) -> String {
    Data(SHA256.hash(data: Data(token.utf8))).hexadecimal
  }
}
