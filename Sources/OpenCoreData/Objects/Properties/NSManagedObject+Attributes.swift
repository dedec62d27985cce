import Foundation

extension NSManagedObject {
  // MARK: Typed rows

  @inline(__always)
  final func rowValue(at index: Int) -> RowValue {
    fireIfFault()
    return value(at: index)
  }

  @inline(__always)
  final func setRowValue(_ value: RowValue, at index: Int) {
    guard state.isDisjoint(with: [.observed, .fault, .guarded]), setOwnValue(value, at: index)
    else { return setRowValueSlowly(value, at: index) }
    noteChange(at: index)
  }

  private final func setRowValueSlowly(_ value: RowValue, at index: Int) {
    guard isReadyForChange() else { return }
    announceWill(.attribute(index))
    values[index] = value
    noteChange(at: index)
    announceDid(.attribute(index))
  }

  /// Marks a value as changed, for the object and for its context.
  @inline(__always)
  final func noteChange(at rowIndex: Int) {
    markChanged(rowIndex)
    noteChange()
  }

  final func noteChange(ofToMany index: Int) {
    markChanged(toMany: index)
    noteChange()
  }

  @inline(__always)
  final func noteChange() {
    if state.isSuperset(of: [.touched, .needsWillSave]),
      !state.isDisjoint(with: [.inserted, .updated, .deleted])
    {
      return
    }
    context?.trackChange(of: self)
  }

  // MARK: Boxes

  /// The attribute's value as key-value coding gives it.
  final func attributeValue(at index: Int) -> Any? {
    fireIfFault()
    let slot = template.layout.attributes[index]
    guard slot.holdsObjects else {
      return AttributeConversion.boxed(value(at: index), as: slot.type)
    }
    if let value = objectValues?[index] { return value }
    guard case .data(let bytes) = value(at: index) else { return nil }
    guard let value = TransformableCoding.decode(bytes, of: slot) else {
      if let context, context.refusesUnreadableValues {
        context.noteUnreadable(slot, bytes, of: self)
      }
      return nil
    }
    var boxes = objectValues ?? [:]
    boxes[index] = value
    objectValues = boxes
    return value
  }

  /// The bytes of a transformable value that this process cannot read; nil where it reads the value
  /// or there is none.
  final func unreadableBytes(at index: Int) -> Data? {
    fireIfFault()
    let slot = template.layout.attributes[index]
    guard slot.holdsObjects, objectValues?[index] == nil,
      case .data(let bytes) = value(at: index),
      TransformableCoding.decode(bytes, of: slot) == nil
    else { return nil }
    return bytes
  }

  /// Sets a transformable value to bytes as another object has them.
  final func setStoredBytes(_ bytes: Data, at index: Int) {
    guard isReadyForChange() else { return }
    announceWill(.attribute(index))
    objectValues?[index] = nil
    values[index] = .data(bytes)
    noteChange(at: index)
    announceDid(.attribute(index))
  }

  final func setAttributeValue(_ value: Any?, at index: Int) {
    guard isReadyForChange() else { return }
    announceWill(.attribute(index))
    storeAttributeValue(value, at: index)
    noteChange(at: index)
    announceDid(.attribute(index))
  }

  /// Sets the value without notifying the context.
  final func storeAttributeValue(_ value: Any?, at index: Int) {
    let slot = template.layout.attributes[index]
    if slot.holdsObjects {
      setObjectValue(value is NSNull ? nil : value, at: index)
      return
    }
    guard let value, !(value is NSNull) else {
      values[index] = .null
      return
    }
    guard let converted = AttributeConversion.rowValue(value, as: slot.type) else {
      fatalError(
        "Unacceptable type of value for attribute: property = \"\(slot.name)\"; desired type = "
          + "\(slot.type.valueClassName ?? "id"); given type = "
          + "\(AttributeConversion.className(of: value)); value = \(value)."
      )
    }
    values[index] = converted
  }

  /// Keeps the object, and its bytes where the attribute is stored.
  final func setObjectValue(_ value: Any?, at index: Int) {
    let slot = template.layout.attributes[index]
    var boxes = objectValues ?? [:]
    boxes[index] = value
    objectValues = boxes
    if slot.isTransient {
      values[index] = .null
    } else {
      // Validation reports a value that cannot be encoded, when it is about to be saved.
      values[index] = value.flatMap { TransformableCoding.encode($0, of: slot) } ?? .null
    }
  }
}

extension NSManagedObject: RowValueReading {
  package final func rowValue(forKey key: String) -> RowValue? {
    guard readsRows(), case .attribute(let index) = template.layout.slot(named: key),
      !template.layout.attributes[index].holdsObjects
    else { return nil }
    return rowValue(at: index)
  }

  /// Whether no class of the app's decides what key-value coding gives for an attribute.
  private final func readsRows() -> Bool {
    templateReference._withUnsafeGuaranteedRef { template in
      type(of: self) == template.type ? template.readsRows : template.readsRows(type(of: self))
    }
  }
}
