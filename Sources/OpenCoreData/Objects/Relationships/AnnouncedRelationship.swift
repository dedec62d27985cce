import Foundation
import Synchronization

/// The changes of a relationship by an accessor of the app's own, between `willChangeValue(forKey:)` and
/// `didChangeValue(forKey:)`.
///
/// Such an accessor changes the primitive value of one side. The announcement of the change then keeps
/// the inverse true: by what changed meanwhile, so that a relationship with thousands of members costs
/// no copy of them. A primitive value that is set without announcements changes one side alone.
final class AnnouncedRelationship {
  let slot: PropertySlot
  /// The nesting of announcements; an accessor may call another one of the same property.
  var depth = 1
  /// The destination before the first change of a to-one; nil where nothing has changed.
  var former: NSManagedObject??
  private(set) var added = ObjectBag()
  private(set) var removed = ObjectBag()
  /// The members that the accessor got, to change them in place, and what they were then.
  var handedOut: (members: NSObject, before: ObjectBag)?

  /// The members of an observed ordered relationship that the announcement says will leave.
  var leaving: [NSManagedObject] = []

  init(_ slot: PropertySlot) {
    self.slot = slot
  }

  func noteAdded(_ object: NSManagedObject) {
    if !removed.remove(object, keepingOrder: false) { added.append(object) }
  }

  func noteRemoved(_ object: NSManagedObject) {
    if !added.remove(object, keepingOrder: true) { removed.append(object) }
  }

  /// Returns the members that came and went, and forgets them.
  func takeChanges() -> ToManyChanges {
    defer { (added, removed) = (ObjectBag(), ObjectBag()) }
    return ToManyChanges(added: added.items, removed: removed.items)
  }
}

extension NSManagedObject {
  private final func announced(_ slot: PropertySlot) -> AnnouncedRelationship? {
    knownWork?.pointee.announced.last { $0.slot == slot }
  }

  /// The change of a relationship that is announced and not done yet.
  final func announcement(forKey key: String) -> AnnouncedRelationship? {
    template.layout.slot(named: key).flatMap(announced)
  }

  /// Called before an accessor of the app's own changes a property.
  final func accessorWillChangeValue(forKey key: String) {
    let slot = template.layout.slot(named: key)
    switch slot {
    case .toOne, .toMany:
      guard let slot else { return }
      if let known = announced(slot) {
        known.depth += 1
      } else {
        work.pointee.announced.append(AnnouncedRelationship(slot))
      }
    default: return
    }
  }

  /// Called after an accessor of the app's own has changed a property.
  final func accessorDidChangeValue(forKey key: String) {
    let slot = template.layout.slot(named: key)
    switch slot {
    case .attribute(let index):
      noteChange(at: index)
    case .toOne(let index):
      if let rowIndex = template.toOnes[index].slot.rowIndex { noteChange(at: rowIndex) }
      if let change = closeAnnouncement(.toOne(index)) { keepInverse(ofToOne: index, change) }
    case .toMany(let index):
      // While it is announced, so that the members that come and go are noted.
      if let change = announced(.toMany(index)) { takeHandedOut(change, at: index) }
      let change = closeAnnouncement(.toMany(index))
      noteChange(ofToMany: index)
      if let change { keepInverse(ofToMany: index, change.takeChanges()) }
    case .fetched, nil:
      // Properties of the class alone are no change of the object.
      for index in template.layout.composite(named: key)?.leaves ?? [] { noteChange(at: index) }
    }
  }

  private final func closeAnnouncement(_ slot: PropertySlot) -> AnnouncedRelationship? {
    guard let change = announced(slot) else { return nil }
    change.depth -= 1
    if change.depth == 0 { work.pointee.announced.removeAll { $0 === change } }
    return change
  }

  // MARK: Primitive values

  /// The members as an accessor of the app's own may change them in place.
  ///
  /// The set is Foundation's own class: a subclass that stands for the relationship would be empty as a
  /// Swift `Set`. Between announcements, what changed in it becomes the relationship's members with the
  /// announcement of the change.
  final func primitiveCollection(at index: Int) -> NSObject {
    let change = announced(.toMany(index))
    if let known = change?.handedOut { return known.members }
    let members = loadedToMany(at: index).members
    let copy: NSObject =
      template.toManys[index].slot.isOrdered
      ? NSMutableOrderedSet(array: members.items) : NSMutableSet(array: members.items)
    change?.handedOut = (copy, members)
    return copy
  }

