import Effects
import Foundation

/// Conversions, and functions whose value is not of their operands alone.
extension PredicateFunction {
  static let cast = PredicateFunction(
    selector: "castObject:toType:",
    operands: .count(2),
    notation: .cast,
    sql: .cast,
    value: binary { value, type in
      type.text.flatMap { ValueCast($0) }?.value(of: value)
    }
  )

  /// CloudKit's distance between locations; only its queries can evaluate it.
  static let distance = PredicateFunction(
    selector: "distanceToLocation:fromLocation:",
    operands: .count(2),
    sql: .none("distances are for CloudKit's queries only"),
    value: { _, _ in .null }
  )

  static let conversions = [
    cast, distance,
    PredicateFunction(
      selector: "noindex:",
      operands: .count(1),
      sql: .unindexed,
      value: { operands, _ in operands.first ?? .null }
    ),
  ]

  static let effects = [
    PredicateFunction(
      selector: "now",
      operands: .count(0),
      sql: .none("the time is that of the statement"),
      value: { _, effects in .date(effects.clock.now.timeIntervalSinceReferenceDate) }
    ),
    PredicateFunction(
      selector: "random",
      operands: .count(0),
      sql: .none("random numbers are for memory only"),
      isRandom: true,
      value: { _, effects in .double(effects.randomness.fraction()) }
    ),
    PredicateFunction(
      selector: "random:",
      operands: .count(1),
      sql: .none("random numbers are for memory only"),
      isRandom: true,
      value: { operands, effects in
        guard let bound = operands.first?.doubleValue, bound >= 1, bound < 0x1p62 else {
          return .null
        }
        return .integer(Int64(effects.randomness.next() % UInt64(bound)))
      }
    ),
  ]
}
