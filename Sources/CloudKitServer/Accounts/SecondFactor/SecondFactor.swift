import CloudKitWebServices
import Foundation

/// The second factor of an account: a code of an authenticator app, or a recovery code.
struct SecondFactor: Codable, Hashable, Sendable {
  /// Encrypted with a key of the key file, so that the database alone is not enough to compute
  /// codes.
  var sealedSecret: Data
  /// Whether the user's app has computed a right code; before, none is required.
  var isConfirmed = false
  /// The time step of the last used code: no code is valid twice.
  var lastStep: Int64 = 0
  /// Digests of the unused recovery codes, each valid once.
  var recovery: [String] = []

  static func key(_ account: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.secondFactor, account)
  }

  func entry(_ account: String, revision: Int64, expires: Int64? = nil) throws -> DirectoryEntry {
    DirectoryEntry(
      Self.key(account),
      owner: account,
      revision: revision,
      expires: expires,
      body: try WireCoding.encode(self)
    )
  }

  // MARK: Codes

  static let recoveryCodes = 10
  /// 80 random bits, so that no code can be found from its digest.
  private static let recoveryBytes = 10

  /// New recovery codes as they are displayed, and their digests for the account.
  static func recovery(
    _ account: String,
    _ bytes: (Int) -> Data
  ) -> (shown: [String], digests: [String]) {
    let codes = (0..<recoveryCodes).map { _ in TimeCode.base32(bytes(recoveryBytes)) }
    let shown = codes.map { code in
      stride(from: 0, to: code.count, by: 4)
        .map { String(code.dropFirst($0).prefix(4)) }.joined(separator: "-")
    }
    return (shown, codes.map { digest($0, account) })
  }

  private static func digest(_ code: String, _ account: String) -> String {
    TokenDigest.of("recovery code\0\(account)\0\(code)")
  }

  /// A typed code without separators and case.
  private static func typed(_ text: String) -> String {
    text.uppercased().filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
  }

  /// Whether a code of the app is one that was used before.
  func hasUsed(_ text: String, _ secret: Data, now: Int64) -> Bool {
    let code = Self.typed(text)
    guard code.count == TimeCode.digits,
      let step = TimeCode.step(of: code, secret, at: now, after: -1)
    else { return false }
    return step <= lastStep
  }

  /// Uses a code up; false where it is none of this factor's, or was used before.
  mutating func use(_ text: String, of account: String, _ secret: Data, now: Int64) -> Bool {
    let code = Self.typed(text)
    if code.count == TimeCode.digits {
      guard let step = TimeCode.step(of: code, secret, at: now, after: lastStep) else {
        return false
      }
      lastStep = step
      return true
    }
    guard isConfirmed, let index = recovery.firstIndex(of: Self.digest(code, account)) else {
      return false
    }
    recovery.remove(at: index)
    return true
  }
}

extension StorageSnapshot {
  /// The second factor of an account, confirmed or not, and the revision at which it was read.
  func secondFactor(of account: String, now: Int64) throws -> (SecondFactor, revision: Int64)? {
    guard let entry = try entry(SecondFactor.key(account)), (entry.expires ?? .max) > now else {
      return nil
    }
    return (try WireCoding.decode(SecondFactor.self, from: entry.body), entry.revision)
  }
}
