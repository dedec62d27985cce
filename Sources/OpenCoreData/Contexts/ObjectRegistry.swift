/// The objects of a context by key: one instance for each row.
///
/// Objects are held weakly, but not at once. A weak reference makes every later retain and release
/// of its object slower, and most objects that are fetched or saved are gone before anyone looks
/// one up by key. So new entries wait in `recent`, held strongly, until the next look-up or the end
/// of the turn; those that nobody else holds by then just go.
struct ObjectRegistry {
  private struct Entry {
    weak var object: NSManagedObject?
  }

  private var entries: [ObjectKey: Entry] = [:]
  private var recent: [NSManagedObject] = []
  private var sweepLimit = 4096
  /// Bounds what a context holds that nobody else does.
  private static let recentLimit = 65_536

  /// Whether no object can be found.
  var isEmpty: Bool { entries.isEmpty && recent.isEmpty }

  mutating func object(_ key: ObjectKey) -> NSManagedObject? {
    if !recent.isEmpty { settle() }
    return known(key)
  }

  /// In place: a copy of a weak reference costs more than the look-up.
  private func known(_ key: ObjectKey) -> NSManagedObject? {
    guard let index = entries.index(forKey: key) else { return nil }
    return entries.values[index].object
  }

  mutating func insert(_ object: NSManagedObject) {
    if entries.count >= sweepLimit {
      sweep(adding: 1)
    }
    entries[object.key] = Entry(object: object)
  }

  /// Drops the entries of objects that are gone, and makes room for what is left and as many more.
  private mutating func sweep(adding count: Int) {
    let gone = entries.indices.filter { entries.values[$0].object == nil }
      .map { entries.keys[$0] }
    for key in gone { entries[key] = nil }
    sweepLimit = max(4096, (entries.count + count) * 2)
    entries.reserveCapacity(entries.count + count)
  }

  /// Enters an object that nobody looks up soon.
  ///
  /// Its key must not be known yet.
  mutating func insertRecent(_ object: NSManagedObject) {
    recent.append(object)
    if recent.count >= Self.recentLimit { settle() }
  }

  /// Holds the recent objects weakly from now on, those that someone else holds.
  mutating func settle() {
    guard !recent.isEmpty else { return }
    var objects: [NSManagedObject] = []
    swap(&objects, &recent)
    if entries.count + objects.count >= sweepLimit { sweep(adding: objects.count) }
    for index in objects.indices where !isKnownUniquelyReferenced(&objects[index]) {
      insert(objects[index])
    }
  }

  mutating func remove(_ key: ObjectKey) {
    if !recent.isEmpty { settle() }
    entries[key] = nil
  }

  mutating func removeAll() {
    entries = [:]
    recent = []
    sweepLimit = 4096
  }

  /// The objects that are alive.
  var objects: [NSManagedObject] { entries.values.compactMap(\.object) + recent }
}
