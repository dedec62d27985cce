import Foundation

private protocol OptionalBox {
  var content: Any? { get }
}

extension Optional: OptionalBox {
  fileprivate var content: Any? {
    switch self {
    case .none: nil
    case .some(let value): value
    }
  }
}

/// Unwraps optionals inside an `Any`.
package func flattened(_ value: Any?) -> Any? {
  guard let value else { return nil }
  if let box = value as? any OptionalBox { return flattened(box.content) }
  return value
}

extension ExpressionValue {
  /// Converts a value of any type.
  ///
  /// Common types are tried first, since casts are slow.
  package init(_ value: Any?) {
    guard let value else {
      self = .null
      return
    }
    switch type(of: value) {
    case let type where type == String.self: self = (value as? String).map(Self.string) ?? .null
    case let type where type == Int.self:
      self = (value as? Int).map { .integer(Int64($0)) } ?? .null
    case let type where type == Int64.self: self = (value as? Int64).map(Self.integer) ?? .null
    case let type where type == Double.self: self = (value as? Double).map(Self.number) ?? .null
    case let type where type == Bool.self: self = (value as? Bool).map(Self.bool) ?? .null
    case let type where type == Date.self:
      self = (value as? Date).map { .date($0.timeIntervalSinceReferenceDate) } ?? .null
    // The class decides, as a cast to Float or Decimal succeeds for any number.
    case is NSNumber.Type: self = (value as? NSNumber).map(Self.number) ?? .null
    default:
      self = Self.uncommon(value)
    }
  }

  private static func uncommon(_ value: Any) -> ExpressionValue {
    switch value {
    case let value as ExpressionValue: value
    case let value as any ObjectIdentified: .object(value.comparisonIdentifier, value)
    case is NSNull: .null
    case let value as Decimal: .exact(value)
    case let value as Float: .number(Double(value))
    case let value as any FixedWidthInteger: whole(value)
    case let value as String: .string(value)
    case let value as Substring: .string(String(value))
    case let value as NSString: .string(value as String)
    case let value as UUID: .uuid(value)
    case let value as URL: .url(value)
    case let value as Data: .data(value)
    case let value as NSDate: .date(value.timeIntervalSinceReferenceDate)
    case let value as NSUUID: .uuid(value as UUID)
    case let value as NSURL: .url(value as URL)
    case let value as NSData: .data(value as Data)
    case let value as any OptionalBox: ExpressionValue(value.content)
    default: collection(value).map { .collection($0) } ?? .opaque(value)
    }
  }

  /// The members, if the value is a collection.
  ///
  /// A dictionary is an object, not a collection.
  private static func collection(_ value: Any) -> [ExpressionValue]? {
    members(of: value)?.map { ExpressionValue($0) }
  }

  /// The members of a collection of any type, unconverted; nil for other values.
  package static func members(of value: Any) -> [Any]? {
    switch value {
    case let value as NSSet: value.allObjects
    case let value as NSOrderedSet: value.array
    case is String, is any KeyValueCoding, is NSDictionary, is [AnyHashable: Any]: nil
    case let value as [Any]: value
    case let value as Set<AnyHashable>: value.map(\.base)
    case let value as NSArray: value.map { $0 }
    default: nil
    }
  }

  private static func whole(_ value: some FixedWidthInteger) -> ExpressionValue {
    if let exact = Int64(exactly: value) { return .integer(exact) }
    return .exact(Decimal(string: "\(value)") ?? .nan)
  }

  private static func number(_ value: NSNumber) -> ExpressionValue {
    if let decimal = value as? NSDecimalNumber { return .exact(decimal.decimalValue) }
    switch UInt8(bitPattern: value.objCType.pointee) {
    case UInt8(ascii: "d"), UInt8(ascii: "f"): return .number(value.doubleValue)
    case UInt8(ascii: "Q"): return whole(value.uint64Value)
    default: return .integer(value.int64Value)
    }
  }

  /// Converts a row value without boxing.
  package init(row value: RowValue) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .double(let value): self = .number(value)
    case .date(let value): self = value.isNaN ? .null : .date(value)
    case .decimal(let value): self = .exact(value.value)
    case .string(let value): self = .string(value)
    case .data(let value): self = .data(value)
    case .uuid(let value): self = .uuid(value)
    case .url(let value): self = .url(value)
    case .reference(let value): self = .object(AnyHashable(value), value)
    }
  }

  /// The value in a row or a statement; nil if it has no such representation.
  package var rowValue: RowValue? {
    switch self {
    case .null: .null
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    case .decimal(let value): .decimal(RowDecimal(value))
    case .date(let value): .date(value)
    case .string(let value): .string(value)
    case .url(let value): .url(value)
    case .uuid(let value): .uuid(value)
    case .data(let value): .data(value)
    case .object, .collection, .opaque: nil
    }
  }

  /// The value as key-value coding returns it.
  package var foundationValue: Any? {
    switch self {
    case .null: nil
    case .integer(let value): NSNumber(value: value)
    case .double(let value): NSNumber(value: value)
    case .decimal(let value): NSDecimalNumber(decimal: value)
    case .date(let value): Date(timeIntervalSinceReferenceDate: value)
    case .string(let value): value
    case .url(let value): value
    case .uuid(let value): value
    case .data(let value): value
    case .object(_, let value): value
    case .collection(let values): values.map { $0.foundationValue ?? NSNull() }
    case .opaque(let value): value
    }
  }
}
