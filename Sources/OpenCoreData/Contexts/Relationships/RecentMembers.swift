/// The most recent members of many objects' relationships, by the last bits of their keys.
///
/// Members that sources share are looked up repeatedly, and a look-up in the registry takes a lock.
struct RecentMembers {
  private struct Entry {
    var reference: RowReference
    var object: NSManagedObject
  }

  /// Empty where members are not shared, so that recording them would be useless.
  private var entries: [Entry?]

  private static let count = 256

  init(areShared: Bool) {
    entries = areShared ? Array(repeating: nil, count: Self.count) : []
  }

  @inline(__always)
  private static func place(_ reference: RowReference) -> Int {
    Int(truncatingIfNeeded: reference.key) & (count - 1)
  }

  @inline(__always)
  func object(_ reference: RowReference) -> NSManagedObject? {
    guard !entries.isEmpty, let entry = entries[Self.place(reference)],
      entry.reference == reference
    else { return nil }
    return entry.object
  }

  @inline(__always)
  mutating func note(_ object: NSManagedObject, _ reference: RowReference) {
    guard !entries.isEmpty else { return }
    entries[Self.place(reference)] = Entry(reference: reference, object: object)
  }
}
