/// The values of an object with unsaved changes at the end of the last turn, for
/// ``NSManagedObject/changedValuesForCurrentEvent()``.
///
/// All other objects had the values of their rows then. The arrays are the object's own until it changes
/// again, so that the end of a turn copies nothing.
struct FormerValues {
  private let changed: SlotSet
  private let isInserted: Bool
  private let values: [RowValue]
  private let objectValues: [Int: Any]?
  private let toOnes: [NSManagedObject?]
  /// What waited to be saved of the changed to-manys, by their numbers.
  private let toManys: [Int: ToManyChanges]

  init(_ object: NSManagedObject) {
    let isFault = object.state.contains(.fault)
    changed = isFault ? SlotSet() : object.changed
    isInserted = object.state.contains(.inserted)
    values = isFault ? [] : object.ownValues
    objectValues = object.objectValues
    toOnes = object.toOneObjects
    var toManys: [Int: ToManyChanges] = [:]
    for index in object.changedToManys.slots {
      toManys[index] = object.toManyStorage(ifTouched: index)?.pendingChanges
    }
    self.toManys = toManys
  }

  /// Whether the property at a row index differed from the row, or there was no row.
  func holds(_ slot: Int) -> Bool {
    slot < values.count && (isInserted || changed.contains(slot))
  }

  func row(at slot: Int) -> RowValue { values[slot] }

  func object(at slot: Int) -> Any? { objectValues?[slot] }

  func toOne(at index: Int) -> NSManagedObject? { toOnes.isEmpty ? nil : toOnes[index] }

  func toMany(at index: Int) -> ToManyChanges { toManys[index] ?? ToManyChanges() }
}

extension NSManagedObject {
  /// The value of an attribute at the end of the last turn.
  final func formerAttribute(at index: Int) -> Any? {
    guard changedInTurn.contains(index) else { return attributeValue(at: index) }
    let slot = template.layout.attributes[index]
    if let former, former.holds(index) {
      if let object = former.object(at: index) { return object }
      return boxed(former.row(at: index), slot)
    }
    if let snapshot { return boxed(snapshot[index], slot) }
    let known = template.objectDefaults.first { $0.index == index }
    if let known { return known.value }
    return boxed(template.defaults[index], slot)
  }

  private final func boxed(_ value: RowValue, _ slot: AttributeSlot) -> Any? {
    guard slot.holdsObjects else { return AttributeConversion.boxed(value, as: slot.type) }
    guard case .data(let bytes) = value else { return nil }
    return TransformableCoding.decode(bytes, of: slot)
  }

  /// The destination of a to-one at the end of the last turn.
  final func formerToOne(at index: Int) -> NSManagedObject? {
    guard let rowIndex = template.toOnes[index].slot.rowIndex else { return nil }
    guard changedInTurn.contains(rowIndex) else { return toOne(at: index) }
    var value = snapshot?[rowIndex] ?? .null
    if let former, former.holds(rowIndex) {
      if let object = former.toOne(at: index) { return object }
      value = former.row(at: rowIndex)
    }
    guard case .reference(let reference) = value, let context else { return nil }
    return context.object(reference, from: self)
  }

  /// The members of a to-many at the end of the last turn; those that left come last.
  final func formerMembers(at index: Int) -> [NSManagedObject] {
    let storage = loadedToMany(at: index)
    let now = storage.pendingChanges
    let then = former?.toMany(at: index) ?? ToManyChanges()
    var members = storage.members
    for object in without(now.added, then.added) + without(then.removed, now.removed) {
      members.remove(object, keepingOrder: storage.isOrdered)
    }
    for object in without(now.removed, then.removed) + without(then.added, now.added) {
      members.append(object)
    }
    return members.items
  }

  private final func without(
    _ left: [NSManagedObject],
    _ right: [NSManagedObject]
  ) -> [NSManagedObject] {
    guard !left.isEmpty, !right.isEmpty else { return left }
    let known = Set(right.map { ObjectIdentifier($0) })
    return left.filter { !known.contains(ObjectIdentifier($0)) }
  }
}
