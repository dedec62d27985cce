import Foundation

/// A key that seals the server's texts: tokens, receipts, capability URLs.
///
/// It is stored in the server's key file beside the keys of encrypted fields. In the database,
/// anyone who reads a dump, a replica or an old backup could sign in as any user with it.
struct SigningKey: Codable, Hashable, Sendable {
  var id: String
  /// 32 bytes.
  var key: Data
  /// Milliseconds since 1970 at which a newer key replaced it; nil for the newest.
  var retired: Int64?

  /// Milliseconds for which texts that a retired key has sealed stay valid: longer than any URL or
  /// seal is valid, except change tokens and similar positions.
  static let overlap: Int64 = 24 * 60 * 60 * 1000
  /// The number of keys that are kept; a further one removes the oldest, whose change tokens then
  /// expire.
  static let limit = 16
}

extension KeyRing {
  /// The signing keys, newest last.
  var signingKeys: [SigningKey] { signing ?? [] }

  /// Adds a signing key that seals from now on.
  ///
  /// Texts that the former key sealed stay valid for the overlap, unless the key has leaked.
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
