import Foundation

/// Values between rows and key-value coding, where numbers are `NSNumber`.
enum AttributeConversion {
  /// The value as key-value coding gives it.
  static func boxed(_ value: RowValue, as type: NSAttributeType) -> Any? {
    switch value {
    case .null: return nil
    case .integer(let number):
      switch type {
      case .booleanAttributeType: return NSNumber(value: number != 0)
      case .integer16AttributeType: return NSNumber(value: Int16(truncatingIfNeeded: number))
      case .integer32AttributeType: return NSNumber(value: Int32(truncatingIfNeeded: number))
      default: return NSNumber(value: number)
      }
    case .double(let number):
      return type == .floatAttributeType
        ? NSNumber(value: Float(number)) : NSNumber(value: number)
    case .date(let seconds): return Date(timeIntervalSinceReferenceDate: seconds)
    case .decimal(let box): return NSDecimalNumber(decimal: box.value)
    case .string(let text): return text
    case .data(let bytes): return bytes
    case .uuid(let identifier): return identifier
    case .url(let url): return url
    case .reference: return nil
    }
  }

  /// The row's value for what key-value coding was given; nil when it is of the wrong type.
  static func rowValue(_ value: Any, as type: NSAttributeType) -> RowValue? {
    switch type {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType:
      return integer(value).map { .integer(wrapped($0, as: type)) }
    case .booleanAttributeType:
      return integer(value).map { .integer($0 == 0 ? 0 : 1) }
    case .doubleAttributeType:
      return double(value).map(RowValue.double)
    case .floatAttributeType:
      return double(value).map { .double(Double(Float($0))) }
    case .decimalAttributeType:
      return decimal(value).map { .decimal(RowDecimal($0)) }
    case .stringAttributeType:
      return (value as? String).map(RowValue.string)
    case .dateAttributeType:
      return (value as? Date).map { .date($0.timeIntervalSinceReferenceDate) }
    case .binaryDataAttributeType:
      return (value as? Data).map(RowValue.data)
    case .UUIDAttributeType:
      return (value as? UUID).map(RowValue.uuid)
    case .URIAttributeType:
      return (value as? URL).map(RowValue.url)
    case .transformableAttributeType, .undefinedAttributeType, .objectIDAttributeType,
      .compositeAttributeType:
      return nil
    }
  }

  /// Numbers keep the low bits of their width, as `NSNumber` does when it is asked for one.
  private static func wrapped(_ number: Int64, as type: NSAttributeType) -> Int64 {
    switch type {
    case .integer16AttributeType: Int64(Int16(truncatingIfNeeded: number))
    case .integer32AttributeType: Int64(Int32(truncatingIfNeeded: number))
    default: number
    }
  }

  private static func integer(_ value: Any) -> Int64? {
    switch value {
    case let value as NSNumber: value.int64Value
    case let value as Int: Int64(value)
    case let value as Bool: value ? 1 : 0
    case let value as any BinaryInteger: Int64(truncatingIfNeeded: value)
    case let value as Double: Int64(exactly: value.rounded(.towardZero))
    default: nil
    }
  }

  private static func double(_ value: Any) -> Double? {
    switch value {
    case let value as NSNumber: value.doubleValue
    case let value as Double: value
    case let value as Float: Double(value)
    case let value as any BinaryInteger: Double(value)
    case let value as Decimal: NSDecimalNumber(decimal: value).doubleValue
    default: nil
    }
  }

  private static func decimal(_ value: Any) -> Decimal? {
    switch value {
    case let value as Decimal: value
    case let value as NSNumber: Decimal(of: value)
    case let value as any BinaryInteger: Decimal(string: "\(value)")
    case let value as Double: Decimal(nearest: value)
    case let value as Float: Decimal(nearest: Double(value))
    default: nil
    }
  }

  /// The name of the class that Core Data's own message gives.
  static func className(of value: Any) -> String {
    switch value {
    case is String: "NSString"
    case is NSDecimalNumber, is Decimal: "NSDecimalNumber"
    case is NSNumber, is any BinaryInteger, is Double, is Float, is Bool: "NSNumber"
    case is Date: "NSDate"
    case is Data: "NSData"
    case is UUID: "NSUUID"
    case is URL: "NSURL"
    default: "\(Swift.type(of: value))"
    }
  }
}
