/// The changes of one turn of a context, with the values before and after.
///
/// Both sides of a relationship are recorded, so that nothing has to be derived when they are
/// restored.
final class UndoStep {
  enum Direction {
    case backward, forward

    var opposite: Direction { self == .backward ? .forward : .backward }
  }

  /// The value of an attribute or of a to-one.
  struct SlotValue {
    let row: RowValue
    /// The object of a transformable attribute.
    var box: Any?
    /// The destination, since its row may have another key when the value is restored.
    var destination: NSManagedObject?
  }

  struct ValueChange {
    let slot: Int
    let before: SlotValue
    let after: SlotValue
  }

  struct ToManyChange {
    let index: Int
    let added: [NSManagedObject]
    let removed: [NSManagedObject]
    /// The members in order; nil if the relationship is unordered or its order was not loaded.
    let orderBefore: [NSManagedObject]?
    let orderAfter: [NSManagedObject]?
  }

  struct Change {
    let object: NSManagedObject
    var values: [ValueChange] = []
    var toManys: [ToManyChange] = []

    var isEmpty: Bool { values.isEmpty && toManys.isEmpty }
  }

  var inserted: [NSManagedObject] = []
  var deleted: [NSManagedObject] = []
  /// The deleted objects that a delete rule of another object has deleted.
  var cascaded: Set<ObjectIdentifier> = []
  var changes: [Change] = []
  private var holders: UndoHolders?

  deinit {
    holders?.release(inserted + deleted)
  }

  /// Retains the relationships of the step's objects while the step can be applied.
  func hold(_ holders: UndoHolders) {
    self.holders = holders
    holders.hold(inserted + deleted)
  }

  var isEmpty: Bool { inserted.isEmpty && deleted.isEmpty && changes.isEmpty }
}

extension UndoStep.Change {
  /// Restores the values; the object must be in its context.
  func apply(_ direction: UndoStep.Direction) {
    object.fireIfFault()
    for change in values {
      object.restore(direction == .backward ? change.before : change.after, at: change.slot)
    }
    for change in toManys {
      switch direction {
      case .backward:
        object.restore(
          change.index,
          adding: change.removed,
          removing: change.added,
          order: change.orderBefore
        )
      case .forward:
        object.restore(
          change.index,
          adding: change.added,
          removing: change.removed,
          order: change.orderAfter
        )
      }
    }
  }
}

extension NSManagedObject {
  /// The current value, with what its row value does not contain.
  final func undoValue(at slot: Int) -> UndoStep.SlotValue {
    let count = template.layout.attributes.count
    return UndoStep.SlotValue(
      row: value(at: slot),
      box: slot < count ? objectValues?[slot] : nil,
      destination: slot < count || toOneObjects.isEmpty ? nil : toOneObjects[slot - count]
    )
  }

  final func restore(_ value: UndoStep.SlotValue, at slot: Int) {
    let count = template.layout.attributes.count
    guard slot >= count else {
      announceWill(.attribute(slot))
      defer { announceDid(.attribute(slot)) }
      values[slot] = value.row
      if template.layout.attributes[slot].holdsObjects {
        var boxes = objectValues ?? [:]
        boxes[slot] = value.box
        objectValues = boxes
      }
      noteChange(at: slot)
      return
    }
    var destination = value.destination
    if destination == nil, case .reference(let reference) = value.row {
      destination = context?.object(reference, from: self)
    }
    storeToOne(destination.flatMap { isThere($0) ? $0 : nil }, at: slot - count)
  }

  /// Whether an object that a to-one referred to still exists: another context may have deleted it,
  /// which cleared the reference in the store.
  final func isThere(_ destination: NSManagedObject) -> Bool {
    guard let context, destination.context === context else { return false }
    guard destination.state.isDisjoint(with: [.inserted, .vanished]) else {
      return !destination.state.contains(.vanished)
    }
    do {
      if case .absent = try context.row(for: destination) { return false }
    } catch {
      // An object that could not be read may exist.
      context.couldNotRead("look for '\(destination.objectID)'", error)
    }
    return true
  }

  /// Clears the to-ones of a revived object whose destinations were deleted in the meantime.
  final func dropLostToOnes() {
    guard context != nil else { return }
    for (index, link) in template.toOnes.enumerated() {
      guard let rowIndex = link.slot.rowIndex, case .reference = value(at: rowIndex),
        let destination = toOne(at: index), !isThere(destination)
      else { continue }
      storeToOne(nil, at: index)
    }
  }

  /// Restores the members of a to-many, without those that were deleted in the meantime.
  final func restore(
    _ index: Int,
    adding added: [NSManagedObject],
    removing removed: [NSManagedObject],
    order: [NSManagedObject]?
  ) {
    announceWill(.toMany(index))
    defer { announceDid(.toMany(index)) }
    let storage = toManyStorage(at: index)
    for member in removed { storage.remove(member) }
    let gone = context?.lost(among: added) ?? []
    for member in added where !gone.contains(ObjectIdentifier(member)) { storage.add(member) }
    if let order, storage.isLoaded, !storage.members.items.elementsEqual(order, by: ===) {
      // Members that were added by other changes are kept, at the end.
      let known = order.filter { storage.contains($0) }
      let places = Set(known.map { ObjectIdentifier($0) })
      storage.reorder(
        known + storage.members.items.filter { !places.contains(ObjectIdentifier($0)) }
      )
    }
    noteChange(ofToMany: index)
  }
}

extension NSManagedObjectContext {
  /// Removes the members of revived objects that were deleted in the meantime.
  func dropLostMembers(of revived: [NSManagedObject]) {
    var members: [NSManagedObject] = []
    for object in revived where object.context === self {
      object.forEachToMany { members += $0.members.items }
    }
    guard !members.isEmpty else { return }
    let gone = lost(among: members)
    guard !gone.isEmpty else { return }
    for object in revived where object.context === self {
      object.forEachToMany { $0.forget(gone) }
    }
  }
}
