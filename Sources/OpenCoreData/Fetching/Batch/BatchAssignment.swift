import Foundation

/// One attribute's new value in a batch update.
struct BatchAssignment {
  enum Value {
    case constant(RowValue)
    /// Computed from each row as it was.
    case expression(NSExpression)
  }

  let slot: AttributeSlot
  let value: Value

  /// What a request asks for, in the order of the slots.
  static func all(
    _ properties: [AnyHashable: Any],
    of entity: NSEntityDescription
  ) throws -> [BatchAssignment] {
    try properties.map { key, value in try BatchAssignment(key, value, of: entity.layout) }
      .sorted { $0.slot.index < $1.slot.index }
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

/// Values as apps give them to batch requests, in the form that rows have.
enum BatchValue {
  /// The row's value; an error where it is of the wrong type.
  static func row(_ value: Any, of slot: AttributeSlot) throws -> RowValue {
    if value is NSNull { return .null }
    if case Optional<Any>.none = value { return .null }
    if slot.holdsObjects {
      if let row = TransformableCoding.encode(value, of: slot) { return row }
    } else if let row = AttributeConversion.rowValue(value, as: slot.type) {
      return row
    }
    throw CoreDataError.make(
      NSManagedObjectValidationError,
      "Unacceptable type of value for attribute: property = \"\(slot.name)\"; desired type = "
        + "\(slot.type.valueClassName ?? "id"); given type = "
        + "\(AttributeConversion.className(of: value)); value = \(value).",
      [NSValidationKeyErrorKey: slot.name, NSValidationValueErrorKey: value]
    )
  }
}
