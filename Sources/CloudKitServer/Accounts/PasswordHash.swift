import Crypto
import Foundation

/// A password's hash: PBKDF2 with HMAC-SHA256 (RFC 8018, 5.2), one block.
enum PasswordHash {
  static func make(_ password: String, salt: Data, rounds: Int) -> Data {
    let key = SymmetricKey(data: Data(password.utf8))
    var block = HMAC<SHA256>.authenticationCode(for: salt + Data([0, 0, 0, 1]), using: key)
    var result = bits(of: block)
    for _ in 1..<max(rounds, 2) {
      block = block.withUnsafeBytes { HMAC<SHA256>.authenticationCode(for: $0, using: key) }
      result ^= bits(of: block)
    }
    return withUnsafeBytes(of: result) { Data($0) }
  }

  /// All 32 bytes at once: this runs a hundred thousand times for one sign-in.
  private static func bits(of code: HashedAuthenticationCode<SHA256>) -> SIMD32<UInt8> {
    code.withUnsafeBytes { $0.loadUnaligned(as: SIMD32<UInt8>.self) }
  }

  /// Compares in a time that does not tell where two hashes differ.
  static func isEqual(_ left: Data, _ right: Data) -> Bool {
    left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
