/// The lasting keys of objects by the temporary ones that they had before.
///
/// A child context asks for the key of an object that its parent has stored since, and an app for the
/// object of an identifier that it has kept. Only so many are remembered: a context that inserts for the
/// whole life of a server would keep one for each object that ever was.
struct FormerKeys {
  /// A generation of keys.
  ///
  /// The last one and the one before are remembered. Children take new keys before they do anything
  /// else, so that even one generation is more than they ask for.
  private static let limit = 1 << 16

  private var recent: [Int64: ObjectKey] = [:]
  private var older: [Int64: ObjectKey] = [:]

  /// How many are remembered.
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
