import Crypto
import CryptoExtras
import Foundation

/// A password's hash: scrypt (RFC 7914) with blocks of 8 and one lane.
///
/// A hash of 32 bytes was made by an earlier version with PBKDF2; it still opens its account, and the
/// sign-in that proves the password replaces it.
enum PasswordHash {
  private static let size = 64
  private static let blockSize = 8

  static func make(_ password: String, salt: Data, rounds: Int) throws -> Data {
    // A power of two, as the algorithm asks.
    let cost = rounds < 2 ? 2 : 1 << (Int.bitWidth - (rounds - 1).leadingZeroBitCount)
    let key = try KDF.Scrypt.deriveKey(
      from: Data(password.utf8),
      salt: salt,
      outputByteCount: size,
      rounds: cost,
      blockSize: blockSize,
      parallelism: 1,
      maxMemory: 256 * cost * blockSize
    )
    return key.withUnsafeBytes { Data($0) }
  }

  /// The hash that a password has to be compared with.
  static func make(_ password: String, like account: StoredAccount) throws -> Data {
    isCurrent(account)
      ? try make(password, salt: account.passwordSalt, rounds: account.passwordRounds)
      : older(password, salt: account.passwordSalt, rounds: account.passwordRounds)
  }

  static func isCurrent(_ account: StoredAccount) -> Bool { account.passwordHash.count == size }

  /// PBKDF2 with HMAC-SHA256 (RFC 8018, 5.2), one block.
  private static func older(_ password: String, salt: Data, rounds: Int) -> Data {
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
