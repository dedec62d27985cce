/// Changes that wait to be sent, at most one for each key, in the order of their addition.
///
/// A change that is added again while it is being sent counts as new: the outcome of the older one
/// does not remove it.
package struct PendingChanges<Key: Hashable & Sendable, Change: Hashable & Sendable>: Sendable {
  private struct Entry: Sendable {
    var change: Change
    /// The position in the order.
    var order: Int
    /// The logical time at which it was last added.
    var moment: Int
  }

  /// A change that is being sent, with the time at which it was last added.
  package struct Mark: Hashable, Sendable {
    package var change: Change
    fileprivate var moment: Int
  }

  private var entries: [Key: Entry] = [:]
  private var clock = 0
  private let key: @Sendable (Change) -> Key

  package init(_ changes: [Change] = [], by key: @escaping @Sendable (Change) -> Key) {
    self.key = key
    add(changes)
  }

  package var isEmpty: Bool { entries.isEmpty }

  /// The changes in their order.
  package var changes: [Change] {
    entries.values.sorted { $0.order < $1.order }.map(\.change)
  }

  /// Adds changes; each replaces an earlier change of the same key.
  package mutating func add(_ changes: [Change]) {
    for change in changes {
      clock += 1
      let key = key(change)
      let old = entries[key]
      // Adding an equal change keeps its position; the opposite one moves to the end.
      let order = old?.change == change ? old?.order ?? clock : clock
      entries[key] = Entry(change: change, order: order, moment: clock)
    }
  }

  /// Puts a change behind all others, unless it was added again since it was marked.
  package mutating func moveToEnd(_ mark: Mark) {
    let key = key(mark.change)
    guard let entry = entries[key], entry.change == mark.change, entry.moment == mark.moment
    else { return }
    clock += 1
    entries[key]?.order = clock
  }

  /// Removes changes; a pending opposite change is kept.
  package mutating func remove(_ changes: [Change]) {
    for change in changes where entries[key(change)]?.change == change {
      entries[key(change)] = nil
    }
  }

  package mutating func removeAll() { entries = [:] }

  /// The marks of the changes, which `settle` compares after they were sent.
  package func marks(of changes: [Change]) -> [Mark] {
    changes.map { Mark(change: $0, moment: entries[key($0)]?.moment ?? 0) }
  }

  /// Whether a marked change is pending and was not added again since.
  package func contains(_ mark: Mark) -> Bool {
    let entry = entries[key(mark.change)]
    return entry?.change == mark.change && entry?.moment == mark.moment
  }

  /// Whether a marked change was pending and was removed since.
  package func hasRemoved(_ mark: Mark) -> Bool {
    mark.moment != 0 && entries[key(mark.change)] == nil
  }

  /// The changes that were added, or added again, after an older copy of this value.
  package func changes(since older: PendingChanges) -> [Change] {
    entries.filter { key, entry in
      guard let old = older.entries[key] else { return true }
      return old.moment != entry.moment || old.change != entry.change
    }
    .values.sorted { $0.order < $1.order }.map(\.change)
  }

  /// Removes a change that was sent, unless it was added again meanwhile.
  package mutating func settle(_ mark: Mark) {
    let key = key(mark.change)
    guard let entry = entries[key], entry.change == mark.change, entry.moment == mark.moment
    else { return }
    entries[key] = nil
  }
}
