import Crypto
import Foundation

/// A password's hash: PBKDF2 with HMAC-SHA256 (RFC 8018, 5.2), one block.
enum PasswordHash {
  static func make(_ password: String, salt: Data, rounds: Int) -> Data {
    let key = SymmetricKey(data: Data(password.utf8))
    var block = Data(HMAC<SHA256>.authenticationCode(for: salt + Data([0, 0, 0, 1]), using: key))
    var result = [UInt8](block)
    for _ in 1..<max(rounds, 2) {
      block = Data(HMAC<SHA256>.authenticationCode(for: block, using: key))
      for (index, byte) in block.enumerated() { result[index] ^= byte }
    }
    return Data(result)
  }

  /// Compares in a time that does not tell where two hashes differ.
  static func isEqual(_ left: Data, _ right: Data) -> Bool {
    left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
