import Foundation

/// The target types of `CAST()`.
enum ValueCast: String {
  case number = "NSNumber"
  case decimal = "NSDecimalNumber"
  case date = "NSDate"
  case string = "NSString"
  case url = "NSURL"
  case uuid = "NSUUID"
  case data = "NSData"

  /// Accepts Apple's class names and Swift's type names.
  init?(_ name: String) {
    let spelled = name.hasPrefix("NS") ? name : "NS" + name
    self.init(rawValue: spelled == "NSDecimal" ? "NSDecimalNumber" : spelled)
  }

  /// The value converted to the type; nil if that is impossible.
  func value(of value: ExpressionValue) -> ExpressionValue? {
    if value.isNull { return .null }
    switch self {
    case .number: return number(value)
    case .decimal:
      switch value {
      case .decimal: return value
      case .integer(let whole): return .decimal(Decimal(whole))
      default: return decimal(value)
      }
    case .date:
      if case .date = value { return value }
      return value.doubleValue.map(ExpressionValue.date) ?? parsed(value).map(ExpressionValue.date)
    case .string: return string(value)
    case .url: return value.text.flatMap { URL(string: $0) }.map(ExpressionValue.url)
    case .uuid:
      if case .uuid = value { return value }
      return value.text.flatMap { UUID(uuidString: $0) }.map(ExpressionValue.uuid)
    case .data:
      if case .data = value { return value }
      return value.text.flatMap(Self.bytes).map(ExpressionValue.data)
    }
  }

  private func number(_ value: ExpressionValue) -> ExpressionValue? {
    switch value {
    case .integer, .double, .decimal: return value
    case .date(let seconds): return .double(seconds)
    default:
      guard let text = value.text?.trimmingCharacters(in: .whitespaces) else { return nil }
      return Int64(text).map(ExpressionValue.integer) ?? Double(text).map(ExpressionValue.number)
    }
  }

  private func decimal(_ value: ExpressionValue) -> ExpressionValue? {
    if case .double(let number) = value { return .exact(Decimal(nearest: number)) }
    return value.text.flatMap { Decimal(string: $0) }.map(ExpressionValue.exact)
  }

  private func parsed(_ value: ExpressionValue) -> Double? {
    value.text.flatMap { Double($0) }
  }

  private func string(_ value: ExpressionValue) -> ExpressionValue? {
    switch value {
    case .integer(let number): .string("\(number)")
    case .double(let number): .string("\(number)")
    case .decimal(let number): .string("\(number)")
    case .uuid(let identifier): .string(identifier.uuidString)
    default: value.text.map(ExpressionValue.string)
    }
  }

  /// Decodes hexadecimal digits.
  static func bytes(_ text: String) -> Data? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var data = Data(capacity: digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      let pair = String(decoding: digits[index...index + 1], as: UTF8.self)
      guard let byte = UInt8(pair, radix: 16) else { return nil }
      data.append(byte)
    }
    return data
  }
}
