/// The permanent keys of objects by their former temporary keys.
///
/// A child context looks up the key of an object that its parent has stored since, and an app the
/// object of an identifier that it has kept. The number of entries is limited: a context that
/// inserts for the whole life of a server would otherwise keep one for every object.
struct FormerKeys {
  /// The size of a generation of keys.
  ///
  /// The current generation and the one before are kept. Children take new keys before they do
  /// anything else, so even one generation is enough for them.
  private static let limit = 1 << 16

  private var recent: [Int64: ObjectKey] = [:]
  private var older: [Int64: ObjectKey] = [:]

  /// The number of keys that are kept.
  var count: Int { recent.count + older.count }

  subscript(former: Int64) -> ObjectKey? { recent[former] ?? older[former] }

  mutating func note(_ key: ObjectKey, of former: Int64) {
    recent[former] = key
    guard recent.count >= Self.limit else { return }
    older = recent
    recent = [:]
  }

  mutating func removeAll() { self = FormerKeys() }
}
