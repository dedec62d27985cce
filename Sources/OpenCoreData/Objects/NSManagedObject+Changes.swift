import Foundation

extension NSManagedObject {
  /// The changed properties since the last save or load, with their new values; nil is `NSNull`.
  ///
  /// Transient properties are left out. Setting a primitive value does not mark an object as changed: the value is
  /// saved, and reported here, once another property is changed.
  public final func changedValues() -> [String: Any] {
    requireLane()
    guard !state.contains(.fault) || !changedToManys.isEmpty,
      !state.isDisjoint(with: [.inserted, .updated, .deleted])
    else { return [:] }
    var slots = changed
    if let snapshot, !state.contains(.inserted) {
      // A property that was set to its old value has not changed.
      for slot in changed.slots where isUnchanged(slot, in: snapshot) { slots.remove(slot) }
    }
    for slot in template.transientIndexes { slots.remove(slot) }
    return values(rows: slots, toManys: changedToManys)
  }

  /// The properties that changed since `NSManagedObjectContextObjectsDidChange` was posted last, with their
  /// former values; nil is `NSNull`.
  ///
  /// Handlers of the notification compare them with the present ones. A new object has the model's default
  /// values as former ones. Of an object that was deleted, the relationships with the rule nullify are among
  /// the properties. Transient properties are left out.
  public final func changedValuesForCurrentEvent() -> [String: Any] {
    requireLane()
    let layout = template.layout
    var result: [String: Any] = [:]
    let slots = changedInTurn.slots.filter { !isTransient(rowIndex: $0) }
    if !slots.isEmpty { fireIfFault() }
    for slot in slots {
      guard slot < layout.attributes.count else {
        let index = slot - layout.attributes.count
        result[layout.toOnes[index].name] = formerToOne(at: index) ?? NSNull()
        continue
      }
      let name = layout.publicName(ofAttribute: slot)
      guard result[name] == nil else { continue }
      let former =
        layout.composite(named: name).map { dictionary(of: $0) { formerAttribute(at: $0) } }
        ?? formerAttribute(at: slot)
      result[name] = former ?? NSNull()
    }
    for index in changedToManysInTurn.slots {
      let members = formerMembers(at: index)
      result[layout.toManys[index].name] =
        template.toManys[index].slot.isOrdered
        ? NSOrderedSet(array: members) : NSSet(array: members)
    }
    return result
  }

  /// The names of the properties that changed in this turn.
  final var namesChangedInTurn: Set<String> {
    let layout = template.layout
    var names: Set<String> = []
    for slot in changedInTurn.slots {
      let count = layout.attributes.count
      names.insert(
        slot < count ? layout.publicName(ofAttribute: slot) : layout.toOnes[slot - count].name
      )
    }
    for index in changedToManysInTurn.slots { names.insert(layout.toManys[index].name) }
    return names
  }

  /// The values as they were loaded or saved last.
  ///
  /// A value that is nil is `NSNull`; nil for the keys asks for all. Transient properties are left
  /// out.
  public final func committedValues(forKeys keys: [String]?) -> [String: Any] {
    if state.contains(.inserted) { return [:] }
    fireIfFault()
    let names = keys ?? Array(template.layout.entity.propertiesByName.keys)
    var result: [String: Any] = [:]
    for name in names {
      switch template.layout.slot(named: name) {
      case .attribute(let index):
        if isTransient(rowIndex: index) { continue }
        result[name] = committedAttribute(at: index) ?? NSNull()
      case .toOne(let index):
        result[name] = committedToOne(at: index) ?? NSNull()
      case .toMany(let index):
        let members = loadedToMany(at: index).committedMembers
        result[name] =
          template.toManys[index].slot.isOrdered
          ? NSOrderedSet(array: members) : NSSet(array: members)
      case .fetched:
        continue
      case nil:
        guard let slot = template.layout.composite(named: name) else { continue }
        result[name] = dictionary(of: slot) { committedAttribute(at: $0) } ?? NSNull()
      }
    }
    return result
  }

  /// Whether anything changed that a store keeps.
  public final var hasPersistentChangedValues: Bool {
    requireLane()
    var hasToManyChanges = false
    forEachToMany { if $0.hasChanges { hasToManyChanges = true } }
    if hasToManyChanges { return true }
    guard let snapshot, !state.contains(.inserted) else {
      return changed.slots.contains { !isTransient(rowIndex: $0) }
    }
    return changed.slots.contains { slot in
      !isTransient(rowIndex: slot) && !isUnchanged(slot, in: snapshot)
    }
  }

  final func isTransient(rowIndex: Int) -> Bool {
    !template.transientIndexes.isEmpty && template.transientIndexes.contains(rowIndex)
  }

  final func isUnchanged(_ rowIndex: Int, in row: Row) -> Bool {
    !isTransient(rowIndex: rowIndex) && row.holds(value(at: rowIndex), at: rowIndex)
  }

  private final func values(rows: SlotSet, toManys: SlotSet) -> [String: Any] {
    let layout = template.layout
    var result: [String: Any] = [:]
    for slot in rows.slots {
      if slot < layout.attributes.count {
        let name = layout.publicName(ofAttribute: slot)
        result[name] = modeledValue(forKey: name).flatMap { $0 } ?? NSNull()
      } else {
        let index = slot - layout.attributes.count
        result[layout.toOnes[index].name] = publicToOne(at: index) ?? NSNull()
      }
    }
    for index in toManys.slots { result[layout.toManys[index].name] = collection(at: index) }
    return result
  }

  private final func committedAttribute(at index: Int) -> Any? {
    guard let snapshot else { return attributeValue(at: index) }
    let slot = template.layout.attributes[index]
    if slot.isTransient { return attributeValue(at: index) }
    guard slot.holdsObjects else {
      return AttributeConversion.boxed(snapshot[index], as: slot.type)
    }
    guard case .data(let bytes) = snapshot[index] else { return nil }
    return TransformableCoding.decode(bytes, of: slot)
  }

  private final func committedToOne(at index: Int) -> NSManagedObject? {
    guard let rowIndex = template.toOnes[index].slot.rowIndex, let snapshot,
      case .reference(let reference) = snapshot[rowIndex], let context
    else { return nil }
    return context.object(reference, from: self)
  }

  /// A row's values by name, as merge conflicts show them.
  final func namedValues(of row: Row) -> [String: Any] {
    var result: [String: Any] = [:]
    for slot in template.layout.attributes where !slot.isTransient {
      if slot.holdsObjects, case .data(let bytes) = row[slot.index] {
        result[slot.name] = TransformableCoding.decode(bytes, of: slot) ?? bytes
      } else {
        result[slot.name] =
          AttributeConversion.boxed(row[slot.index], as: slot.type) ?? NSNull()
      }
    }
    for link in template.toOnes {
      guard let rowIndex = link.slot.rowIndex else { continue }
      if case .reference(let reference) = row[rowIndex], let context {
        result[link.slot.name] = context.object(reference, from: self)?.objectID ?? NSNull()
      } else {
        result[link.slot.name] = NSNull()
      }
    }
    return result
  }

  /// The values as they are now, in the same form.
  final func namedValues() -> [String: Any] {
    fireIfFault()
    var result: [String: Any] = [:]
    for slot in template.layout.attributes where !slot.isTransient {
      result[slot.name] = attributeValue(at: slot.index) ?? NSNull()
    }
    for link in template.toOnes where link.slot.rowIndex != nil {
      result[link.slot.name] = toOneIdentifier(at: link.slot.index) ?? NSNull()
    }
    return result
  }
}
