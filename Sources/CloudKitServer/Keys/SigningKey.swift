import Foundation

/// A key that texts of the server are sealed with: tokens, receipts, addresses that are rights.
///
/// It is kept in the server's key file beside the keys of encrypted fields. In the database it would
/// let whoever reads a dump, a replica or an old backup's database sign in as anybody.
struct SigningKey: Codable, Hashable, Sendable {
  var id: String
  /// 32 bytes.
  var key: Data
  /// Milliseconds since 1970 after which a newer key seals; nil: this is the newest.
  var retired: Int64?

  /// Milliseconds in which what a retired key has sealed is still good for anything: longer than any
  /// address or seal lives, but for change tokens and the like.
  static let overlap: Int64 = 24 * 60 * 60 * 1000
  /// Keys that are kept; one more forgets the oldest, whose change tokens then have expired.
  static let limit = 16
}

extension KeyRing {
  /// The signing keys, the newest last.
  var signingKeys: [SigningKey] { signing ?? [] }

  /// Makes a signing key that seals from now on.
  ///
  /// What the former key sealed stays good for the overlap, unless the key has leaked.
  mutating func addSigningKey(_ key: Data, now: Int64, formerHasLeaked: Bool = false) {
    var keys = signingKeys
    for index in keys.indices where keys[index].retired == nil { keys[index].retired = now }
    if formerHasLeaked {
      for index in keys.indices { keys[index].retired = 0 }
    }
    let next = (keys.compactMap { Int($0.id) }.max() ?? 0) + 1
    keys.append(SigningKey(id: "\(next)", key: key, retired: nil))
    signing = keys.suffix(SigningKey.limit)
  }
}
