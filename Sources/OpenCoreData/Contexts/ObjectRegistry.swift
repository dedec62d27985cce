/// The objects of a context by key: one instance for each row.
///
/// Objects are held weakly. Entries of objects that are gone are swept when the registry has
/// doubled, so neither look-ups nor the end of an object pay for them.
struct ObjectRegistry {
  private struct Entry {
    weak var object: NSManagedObject?
  }

  private var entries: [ObjectKey: Entry] = [:]
  private var sweepLimit = 4096

  func object(_ key: ObjectKey) -> NSManagedObject? {
    entries[key]?.object
  }

  mutating func insert(_ object: NSManagedObject) {
    if entries.count >= sweepLimit {
      entries = entries.filter { $0.value.object != nil }
      sweepLimit = max(4096, entries.count * 2)
    }
    entries[object.key] = Entry(object: object)
  }

  mutating func remove(_ key: ObjectKey) {
    entries[key] = nil
  }

  mutating func removeAll() {
    entries = [:]
    sweepLimit = 4096
  }

  /// The objects that are alive.
  var objects: [NSManagedObject] { entries.values.compactMap(\.object) }
}
