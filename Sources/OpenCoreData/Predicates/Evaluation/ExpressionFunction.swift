import Foundation

/// The functions of the format language, under their selector names.
///
/// SQL also calls `apply`, through a registered function, so both have one implementation. A nil
/// operand makes a nil result, except if a collection is counted or summed.
package enum ExpressionFunction {
  /// The functions of a collection, with the collection operators that have the same result.
  static let collectionFunctions: [String: CollectionOperator?] = [
    "sum:": .sum, "count:": .count, "min:": .minimum, "max:": .maximum, "average:": .average,
    "median:": nil, "mode:": nil, "stddev:": nil, "distinct:": .distinctUnion,
  ]

  static let argumentCounts: [String: Int] = [
    "add:to:": 2, "from:subtract:": 2, "multiply:by:": 2, "divide:by:": 2, "modulus:by:": 2,
    "raise:toPower:": 2, "sqrt:": 1, "log:": 1, "ln:": 1, "exp:": 1, "ceiling:": 1, "floor:": 1,
    "abs:": 1, "trunc:": 1, "bitwiseAnd:with:": 2, "bitwiseOr:with:": 2, "bitwiseXor:with:": 2,
    "leftshift:by:": 2, "rightshift:by:": 2, "onesComplement:": 1, "uppercase:": 1,
    "lowercase:": 1, "canonical:": 1, "length:": 1, "noindex:": 1, "now": 0, "random": 0,
    "random:": 1,
    "castObject:toType:": 2, "objectFrom:withIndex:": 2,
    // CloudKit's distance between locations; only its queries can evaluate it.
    "distanceToLocation:fromLocation:": 2,
  ]

  private static let aliases: [String: String] = [
    "avg": "average:", "mod": "modulus:by:", "pow": "raise:toPower:", "ceil": "ceiling:",
    "add": "add:to:", "subtract": "from:subtract:", "multiply": "multiply:by:",
    "divide": "divide:by:", "modulus": "modulus:by:",
  ]

  /// The selector name of a function in a format string, `max` or `max:`; nil if it is unknown.
  static func named(_ name: String, argumentCount: Int) -> String? {
    for candidate in [name, name + ":", aliases[name] ?? ""] {
      if collectionFunctions[candidate] != nil, argumentCount > 0 { return candidate }
      if argumentCounts[candidate] == argumentCount { return candidate }
    }
    return nil
  }

  /// Combines several arguments of a collection's function into one collection.
  static func gathered(_ arguments: [ExpressionTree], for name: String) -> [ExpressionTree] {
    collectionFunctions[name] != nil && arguments.count > 1 ? [.aggregate(arguments)] : arguments
  }

  /// The function's value.
  package static func apply(_ name: String, _ arguments: [ExpressionValue]) -> ExpressionValue {
    guard let first = arguments.first else { return .null }
    if let known = collectionFunctions[name] {
      return known?.applied(to: first.members) ?? statistic(name, first.members)
    }
    if name == "noindex:" { return first }
    if name == "objectFrom:withIndex:" { return indexed(first, arguments.last ?? .null) }
    if arguments.contains(where: \.isNull) { return .null }
    if arguments.count == 2 { return binary(name, first, arguments[1]) }
    return unary(name, first)
  }

  // MARK: One operand

  private static func unary(_ name: String, _ value: ExpressionValue) -> ExpressionValue {
    if let text = value.text {
      switch name {
      case "uppercase:": return .string(text.uppercased())
      case "lowercase:": return .string(text.lowercased())
      case "canonical:":
        return .string(StringComparison([.caseInsensitive, .diacriticInsensitive]).folded(text))
      case "length:": return .integer(Int64(text.utf16.count))
      default: return .null
      }
    }
    if case .integer(let whole) = value {
      switch name {
      case "abs:": return whole == .min ? .double(0x1p63) : .integer(abs(whole))
      case "ceiling:", "floor:", "trunc:": return value
      default: break
      }
    }
    guard let number = value.doubleValue else { return .null }
    switch name {
    case "sqrt:": return .number(number.squareRoot())
    case "log:": return .number(log10(number))
    case "ln:": return .number(log(number))
    case "exp:": return .number(exp(number))
    case "abs:": return .number(abs(number))
    case "ceiling:": return .number(number.rounded(.up))
    case "floor:": return .number(number.rounded(.down))
    case "trunc:": return .number(number.rounded(.towardZero))
    case "onesComplement:": return .integer(~wrapped(number, value))
    default: return .null
    }
  }

  /// The nearest integer towards zero, limited to the range of 64 bits, as SQLite casts.
  private static func wrapped(_ number: Double, _ value: ExpressionValue) -> Int64 {
    if case .integer(let whole) = value { return whole }
    if number >= 0x1p63 { return .max }
    if number <= -0x1p63 { return .min }
    return Int64(number)
  }

  // MARK: Two operands

  private static func binary(
    _ name: String,
    _ left: ExpressionValue,
    _ right: ExpressionValue
  ) -> ExpressionValue {
    if name == "castObject:toType:" {
      return right.text.flatMap { ValueCast($0) }?.value(of: left) ?? .null
    }
    if let moved = dateArithmetic(name, left, right) { return moved }
    guard let first = left.doubleValue, let second = right.doubleValue else { return .null }
    if case .integer(let first) = left, case .integer(let second) = right,
      let exact = whole(name, first, second)
    {
      return exact
    }
    switch name {
    case "add:to:": return .number(first + second)
    case "from:subtract:": return .number(first - second)
    case "multiply:by:": return .number(first * second)
    case "divide:by:": return second == 0 ? .null : .number(first / second)
    case "raise:toPower:": return .number(pow(first, second))
    case "distanceToLocation:fromLocation:": return .null
    default: return bits(name, wrapped(first, left), wrapped(second, right))
    }
  }

  /// Integers give integers, as in C and SQL: `5 / 2` is 2.
  ///
  /// The result of an overflow is a double.
  private static func whole(_ name: String, _ left: Int64, _ right: Int64) -> ExpressionValue? {
    let (result, overflow): (Int64, Bool)
    switch name {
    case "add:to:": (result, overflow) = left.addingReportingOverflow(right)
    case "from:subtract:": (result, overflow) = left.subtractingReportingOverflow(right)
    case "multiply:by:": (result, overflow) = left.multipliedReportingOverflow(by: right)
    case "divide:by:":
      if right == 0 { return .null }
      (result, overflow) = left.dividedReportingOverflow(by: right)
    default: return nil
    }
    return overflow ? nil : .integer(result)
  }

  private static func bits(_ name: String, _ left: Int64, _ right: Int64) -> ExpressionValue {
    switch name {
    case "modulus:by:":
      return right == 0 ? .null : .integer(right == -1 ? 0 : left % right)
    case "bitwiseAnd:with:": return .integer(left & right)
    case "bitwiseOr:with:": return .integer(left | right)
    case "bitwiseXor:with:": return .integer(left ^ right)
    // Swift's shifts accept any distance: too large gives 0 or the sign, negative shifts the other
    // way.
    case "leftshift:by:": return .integer(left << right)
    case "rightshift:by:": return .integer(left >> right)
    default: return .null
    }
  }

  /// Adds seconds to a date, or returns the seconds between two dates.
  private static func dateArithmetic(
    _ name: String,
    _ left: ExpressionValue,
    _ right: ExpressionValue
  ) -> ExpressionValue? {
    switch (left, right, name) {
    case (.date(let first), .date(let second), "from:subtract:"):
      return .number(first - second)
    case (.date(let first), _, "add:to:"):
      return right.doubleValue.map { .date(first + $0) }
    case (.date(let first), _, "from:subtract:"):
      return right.doubleValue.map { .date(first - $0) }
    case (_, .date(let second), "add:to:"):
      return left.doubleValue.map { .date($0 + second) }
    default:
      return nil
    }
  }

  // MARK: Collections

  private static func indexed(
    _ collection: ExpressionValue,
    _ index: ExpressionValue
  ) -> ExpressionValue {
    let members = collection.members
    switch index {
    case .string("FIRST"): return members.first ?? .null
    case .string("LAST"): return members.last ?? .null
    case .string("SIZE"): return .integer(Int64(members.count))
    default:
      guard case .integer(let position) = index, members.indices.contains(Int(position)) else {
        return .null
      }
      return members[Int(position)]
    }
  }

  private static func statistic(
    _ name: String,
    _ members: [ExpressionValue]
  ) -> ExpressionValue {
    let numbers = members.compactMap(\.doubleValue).sorted()
    guard let first = numbers.first else { return .null }
    let count = Double(numbers.count)
    switch name {
    case "median:":
      let middle = numbers.count / 2
      return .number(
        numbers.count.isMultiple(of: 2)
          ? (numbers[middle - 1] + numbers[middle]) / 2 : numbers[middle]
      )
    case "stddev:":
      let mean = numbers.reduce(0, +) / count
      return .number((numbers.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / count).squareRoot())
    default:
      var best = (value: first, count: 0)
      for number in numbers {
        let repeats = numbers.count { $0 == number }
        if repeats > best.count { best = (number, repeats) }
      }
      return .number(best.value)
    }
  }
}
