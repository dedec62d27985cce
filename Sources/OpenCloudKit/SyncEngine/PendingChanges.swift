/// Changes that wait to be sent, one for each thing that changes, in the order they came.
///
/// A change that is added again while it is under way counts as new: the outcome of what was sent
/// does not remove it.
package struct PendingChanges<Key: Hashable & Sendable, Change: Hashable & Sendable>: Sendable {
  private struct Entry: Sendable {
    var change: Change
    /// Its place among the others.
    var order: Int
    /// When it was last added.
    var moment: Int
  }

  /// A change under way, and when it had been added last.
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

  /// The changes in the order they came.
  package var changes: [Change] {
    entries.values.sorted { $0.order < $1.order }.map(\.change)
  }

  /// Adds changes; one of the same thing that was there before gives way.
  package mutating func add(_ changes: [Change]) {
    for change in changes {
      clock += 1
      let key = key(change)
      let old = entries[key]
      // The same change again keeps its place; the opposite one takes its turn at the end.
      let order = old?.change == change ? old?.order ?? clock : clock
      entries[key] = Entry(change: change, order: order, moment: clock)
    }
  }

  /// Removes changes; one whose opposite is pending stays.
  package mutating func remove(_ changes: [Change]) {
    for change in changes where entries[key(change)]?.change == change {
      entries[key(change)] = nil
    }
  }

  package mutating func removeAll() { entries = [:] }

  /// The changes' marks, to be settled with what came of them.
  package func marks(of changes: [Change]) -> [Mark] {
    changes.map { Mark(change: $0, moment: entries[key($0)]?.moment ?? 0) }
  }

  /// Whether a marked change was pending and has been removed since.
  package func hasRemoved(_ mark: Mark) -> Bool {
    mark.moment != 0 && entries[key(mark.change)] == nil
  }

  /// The changes that were added, or added again, after an older version of these.
  package func changes(since older: PendingChanges) -> [Change] {
    entries.filter { key, entry in
      guard let old = older.entries[key] else { return true }
      return old.moment != entry.moment || old.change != entry.change
    }
    .values.sorted { $0.order < $1.order }.map(\.change)
  }

  /// Removes a change that was dealt with, unless it was added again meanwhile.
  package mutating func settle(_ mark: Mark) {
    let key = key(mark.change)
    guard let entry = entries[key], entry.change == mark.change, entry.moment == mark.moment
    else { return }
    entries[key] = nil
  }
}
