import Foundation

/// A program without a page of its own that waits for its user to allow it on another device (RFC
/// 8628).
struct DeviceAuthorization: Codable, Hashable, Sendable {
  /// The user's decision so far.
  enum Answer: Codable, Hashable, Sendable {
    case none
    /// The user consented. The account is given by its ID: another account may have its name before the program polls.
    case allowed(account: String)
    case denied
  }

  /// The digest of the program's secret.
  var secret: String
  /// The digest of the API token that is the program's client ID.
  var apiToken: String
  var container: String
  /// The program's name of the device.
  var device: String
  var answer = Answer.none
  /// Seconds that the program has to wait between two polls.
  var interval: Double
  /// When it last polled: milliseconds since 1970.
  var asked: Int64?

  /// The reply to the program.
  enum Verdict: Hashable, Sendable {
    case pending
    /// It polled too soon, and must poll less often from now on.
    case slowDown
    case denied
    case allowed(account: String)
  }

  /// Without a value the standard's default is five seconds.
  static let firstInterval = 5.0
  /// Seconds that a code is valid.
  static let lifetime = 10.0 * 60

  /// Decides the reply to a poll of the program.
  mutating func ask(now: Int64) -> Verdict {
    let isTooSoon = asked.map { Double(now - $0) < interval * 1000 } ?? false
    asked = now
    if isTooSoon {
      interval += Self.firstInterval
      return .slowDown
    }
    switch answer {
    case .none: return .pending
    case .denied: return .denied
    case .allowed(let account): return .allowed(account: account)
    }
  }

  // MARK: Codes

  /// Letters that are hard to confuse, without vowels, so that codes are no words.
  private static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
  private static let codeLength = 8

  /// The code that the user types, made of random bytes.
  static func userCode(_ next: () -> UInt64) -> String {
    String((0..<codeLength).map { _ in letters[Int(next() % UInt64(letters.count))] })
  }

  /// The code as it is displayed.
  static func shown(_ userCode: String) -> String {
    "\(userCode.prefix(codeLength / 2))-\(userCode.dropFirst(codeLength / 2))"
  }

  /// The code that a user typed, without separators and case; nil if it is none.
  static func typed(_ text: String) -> String? {
    let code = text.uppercased().filter { $0.isLetter }
    return code.count == codeLength && code.allSatisfy { letters.contains($0) } ? code : nil
  }

  /// A digest, as for a token: reading the storage reveals no pending code.
  static func key(_ userCode: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.deviceCode, TokenDigest.of("device code\0\(userCode)"))
  }
}
