import Crypto
import Foundation

/// Codes of six digits that an authenticator app computes from a shared secret and the time: TOTP
/// (RFC 6238) with SHA-1 and steps of 30 seconds, which all such apps support.
enum TimeCode {
  static let period: Int64 = 30
  static let digits = 6
  /// The length in bytes: as many bits as SHA-1 has, as RFC 4226 recommends.
  static let secretLength = 20

  /// The time step of a time.
  static func step(at milliseconds: Int64) -> Int64 { milliseconds / 1000 / period }

  /// The code of a step.
  static func code(_ secret: Data, step: Int64) -> String {
    let counter = withUnsafeBytes(of: UInt64(bitPattern: step).bigEndian) { Data($0) }
    let hash = Data(
      HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: secret))
    )
    // The last four bits are the offset of the code's four bytes (RFC 4226, 5.3).
    let offset = Int(hash[hash.count - 1] & 0xF)
    let number = hash[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    let text = String(number % 1_000_000)
    return String(repeating: "0", count: digits - text.count) + text
  }

  /// The step whose code a text is: the present one, the one before or the one after, because
  /// clocks differ and typing takes time; later than the last used one, because a code is valid
  /// once.
  static func step(of text: String, _ secret: Data, at time: Int64, after last: Int64) -> Int64? {
    let now = step(at: time)
    let sent = Data(text.utf8)
    // All three are computed, so that the time does not reveal which one matched.
    let right = [now, now - 1, now + 1].filter {
      PasswordHash.isEqual(Data(code(secret, step: $0).utf8), sent)
    }
    return right.first { $0 > last }
  }

  /// The URL that authenticator apps read, in Google's key URI format.
  static func address(_ secret: Data, account: String, issuer: String) -> String {
    func escaped(_ text: String) -> String {
      text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }
    return "otpauth://totp/\(escaped(issuer)):\(escaped(account))?secret=\(base32(secret))"
      + "&issuer=\(escaped(issuer))&algorithm=SHA1&digits=\(digits)&period=\(period)"
  }

  /// Base32 without padding (RFC 4648), for typing.
  static func base32(_ data: Data) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    var text = ""
    var rest: UInt32 = 0
    var bits = 0
    for byte in data {
      rest = (rest << 8 | UInt32(byte)) & 0xFFF
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(letters[Int(rest >> bits & 31)])
      }
    }
    if bits > 0 { text.append(letters[Int(rest << (5 - bits) & 31)]) }
    return text
  }
}
