import Foundation

/// Values between the properties of a class and key-value coding.
enum NamedValue {
  /// The value as key-value coding gives it: numbers are `NSNumber`, sets `NSSet`, and an enumeration
  /// is its raw value.
  static func boxed(_ value: Any?) -> Any? {
    guard let value = flattened(value) else { return nil }
    // The class decides, as a cast of a number to an object succeeds.
    if type(of: value) is AnyObject.Type { return value }
    switch value {
    case let value as Decimal: return NSDecimalNumber(decimal: value)
    case is any Numeric, is Bool: return value as? NSNumber ?? value
    case let value as Set<NSManagedObject>: return NSSet(array: Array(value))
    case let value as any RawRepresentable: return boxed(value.rawValue)
    default: return value
    }
  }

  /// The value that a property of a type takes; nil if the type has none for it.
  ///
  /// A cast of a number to another type succeeds only for a value that both types have. Key-value coding
  /// converts as `NSNumber` does; as in Objective-C, a string, bytes and a collection that cannot be nil are empty
  /// instead.
  static func unboxed<Value>(_ value: Any?, as type: Value.Type) -> Value? {
    if let set = value as? RelationshipSet {
      return NSSet(array: set.allObjects) as Any as? Value ?? set as? Value
    }
    if let value = value as Any as? Value { return value }
    let type = (type as? any OptionalValue.Type)?.wrapped ?? type
    guard let value = flattened(value) else { return empty(type) as? Value }
    if let type = type as? any RawRepresentable.Type { return raw(value, type) as? Value }
    return number(value, as: type) as? Value
  }

  private static func raw<Raw: RawRepresentable>(_ value: Any, _ type: Raw.Type) -> Raw? {
    unboxed(value, as: Raw.RawValue.self).flatMap { Raw(rawValue: $0) }
  }

  private static func number(_ value: Any, as type: Any.Type) -> Any? {
    let value = value as? NSNumber ?? (value as? Decimal).map(NSDecimalNumber.init)
    guard let value else { return nil }
    switch type {
    case is Bool.Type: return value.boolValue
    case is Double.Type: return value.doubleValue
    case is Float.Type: return value.floatValue
    case is CGFloat.Type: return CGFloat(value.doubleValue)
    case is Decimal.Type: return Decimal(of: value)
    case is NSDecimalNumber.Type: return NSDecimalNumber(decimal: Decimal(of: value))
    case let type as any BinaryInteger.Type: return integer(value, as: type)
    default: return nil
    }
  }

  private static func integer<Integer: BinaryInteger>(
    _ value: NSNumber,
    as type: Integer.Type
  ) -> Integer {
    Integer(truncatingIfNeeded: value.int64Value)
  }

  private static func empty(_ type: Any.Type) -> Any? {
    switch type {
    case is String.Type: ""
    case is Data.Type: Data()
    case let type as any ExpressibleByArrayLiteral.Type: none(type)
    default: nil
    }
  }

  private static func none<Collection: ExpressibleByArrayLiteral>(
    _ type: Collection.Type
  ) -> Collection {
    []
  }

  /// Whether a type is a number that cannot be nil.
  static func isNumber(_ type: Any.Type) -> Bool { type is any Numeric.Type || type is Bool.Type }
}

private protocol OptionalValue {
  static var wrapped: Any.Type { get }
}

extension Optional: OptionalValue {
  fileprivate static var wrapped: Any.Type { Wrapped.self }
}