  private final func takeHandedOut(_ change: AnnouncedRelationship, at index: Int) {
    guard let handedOut = change.handedOut else { return }
    // An outer accessor that has the set continues to change it.
    defer {
      if change.depth > 1 { handOut(handedOut.members, of: change, at: index) }
    }
    change.handedOut = nil
    var before = handedOut.before
    let after = destinations(handedOut.members, template.toManys[index].slot.name)
    var current = loadedToMany(at: index).members
    var wanted = ObjectBag()
    for object in after { wanted.append(object) }
    for object in before.items where !wanted.contains(object) {
      current.remove(object, keepingOrder: true)
    }
    for object in wanted.items where !before.contains(object) { current.append(object) }
    let isOrdered = template.toManys[index].slot.isOrdered
    storePrimitiveMembers(
      isOrdered ? MemberOrder.order(of: current.items, as: wanted.items) : current.items,
      at: index
    )
  }

  /// Sets the members on this side, without notifying the context or observers.
  final func storePrimitiveMembers(_ objects: [NSManagedObject], at index: Int) {
    let storage = loadedToMany(at: index)
    guard storage.isLoaded else {
      context?.noteLostChange()
      return
    }
    let change = announced(.toMany(index))
    let handedOut = change?.handedOut
    change?.handedOut = nil
    var wanted = ObjectBag()
    for object in objects { wanted.append(object) }
    noteOrder(of: storage)
    for object in storage.members.items where !wanted.contains(object) {
      storage.remove(object)
      change?.noteRemoved(object)
    }
    for object in wanted.items where !storage.contains(object) {
      storage.add(object)
      change?.noteAdded(object)
    }
    if storage.isOrdered, !storage.members.items.elementsEqual(wanted.items, by: ===) {
      storage.reorder(wanted.items)
    }
    changedToManys.insert(index)
    if let change, change.depth > 1, let handedOut {
      handOut(handedOut.members, of: change, at: index)
    }
  }

  /// Gives a set that an accessor has the relationship's members of now.
  private final func handOut(
    _ members: NSObject,
    of change: AnnouncedRelationship,
    at index: Int
  ) {
    let storage = loadedToMany(at: index).members
    switch members {
    case let set as NSMutableSet: set.setSet(Set(storage.items))
    case let set as NSMutableOrderedSet:
      set.removeAllObjects()
      set.addObjects(from: storage.items)
    default: return
    }
    change.handedOut = (members, storage)
  }

  /// Sets the destination on this side, without notifying the context or observers.
  final func storePrimitiveToOne(_ object: NSManagedObject?, at index: Int) {
    guard isReadyForChange(), let rowIndex = template.toOnes[index].slot.rowIndex else { return }
    if let change = announced(.toOne(index)) {
      if change.former == nil { change.former = .some(toOne(at: index)) }
    } else if template.toOnes[index].hasInverse {
      context?.leavesOutOwners.store(true, ordering: .releasing)
    }
    keepToOne(object, at: index)
    values[rowIndex] = object?.rowReference ?? .null
    changed.insert(rowIndex)
  }

  // MARK: Inverses

  private final func keepInverse(ofToOne index: Int, _ change: AnnouncedRelationship) {
    guard let former = change.former else { return }
    change.former = nil
    let object = toOne(at: index)
    let link = template.toOnes[index]
    guard former !== object, link.hasInverse else { return }
    if let object { requireFit(object, link) }
    keepInverse(from: former, to: object, link, at: index)
  }

  private final func keepInverse(ofToMany index: Int, _ changes: ToManyChanges) {
    let link = template.toManys[index]
    guard link.hasInverse else { return }
    for object in changes.removed {
      if link.slot.inverseIsToMany {
        object.inverseRemoved(self, from: link.inverseIndex)
      } else if object.toOne(at: link.inverseIndex) === self {
        object.storeToOne(nil, at: link.inverseIndex)
      }
    }
    for object in changes.added {
      requireFit(object, link)
      if link.slot.inverseIsToMany {
        object.inverseAdded(self, to: link.inverseIndex)
      } else {
        takeInverse(of: object, link, at: index)
      }
    }
  }
}
