import Foundation

/// One attribute's new value in a batch update.
struct BatchAssignment {
  enum Value {
    case constant(RowValue)
    /// An expression that is computed from each row before the update.
    case expression(NSExpression)
  }

  let slot: AttributeSlot
  let value: Value

  /// The assignments of a request, in the order of the slots.
  static func all(
    _ properties: [AnyHashable: Any],
    of entity: NSEntityDescription
  ) throws -> [BatchAssignment] {
    try properties.flatMap { key, value in
      try composite(key, value, of: entity.layout)
        ?? [BatchAssignment(key, value, of: entity.layout)]
    }
    .sorted { $0.slot.index < $1.slot.index }
  }

  /// The leaves of a composite attribute with the dictionary's values; nil for other keys.
  private static func composite(
    _ key: AnyHashable,
    _ value: Any,
    of layout: EntityLayout
  ) throws -> [BatchAssignment]? {
    let name = (key.base as? NSPropertyDescription)?.name ?? key.base as? String
    guard let name, let composite = layout.composite(named: name) else { return nil }
    let constant = (value as? NSExpression).map { $0.constantValue ?? NSNull() } ?? value
    guard let leaves = composite.leafValues(of: constant) else {
      throw BatchValue.unacceptable(value, name, "NSDictionary")
    }
    return try leaves.map { slot, value in
      let attribute = layout.attributes[slot]
      return BatchAssignment(slot: attribute, value: .constant(try Self.constant(value, attribute)))
    }
  }

  private init(slot: AttributeSlot, value: Value) {
    self.slot = slot
    self.value = value
  }

  private init(_ key: AnyHashable, _ value: Any, of layout: EntityLayout) throws {
    slot = Self.slot(key, of: layout)
    if let expression = value as? NSExpression {
      if expression.expressionType == .constantValue {
        self.value = .constant(try Self.constant(expression.constantValue, slot))
      } else {
        self.value = .expression(expression)
      }
    } else {
      self.value = .constant(try Self.constant(value, slot))
    }
  }

  private static func slot(_ key: AnyHashable, of layout: EntityLayout) -> AttributeSlot {
    let name: String
    switch key.base {
    case let property as NSPropertyDescription: name = property.name
    case let text as String: name = text
    default:
      fatalError("Invalid key \(key.base) passed to propertiesToUpdate:")
    }
    switch layout.slot(named: name) {
    case .attribute(let index):
      let slot = layout.attributes[index]
      guard !slot.isTransient, !slot.isDerived else {
        fatalError("Invalid property \(name) passed to propertiesToUpdate:")
      }
      return slot
    case .toOne, .toMany:
      fatalError("Invalid relationship (\(name)) passed to propertiesToUpdate:")
    case .fetched:
      fatalError("Invalid property \(name) passed to propertiesToUpdate:")
    case nil:
      fatalError("Invalid string key \(name) passed to propertiesToUpdate:")
    }
  }

  private static func constant(_ value: Any?, _ slot: AttributeSlot) throws -> RowValue {
    let row = try value.map { try BatchValue.row($0, of: slot) } ?? .null
    guard !row.isNull || slot.isOptional else {
      fatalError("Invalid NULL value for key (\(slot.name)) passed to propertiesToUpdate:")
    }
    return row
  }
}

/// Converts the values of batch requests to row values.
enum BatchValue {
  /// The row value; throws if its type is wrong.
  static func row(_ value: Any, of slot: AttributeSlot) throws -> RowValue {
    if value is NSNull { return .null }
    if case Optional<Any>.none = value { return .null }
    if slot.holdsObjects {
      if let row = TransformableCoding.encode(value, of: slot) { return row }
      throw CoreDataError.make(
        NSManagedObjectValidationError,
        TransformableCoding.refusal(of: slot),
        [NSValidationKeyErrorKey: slot.name, NSValidationValueErrorKey: value]
      )
    } else if let row = AttributeConversion.rowValue(value, as: slot.type) {
      return row
    }
    throw unacceptable(value, slot.name, slot.type.valueClassName ?? "id")
  }

  static func unacceptable(_ value: Any, _ name: String, _ className: String) -> NSError {
    CoreDataError.make(
      NSManagedObjectValidationError,
      "Unacceptable type of value for attribute: property = \"\(name)\"; desired type = "
        + "\(className); given type = "
        + "\(AttributeConversion.className(of: value)); value = \(value).",
      [NSValidationKeyErrorKey: name, NSValidationValueErrorKey: value]
    )
  }
}
