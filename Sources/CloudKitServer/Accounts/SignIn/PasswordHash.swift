import Crypto
import CryptoExtras
import Foundation

/// The cost of hashing a password, in scrypt's parameters.
struct PasswordCost: Hashable, Sendable {
  /// The cost N: a power of two, times 1 KB of memory.
  var rounds: Int
  /// The parallelization p, computed sequentially.
  var repetitions: Int

  init(_ limits: ServiceLimits) {
    // A power of two, as the algorithm requires.
    rounds =
      limits.passwordRounds < 2
      ? 2 : 1 << (Int.bitWidth - (limits.passwordRounds - 1).leadingZeroBitCount)
    repetitions = max(limits.passwordRepetitions, 1)
  }

  /// Decodes an account's column: the rounds in the lower 32 bits, the repetitions above them.
  ///
  /// Earlier versions stored zero repetitions and meant one.
  init(stored: Int) {
    rounds = stored & 0xFFFF_FFFF
    repetitions = max(stored >> 32, 1)
  }

  var stored: Int { repetitions << 32 | rounds }
}

/// A password's hash: scrypt (RFC 7914) with blocks of 8.
///
/// A code of it is stored, made with a key of the key file: without that, a copy of the database is no
/// help in trying passwords. A hash of 32 bytes was made by an earlier version with PBKDF2, and one of
/// 64 bytes is stored itself. Such hashes and those of a lower cost are still accepted, and replaced
/// by the sign-in that verifies the password.
enum PasswordHash {
  private static let size = 64
  private static let olderSize = 32
  private static let blockSize = 8

  static func make(_ password: String, salt: Data, cost: PasswordCost) throws -> Data {
    let key = try KDF.Scrypt.deriveKey(
      from: Data(password.utf8),
      salt: salt,
      outputByteCount: size,
      rounds: cost.rounds,
      blockSize: blockSize,
      parallelism: cost.repetitions,
      maxMemory: 256 * (cost.rounds + cost.repetitions) * blockSize
    )
    return key.withUnsafeBytes { Data($0) }
  }

  /// The hash with which a password's hash has to be compared.
  static func make(_ password: String, like account: StoredAccount) throws -> Data {
    account.passwordHash.count == olderSize
      ? older(password, salt: account.passwordSalt, rounds: account.passwordRounds)
      : try make(
        password,
        salt: account.passwordSalt,
        cost: PasswordCost(stored: account.passwordRounds)
      )
  }

  /// Whether an account has a code of the hash, not the hash.
  static func isKeyed(_ account: StoredAccount) -> Bool {
    account.passwordHash.count > size
  }

  /// Whether a hash is keyed, and has the algorithm and cost of new ones.
  static func isCurrent(_ account: StoredAccount, _ cost: PasswordCost) -> Bool {
    isKeyed(account) && PasswordCost(stored: account.passwordRounds) == cost
  }

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

  /// Processes all 32 bytes at once: this runs a hundred thousand times for one sign-in.
  private static func bits(of code: HashedAuthenticationCode<SHA256>) -> SIMD32<UInt8> {
    code.withUnsafeBytes { $0.loadUnaligned(as: SIMD32<UInt8>.self) }
  }

  /// Compares in constant time.
  static func isEqual(_ left: Data, _ right: Data) -> Bool {
    left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
