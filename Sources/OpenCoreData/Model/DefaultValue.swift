import Foundation

/// Default values: parsed from the text of a model file, and converted to row values.
enum DefaultValue {
  /// Reads the text of a model file; nil when it is not a value of the type.
  ///
  /// After a change of an attribute's type the editor keeps the old default: `NO` for a number that
  /// was a Boolean, `0.0` for a Boolean that was a number. They are read as Core Data's compiler
  /// does.
  static func parse(_ text: String, type: NSAttributeType) -> Any? {
    switch type {
    case .integer16AttributeType:
      wholeNumber(text).flatMap { Int16(exactly: $0) }.map { NSNumber(value: $0) }
    case .integer32AttributeType:
      wholeNumber(text).flatMap { Int32(exactly: $0) }.map { NSNumber(value: $0) }
    case .integer64AttributeType:
      wholeNumber(text).map { NSNumber(value: $0) }
    case .decimalAttributeType:
      (wholeDecimal(text) ?? boolean(text).map { $0 ? 1 : 0 })
        .map { NSDecimalNumber(decimal: $0) }
    case .doubleAttributeType:
      (Double(text) ?? boolean(text).map { $0 ? 1 : 0 }).map { NSNumber(value: $0) }
    case .floatAttributeType:
      (Float(text) ?? boolean(text).map { $0 ? 1 : 0 }).map { NSNumber(value: $0) }
    case .booleanAttributeType:
      (boolean(text) ?? Double(text).map { $0 != 0 }).map { NSNumber(value: $0) }
    case .stringAttributeType:
      text
    case .dateAttributeType:
      Double(text).map { Date(timeIntervalSinceReferenceDate: $0) }
    case .UUIDAttributeType:
      UUID(uuidString: text)
    case .URIAttributeType:
      URL(string: text)
    case .binaryDataAttributeType, .transformableAttributeType, .undefinedAttributeType,
      .objectIDAttributeType, .compositeAttributeType:
      nil
    }
  }

  /// The whole number that a text begins with, as C reads a number from a text; "0" without one.
  static func leadingNumber(_ text: String) -> String {
    let digits = text.drop { $0.isWhitespace }.prefixMatch(of: /-?[0-9]+/)
    return digits.map { String($0.output) } ?? "0"
  }

  /// YES and NO as the model editor writes them, and the other spellings that occur.
  static func boolean(_ text: String) -> Bool? {
    switch text.lowercased() {
    case "yes", "true", "1": true
    case "no", "false", "0": false
    default: nil
    }
  }

  /// The value in a row.
  static func rowValue(of value: Any?, type: NSAttributeType) -> RowValue {
    guard let value else { return .null }
    switch type {
    case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
      .booleanAttributeType:
      return integer(value).map(RowValue.integer) ?? .null
    case .doubleAttributeType, .floatAttributeType:
      return double(value).map(RowValue.double) ?? .null
    case .decimalAttributeType:
      return decimal(value).map { .decimal(RowDecimal($0)) } ?? .null
    case .stringAttributeType:
      return (value as? String).map(RowValue.string) ?? .null
    case .dateAttributeType:
      return (value as? Date).map { .date($0.timeIntervalSinceReferenceDate) } ?? .null
    case .binaryDataAttributeType:
      return (value as? Data).map(RowValue.data) ?? .null
    case .UUIDAttributeType:
      return (value as? UUID).map(RowValue.uuid) ?? .null
    case .URIAttributeType:
      return (value as? URL).map(RowValue.url) ?? .null
    case .transformableAttributeType, .undefinedAttributeType, .objectIDAttributeType,
      .compositeAttributeType:
      return (value as? Data).map(RowValue.data) ?? .null
    }
  }

  private static func integer(_ value: Any) -> Int64? {
    switch value {
    case let value as Bool: value ? 1 : 0
    case let value as Int: Int64(value)
    case let value as any BinaryInteger: Int64(clamping: value)
    case let value as NSNumber: value.int64Value
    default: nil
    }
  }

  private static func double(_ value: Any) -> Double? {
    switch value {
    case let value as Double: value
    case let value as Float: Double(value)
    case let value as any BinaryInteger: Double(value)
    case let value as NSNumber: value.doubleValue
    default: nil
    }
  }

  private static func decimal(_ value: Any) -> Decimal? {
    switch value {
    case let value as Decimal: value
    case let value as NSNumber: Decimal(of: value)
    default: double(value).map { Decimal(nearest: $0) }
    }
  }

  /// An integer; editors also leave "0.0" if a type was changed to an integer.
  private static func wholeNumber(_ text: String) -> Int64? {
    if let number = Int64(text) { return number }
    if let isTrue = boolean(text) { return isTrue ? 1 : 0 }
    guard let number = Double(text), let whole = Int64(exactly: number.rounded()),
      Double(whole) == number
    else { return nil }
    return whole
  }
}
