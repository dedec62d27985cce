import Foundation
import WatershedSQLite

/// The SQL functions that translated predicates call.
///
/// A connection registers all of them.
///
/// Each one has the evaluator's result, since it calls the same code.
package enum PredicateSQLFunctions {
  package typealias Implementation = @Sendable ([SQLiteValue]) -> SQLiteValue

  /// `argumentCount` is -1 for a variable number.
  package static let all: [(name: String, argumentCount: Int, implementation: Implementation)] = [
    (fold, 2, { arguments in key(arguments) { $0.folded($1) } }),
    (orderKey, 2, { arguments in key(arguments) { $0.orderKey($1) } }),
    (sortKey, 2, sorting),
    (test, 4, testing),
    (call, -1, calling),
    (
      decimal, 1,
      { arguments in
        guard case .decimal(let value) = RowCoding.decimal(arguments[0]) else { return .null }
        return .text(value.value.description + "m")
      }
    ),
    (
      real, 1,
      { arguments in
        guard case .integer(let bits) = arguments[0] else { return .null }
        return .real(Double(bitPattern: UInt64(bitPattern: bits)))
      }
    ),
    (
      bytes, 1,
      { arguments in
        guard case .text(let digits) = arguments[0] else { return .null }
        return ValueCast.bytes(digits).map(SQLiteValue.blob) ?? .null
      }
    ),
  ]

  /// `(options, text)`: the text without the differences that the options ignore.
  static let fold = "WatershedFold"
  /// `(options, text)`: a text whose byte order is the order that the options specify.
  static let orderKey = "WatershedOrderKey"
  /// `(ordering, text)`: a text whose byte order is the order of a sort descriptor.
  static let sortKey = "WatershedSortKey"
  /// `(operator, options, text, pattern)`: `LIKE`, `MATCHES` and so on, as 0 or 1.
  static let test = "WatershedTest"
  /// `(function, operands…)`: a function of the format language.
  static let call = "WatershedCall"

  /// `(value)`: the value of a decimal column, marked as decimal for `call`.
  static let decimal = "WatershedDecimal"
  /// `(operator, value)`: a collection operator over decimal values, as an aggregate of rows.
  static let decimalFold = "WatershedDecimalFold"

  /// `(bits)`: the double with these bits.
  static let real = "WatershedReal"
  /// `(digits)`: the bytes of hexadecimal digits.
  static let bytes = "WatershedBytes"

  /// Registers the functions on a connection.
  package static func register(on connection: SQLiteConnection) throws {
    for function in all {
      try connection.register(
        function: function.name,
        argumentCount: function.argumentCount,
        function.implementation
      )
    }
    try connection.register(aggregate: decimalFold, argumentCount: 2) { DecimalFold() }
  }

  private static func key(
    _ arguments: [SQLiteValue],
    _ body: (StringComparison, String) -> String
  ) -> SQLiteValue {
    guard case .text(let letters) = arguments[0], case .text(let text) = arguments[1],
      let options = StringComparisonOptions(letters: letters)
    else { return .null }
    return .text(body(StringComparison(options), text))
  }

  private static func sorting(_ arguments: [SQLiteValue]) -> SQLiteValue {
    guard case .text(let name) = arguments[0], let ordering = SortOrdering(rawValue: name),
      case .text(let text) = arguments[1]
    else { return arguments[1] }
    return .text(ordering.key(text))
  }

  private static func testing(_ arguments: [SQLiteValue]) -> SQLiteValue {
    guard case .text(let name) = arguments[0], let kind = ComparisonKind(rawValue: name),
      case .text(let letters) = arguments[1],
      let options = StringComparisonOptions(letters: letters),
      case .text(let text) = arguments[2], case .text(let pattern) = arguments[3]
    else { return .integer(0) }
    return .integer(StringComparison(options).test(kind, text, pattern) ? 1 : 0)
  }

  private static func calling(_ arguments: [SQLiteValue]) -> SQLiteValue {
    guard case .text(let name)? = arguments.first,
      let function = PredicateFunction.named(name)
    else { return .null }
    var operands = arguments.dropFirst().map(ExpressionValue.init(sql:))
    if function.isOfCollection { operands = [.collection(operands.map(\.unmarked))] }
    return function.value(of: operands).sqlValue
  }
}

extension ExpressionValue {
  fileprivate init(sql value: SQLiteValue) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .number(value)
    case .text(let value): self = .string(value)
    case .blob(let value): self = .data(value)
    }
  }

  /// The decimal of a marked text; lists of numbers contain no other texts.
  fileprivate var unmarked: ExpressionValue {
    guard case .string(let text) = self, text.hasSuffix("m") else { return self }
    return .exact(Decimal(string: String(text.dropLast())) ?? .nan)
  }

  fileprivate var sqlValue: SQLiteValue {
    switch self {
    case .integer(let value): .integer(value)
    case .double(let value), .date(let value): .real(value)
    case .decimal(let value): .real(value.asDouble)
    case .string(let value): .text(value)
    case .url(let value): .text(value.absoluteString)
    case .uuid(let value): .blob(withUnsafeBytes(of: value.uuid) { Data($0) })
    case .data(let value): .blob(value)
    case .null, .object, .collection, .opaque: .null
    }
  }
}
