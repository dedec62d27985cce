import Foundation

/// A program without a page of its own that waits for a person to let it in elsewhere (RFC 8628).
struct DeviceAuthorization: Codable, Hashable, Sendable {
  /// What the person said so far.
  enum Answer: Codable, Hashable, Sendable {
    case none
    /// By the account's ID: its name may be another account's before the program asks.
    case allowed(account: String)
    case denied
  }

  /// The digest of what only the program knows.
  var secret: String
  /// The digest of the API token that is the program's client ID.
  var apiToken: String
  var container: String
  /// What the program calls the device.
  var device: String
  var answer = Answer.none
  /// Seconds that the program has to wait between two questions.
  var interval: Double
  /// When it asked last: milliseconds since 1970.
  var asked: Int64?

  /// What the program is told.
  enum Verdict: Hashable, Sendable {
    case pending
    /// It asked too soon, and has to ask less often from now on.
    case slowDown
    case denied
    case allowed(account: String)
  }

  /// Five seconds are what the standard expects of a program that was told nothing.
  static let firstInterval = 5.0
  /// Seconds that a code is good for.
  static let lifetime = 10.0 * 60

  /// Answers a question of the program.
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

  /// Letters that are hard to confuse, and of which no words come.
  private static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
  private static let codeLength = 8

  /// The code that the person types, of random bytes.
  static func userCode(_ next: () -> UInt64) -> String {
    String((0..<codeLength).map { _ in letters[Int(next() % UInt64(letters.count))] })
  }

  /// The code as people read it.
  static func shown(_ userCode: String) -> String {
    "\(userCode.prefix(codeLength / 2))-\(userCode.dropFirst(codeLength / 2))"
  }

  /// The code that somebody typed, without what does not matter; nil where it is none.
  static func typed(_ text: String) -> String? {
    let code = text.uppercased().filter { $0.isLetter }
    return code.count == codeLength && code.allSatisfy { letters.contains($0) } ? code : nil
  }

  /// Like a token: who reads the storage learns no code that waits.
  static func key(_ userCode: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.deviceCode, CloudKitService.digest("device code\0\(userCode)"))
  }
}
