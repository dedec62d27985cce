import Foundation

/// The changes from one list to the next, in the form of the delegate's calls.
///
/// Old index paths refer to the old list, new ones to the new list.
struct FetchedResultsChanges {
  struct Change {
    var object: NSManagedObject
    var type: NSFetchedResultsChangeType
    var before: IndexPath?
    var after: IndexPath?
  }

  /// Section numbers in the old list, in descending order.
  private(set) var deletedSections: [Int] = []
  /// Section numbers in the new list.
  private(set) var insertedSections: [Int] = []
  /// Deletions in descending order, then insertions, moves and updates in ascending order.
  private(set) var changes: [Change] = []

  var isEmpty: Bool { deletedSections.isEmpty && insertedSections.isEmpty && changes.isEmpty }

  /// Compares two lists.
  ///
  /// `touched` are the objects whose values changed; `displaced` are those that changed their
  /// position relative to the others, or a property that the list is sorted by.
  init(
    from old: inout SectionedResults,
    to new: inout SectionedResults,
    touched: Set<NSManagedObject>,
    displaced: Set<NSManagedObject>
  ) {
    let rebuilt = compareSections(old, new)
    var deletions: [Change] = []
    for (index, object) in old.objects.enumerated() where new.index(of: object) == nil {
      deletions.append(Change(object: object, type: .delete, before: old.indexPath(of: index)))
    }
    var insertions: [Change] = []
    var moves: [Change] = []
    var updates: [Change] = []
    for (index, object) in new.objects.enumerated() {
      guard let former = old.index(of: object) else {
        insertions.append(Change(object: object, type: .insert, after: new.indexPath(of: index)))
        continue
      }
      guard let section = old.section(of: former), let next = new.section(of: index) else {
        continue
      }
      let name = new.sections[next].name
      let hasMoved =
        displaced.contains(object) || old.sections[section].name != name || rebuilt.contains(name)
      guard hasMoved || touched.contains(object) else { continue }
      let change = Change(
        object: object,
        type: hasMoved ? .move : .update,
        before: old.indexPath(of: former),
        after: new.indexPath(of: index)
      )
      if hasMoved { moves.append(change) } else { updates.append(change) }
    }
    changes = deletions.reversed() + insertions + moves + updates
  }

  /// The names of sections that were removed and inserted at another position.
  private mutating func compareSections(
    _ old: SectionedResults,
    _ new: SectionedResults
  ) -> Set<String> {
    var removed: Set<String> = []
    var rebuilt: Set<String> = []
    let difference = new.sections.map(\.name).difference(from: old.sections.map(\.name))
    for case .remove(let offset, let name, _) in difference.removals.reversed() {
      deletedSections.append(offset)
      removed.insert(name)
    }
    for case .insert(let offset, let name, _) in difference.insertions {
      insertedSections.append(offset)
      if removed.contains(name) { rebuilt.insert(name) }
    }
    return rebuilt
  }
}
