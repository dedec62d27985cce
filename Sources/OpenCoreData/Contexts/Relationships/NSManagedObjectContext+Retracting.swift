import Foundation

/// Resets relationships for which a merge policy chooses the store's value.
///
/// A change is recorded on both sides of a relationship: if only one side took the store's value,
/// the other would still show the pending change, and a save would write its part of it.
extension NSManagedObjectContext {
  /// The destination of a changed to-one, here and in the row that it was read from.
  private struct ChangedToOne {
    let index: Int
    let rowIndex: Int
    let link: ObjectTemplate.Link
    let ends: [NSManagedObject]
  }

  /// Runs a body that resets relationships of an object, and reverts the changes on the inverse
  /// sides.
  func retractingInverses(of object: NSManagedObject, _ body: () -> Void) {
    let toOnes = changedToOnes(of: object)
    var toManys: [(index: Int, link: ObjectTemplate.Link, members: [NSManagedObject])] = []
    for (index, link) in object.template.toManys.enumerated()
    where link.hasInverse && link.slot.inverseIsToMany && object.changedToManys.contains(index) {
      guard let storage = object.toManyStorage(ifTouched: index) else { continue }
      toManys.append((index, link, storage.added + storage.removed.items))
    }
    body()
    for change in toOnes where !object.changed.contains(change.rowIndex) {
      let now = object.registeredToOne(at: change.index)
      for end in change.ends + (now.map { [$0] } ?? []) {
        if change.link.slot.inverseIsToMany {
          end.toManyStorage(ifTouched: change.link.inverseIndex)?.retract(object)
        } else {
          end.retractToOne(at: change.link.inverseIndex)
        }
      }
    }
    for (index, link, members) in toManys where !object.changedToManys.contains(index) {
      for member in members {
        member.toManyStorage(ifTouched: link.inverseIndex)?.retract(object)
      }
    }
  }

  private func changedToOnes(of object: NSManagedObject) -> [ChangedToOne] {
    guard !object.state.contains(.fault) else { return [] }
    var result: [ChangedToOne] = []
    for (index, link) in object.template.toOnes.enumerated() where link.hasInverse {
      guard let rowIndex = link.slot.rowIndex, object.changed.contains(rowIndex) else { continue }
      var ends: [NSManagedObject] = []
      if let now = object.registeredToOne(at: index) { ends.append(now) }
      if case .reference(let reference)? = object.snapshot?[rowIndex],
        let former = registeredObject(reference, from: object)
      {
        ends.append(former)
      }
      result.append(ChangedToOne(index: index, rowIndex: rowIndex, link: link, ends: ends))
    }
    return result
  }
}

extension NSManagedObject {
  /// Reverts the change of a to-one that a change of its inverse made.
  final func retractToOne(at index: Int) {
    guard !state.contains(.fault), let snapshot,
      let rowIndex = template.toOnes[index].slot.rowIndex, changed.contains(rowIndex)
    else { return }
    changed.remove(rowIndex)
    if !toOneObjects.isEmpty { toOneObjects[index] = nil }
    values[rowIndex] = snapshot[rowIndex]
  }
}
