import Foundation

/// Functions of a collection, and of several values as one.
extension PredicateFunction {
  static let sum = collection("sum:", .sum)
  static let count = collection("count:", methods: ["count"], .count)
  static let minimum = collection("min:", .minimum)
  static let maximum = collection("max:", .maximum)
  static let distinct = collection("distinct:", .distinctUnion)
  static let average = collection("average:", aliases: ["avg"], .average)
  static let median = statistic("median:") { numbers in
    let middle = numbers.count / 2
    return numbers.count.isMultiple(of: 2)
      ? (numbers[middle - 1] + numbers[middle]) / 2 : numbers[middle]
  }
  static let mode = statistic("mode:") { numbers in
    var best = (value: numbers[0], count: 0)
    for number in numbers {
      let repeats = numbers.count { $0 == number }
      if repeats > best.count { best = (number, repeats) }
    }
    return best.value
  }
  static let standardDeviation = statistic("stddev:") { numbers in
    let count = Double(numbers.count)
    let mean = numbers.reduce(0, +) / count
    return (numbers.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / count).squareRoot()
  }

  /// `collection[index]`, by a position or by `FIRST`, `LAST` or `SIZE`.
  static let index = PredicateFunction(
    selector: "objectFrom:withIndex:",
    methods: ["objectAtIndex:"],
    operands: .count(2),
    notation: .index,
    sql: .index,
    value: { operands, _ in
      guard operands.count == 2 else { return .null }
      return member(of: operands[0].members, at: operands[1])
    }
  )

  static let collections = [
    sum, count, minimum, maximum, distinct, index, average, median, mode, standardDeviation,
  ]

  /// The selectors of functions that compute one value of a collection; a fetch of dictionaries computes one for each
  /// group.
  static let aggregates = Set(
    [sum, count, minimum, maximum, average, median, mode, standardDeviation].map(\.selector)
  )

  private static func collection(
    _ selector: String,
    aliases: [String] = [],
    methods: [String] = [],
    _ operation: CollectionOperator
  ) -> PredicateFunction {
    PredicateFunction(
      selector: selector,
      aliases: aliases,
      methods: methods,
      operands: .collection(operation),
      sql: .collection,
      value: { operands, _ in
        operands.first.map { operation.applied(to: $0.members) } ?? .null
      }
    )
  }

  /// A function of the sorted numbers of a collection; nil without numbers.
  private static func statistic(
    _ selector: String,
    _ body: @escaping @Sendable ([Double]) -> Double
  ) -> PredicateFunction {
    PredicateFunction(
      selector: selector,
      operands: .collection(nil),
      sql: .collection,
      value: { operands, _ in
        let numbers = (operands.first?.members ?? []).compactMap(\.doubleValue).sorted()
        return numbers.isEmpty ? .null : .number(body(numbers))
      }
    )
  }

  private static func member(
    of members: [ExpressionValue],
    at index: ExpressionValue
  ) -> ExpressionValue {
    switch index {
    case .string("FIRST"): members.first ?? .null
    case .string("LAST"): members.last ?? .null
    case .string("SIZE"): .integer(Int64(members.count))
    case .integer(let position):
      Int(exactly: position).flatMap { members.indices.contains($0) ? members[$0] : nil } ?? .null
    default: .null
    }
  }
}
