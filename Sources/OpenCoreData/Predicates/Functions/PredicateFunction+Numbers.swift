import Foundation

/// Functions of numbers, and of dates and seconds.
///
/// A nil operand makes a nil result. Integers give integers, as in C and SQL: `5 / 2` is 2; the
/// result of an overflow is a double.
extension PredicateFunction {
  static let add = PredicateFunction(
    selector: "add:to:",
    aliases: ["add"],
    methods: ["dateByAddingTimeInterval:"],
    operands: .count(2),
    notation: .infix("+", .sum),
    sql: .operator("+", movesDates: true),
    value: binary { left, right in
      switch (left, right) {
      case (.date(let date), _): right.doubleValue.map { .date(date + $0) }
      case (_, .date(let date)): left.doubleValue.map { .date($0 + date) }
      default: number(left, right, { $0.addingReportingOverflow($1) }, { $0 + $1 })
      }
    }
  )

  static let subtract = PredicateFunction(
    selector: "from:subtract:",
    aliases: ["subtract"],
    methods: ["timeIntervalSinceDate:"],
    operands: .count(2),
    notation: .infix("-", .sum),
    sql: .operator("-", movesDates: true),
    value: binary { left, right in
      switch (left, right) {
      case (.date(let first), .date(let second)): .number(first - second)
      case (.date(let date), _): right.doubleValue.map { .date(date - $0) }
      default: number(left, right, { $0.subtractingReportingOverflow($1) }, { $0 - $1 })
      }
    }
  )

  static let multiply = PredicateFunction(
    selector: "multiply:by:",
    aliases: ["multiply"],
    operands: .count(2),
    notation: .infix("*", .product),
    sql: .operator("*"),
    value: binary { number($0, $1, { $0.multipliedReportingOverflow(by: $1) }, { $0 * $1 }) }
  )

  static let divide = PredicateFunction(
    selector: "divide:by:",
    aliases: ["divide"],
    operands: .count(2),
    notation: .infix("/", .product),
    sql: .operator("/"),
    value: binary { left, right in
      right.doubleValue == 0
        ? nil : number(left, right, { $0.dividedReportingOverflow(by: $1) }, { $0 / $1 })
    }
  )

  static let modulus = PredicateFunction(
    selector: "modulus:by:",
    aliases: ["modulus", "mod"],
    operands: .count(2),
    // -1 divides everything; Swift traps for the least integer.
    value: binary { whole($0, $1) { $1 == 0 ? nil : $1 == -1 ? 0 : $0 % $1 } }
  )

  static let power = PredicateFunction(
    selector: "raise:toPower:",
    aliases: ["pow"],
    operands: .count(2),
    notation: .infix("**", .power),
    value: binary { number($0, $1, nil, pow) }
  )

  static let arithmetic = [
    add, subtract, multiply, divide, modulus, power,
    real("sqrt:") { $0.squareRoot() },
    real("log:", log10),
    real("ln:", log),
    real("exp:", exp),
  ]

  static let roundings = [
    real("abs:", whole: { $0 == .min ? .double(0x1p63) : .integer(abs($0)) }, abs),
    real("ceiling:", aliases: ["ceil"], whole: ExpressionValue.integer) { $0.rounded(.up) },
    real("floor:", whole: ExpressionValue.integer) { $0.rounded(.down) },
    real("trunc:", whole: ExpressionValue.integer) { $0.rounded(.towardZero) },
  ]

  // MARK: Bits

  static let onesComplement = PredicateFunction(
    selector: "onesComplement:",
    operands: .count(1),
    notation: .prefix("~"),
    sql: .operator("~"),
    value: unary { value in
      value.text == nil ? value.doubleValue.map { .integer(~wrapped($0, value)) } : nil
    }
  )

  static let bits = [
    onesComplement,
    bitwise("bitwiseOr:with:", "|", .bitwiseOr, sql: .operator("|")) { $0 | $1 },
    // SQLite has no such operator.
    bitwise("bitwiseXor:with:", "^", .bitwiseXor) { $0 ^ $1 },
    bitwise("bitwiseAnd:with:", "&", .bitwiseAnd, sql: .operator("&")) { $0 & $1 },
    // Swift's shifts accept any distance: too large gives 0 or the sign, negative shifts the other
    // way.
    bitwise("leftshift:by:", "<<", .shift, sql: .operator("<<")) { $0 << $1 },
    bitwise("rightshift:by:", ">>", .shift, sql: .operator(">>")) { $0 >> $1 },
  ]

  private static func bitwise(
    _ selector: String,
    _ symbol: String,
    _ precedence: Precedence,
    sql: SQLForm = .call(operands: .number, result: .number),
    _ body: @escaping @Sendable (Int64, Int64) -> Int64
  ) -> PredicateFunction {
    PredicateFunction(
      selector: selector,
      operands: .count(2),
      notation: .infix(symbol, precedence),
      sql: sql,
      value: binary { whole($0, $1, body) }
    )
  }

  // MARK: Operands

  typealias Value = @Sendable ([ExpressionValue], EvaluationEffects) -> ExpressionValue

  /// The body for one operand that is not nil; nil for other operands than it takes.
  static func unary(_ body: @escaping @Sendable (ExpressionValue) -> ExpressionValue?) -> Value {
    { operands, _ in
      guard let first = operands.first, !first.isNull else { return .null }
      return body(first) ?? .null
    }
  }

  /// The body for two operands that are not nil; nil for other operands than it takes.
  static func binary(
    _ body: @escaping @Sendable (ExpressionValue, ExpressionValue) -> ExpressionValue?
  ) -> Value {
    { operands, _ in
      guard operands.count == 2, !operands[0].isNull, !operands[1].isNull else { return .null }
      return body(operands[0], operands[1]) ?? .null
    }
  }

  /// A function of one real number; `whole` is its value of an integer.
  private static func real(
    _ selector: String,
    aliases: [String] = [],
    whole: (@Sendable (Int64) -> ExpressionValue)? = nil,
    _ body: @escaping @Sendable (Double) -> Double
  ) -> PredicateFunction {
    PredicateFunction(
      selector: selector,
      aliases: aliases,
      operands: .count(1),
      value: unary { value in
        if let whole, case .integer(let integer) = value { return whole(integer) }
        return value.text == nil ? value.doubleValue.map { .number(body($0)) } : nil
      }
    )
  }

  /// An exact integer of two integers, otherwise the double of their doubles.
  private static func number(
    _ left: ExpressionValue,
    _ right: ExpressionValue,
    _ exact: ((Int64, Int64) -> (partialValue: Int64, overflow: Bool))?,
    _ double: (Double, Double) -> Double
  ) -> ExpressionValue? {
    guard let first = left.doubleValue, let second = right.doubleValue else { return nil }
    if let exact, case .integer(let first) = left, case .integer(let second) = right {
      let (result, overflow) = exact(first, second)
      if !overflow { return .integer(result) }
    }
    return .number(double(first, second))
  }

  private static func whole(
    _ left: ExpressionValue,
    _ right: ExpressionValue,
    _ body: (Int64, Int64) -> Int64?
  ) -> ExpressionValue? {
    guard let first = left.doubleValue, let second = right.doubleValue else { return nil }
    return body(wrapped(first, left), wrapped(second, right)).map(ExpressionValue.integer)
  }

  /// The nearest integer towards zero, limited to the range of 64 bits, as SQLite casts.
  private static func wrapped(_ number: Double, _ value: ExpressionValue) -> Int64 {
    if case .integer(let whole) = value { return whole }
    if number >= 0x1p63 { return .max }
    if number <= -0x1p63 { return .min }
    return Int64(number)
  }
}
