import Foundation

/// `@count`, `@sum` and their kin.
///
/// Nil members count with `@count` and nowhere else. Over no values `@sum` is 0 and `@avg`,
/// `@min` and `@max` are nil, as in SQL.
package enum CollectionOperator: String, Sendable, CaseIterable {
  case count = "@count"
  case sum = "@sum"
  case average = "@avg"
  case minimum = "@min"
  case maximum = "@max"
  case distinctUnion = "@distinctUnionOfObjects"
  case union = "@unionOfObjects"

  /// The operator's value over the collection.
  ///
  /// `path` may lead from the members to the values
  /// (`@sum.price`); without it the members are the values (`price.@sum`).
  static func value(_ key: String, of collection: Any?, path: [String]) -> Any? {
    guard let operation = CollectionOperator(rawValue: key) else { return nil }
    let source = path.isEmpty ? collection : KeyPathWalk.value(of: collection, path)
    let members = ExpressionValue(source).members
    return operation.applied(to: members).foundationValue
  }

  /// The operator's value over the members.
  func applied(to members: [ExpressionValue]) -> ExpressionValue {
    let values = members.filter { !$0.isNull }
    switch self {
    case .count: return .integer(Int64(members.count))
    case .sum: return Self.sum(values)
    case .average:
      if let numbers = Self.decimals(values) {
        return .exact(numbers.reduce(0, +) / Decimal(numbers.count))
      }
      let numbers = values.compactMap(\.doubleValue)
      return numbers.isEmpty ? .null : .number(numbers.reduce(0, +) / Double(numbers.count))
    case .minimum: return Self.extreme(values, .orderedAscending)
    case .maximum: return Self.extreme(values, .orderedDescending)
    case .union: return .collection(members)
    case .distinctUnion: return .collection(Self.distinct(members))
    }
  }

  private static func distinct(_ members: [ExpressionValue]) -> [ExpressionValue] {
    var seen = ValueTable()
    return members.filter { seen.insert($0) }
  }

  /// The values as decimal numbers, where some are and none is a double: those are exact.
  private static func decimals(_ values: [ExpressionValue]) -> [Decimal]? {
    var hasDecimal = false
    var result: [Decimal] = []
    for value in values {
      switch value {
      case .decimal(let number):
        hasDecimal = true
        result.append(number)
      case .integer(let number): result.append(Decimal(number))
      case .double: return nil
      default: continue
      }
    }
    return hasDecimal ? result : nil
  }

  /// Whole where all are whole and the sum fits; exact where the values are decimal.
  private static func sum(_ values: [ExpressionValue]) -> ExpressionValue {
    if let numbers = decimals(values) { return .exact(numbers.reduce(0, +)) }
    var whole: Int64 = 0
    for value in values {
      guard case .integer(let number) = value else { return inexactSum(values) }
      let (sum, overflow) = whole.addingReportingOverflow(number)
      if overflow { return inexactSum(values) }
      whole = sum
    }
    return .integer(whole)
  }

  private static func inexactSum(_ values: [ExpressionValue]) -> ExpressionValue {
    .number(values.compactMap(\.doubleValue).reduce(0, +))
  }

  private static func extreme(
    _ values: [ExpressionValue],
    _ order: ComparisonResult
  ) -> ExpressionValue {
    guard var best = values.first else { return .null }
    for value in values.dropFirst() where value.order(to: best) == order { best = value }
    return best
  }
}
