import Effects
import Foundation

/// A function of the format language, with everything that parsing, writing, evaluation and SQL need
/// to know of it.
///
/// A new function is a value in one of the lists of `all`, and a test. SQL calls `value` through a
/// registered function, unless SQLite has an operator for it, so both have one implementation.
struct PredicateFunction: Sendable {
  /// The name in trees and in archives, such as `add:to:`.
  let selector: String
  /// Other names in formats.
  var aliases: [String] = []
  /// Methods with the same meaning, which a format can call on the first operand:
  /// `FUNCTION(text, 'uppercaseString')`.
  var methods: [String] = []
  var operands: Operands
  var notation = Notation.call
  var sql = SQLForm.call(operands: .number, result: .number)
  /// Whether equal operands can give different values.
  var isRandom = false
  let value: @Sendable ([ExpressionValue], EvaluationEffects) -> ExpressionValue

  /// The operands that a function takes.
  enum Operands: Sendable {
    case count(Int)
    /// One collection, or several values that are combined into one; the operator is the collection
    /// operator with the same result, if there is one.
    case collection(CollectionOperator?)
  }

  /// The spelling in the format language.
  enum Notation: Sendable {
    /// `name(operand, …)`
    case call
    /// `left + right`
    case infix(String, Precedence)
    /// `~operand`
    case prefix(String)
    /// `collection[index]`
    case index
    /// `CAST(value, "type")`
    case cast
  }

  /// The precedences of infix operators, in increasing order.
  enum Precedence: Int, CaseIterable, Sendable {
    case bitwiseOr = 1
    case bitwiseXor, bitwiseAnd, shift, sum, product
    /// Right-associative, unlike the others.
    case power
  }

  /// The function in SQL.
  enum SQLForm: Sendable {
    /// An operator of SQLite between or before numbers.
    ///
    /// `movesDates` allows a date and seconds, or two dates, as operands too.
    case `operator`(String, movesDates: Bool = false)
    /// A call of the registered function; other operands than the given kind give NULL.
    case call(operands: SQLValueKind, result: SQLValueKind)
    /// An aggregate over rows, or over the members of a list.
    case collection
    /// The operand, without the use of an index.
    case unindexed
    /// The number of members; other indexes are for memory only.
    case index
    /// A conversion, if SQL has it for the operand's kind.
    case cast
    /// No form in SQL, with the reason.
    case none(String)
  }
}

/// The clock and the random numbers of an evaluation.
struct EvaluationEffects: Sendable {
  var clock: any EffectClock = Effects.live.clock
  var randomness: any RandomSource = Effects.live.randomness
}

// MARK: The table

extension PredicateFunction {
  /// Every function of the format language.
  static let all = arithmetic + roundings + bits + texts + collections + conversions + effects

  private static let bySelector = ValueIndex(all) { [$0.selector] }
  private static let byMethod = ValueIndex(all) { $0.methods }
  /// A name can belong to functions with different numbers of operands.
  private static let byName: [String: [PredicateFunction]] = {
    var found: [String: [PredicateFunction]] = [:]
    for function in all {
      for name in [function.selector] + function.aliases {
        found[name, default: []].append(function)
      }
    }
    return found
  }()

  /// The function with a selector, as trees have it.
  static func named(_ selector: String) -> PredicateFunction? { bySelector[selector] }

  /// The function that a format means, by `max`, `max:` or an alias, with a number of operands.
  static func named(_ name: String, operandCount: Int) -> PredicateFunction? {
    for candidate in [name, name + ":"] {
      if let known = byName[candidate]?.first(where: { $0.takes(operandCount) }) { return known }
    }
    return nil
  }

  /// The function that a method of the first operand means.
  static func method(_ selector: String) -> PredicateFunction? { byMethod[selector] }

  /// The infix operators of a precedence, by symbol.
  static let operators: [Precedence: [String: PredicateFunction]] = {
    var found: [Precedence: [String: PredicateFunction]] = [:]
    for function in all {
      guard case .infix(let symbol, let precedence) = function.notation else { continue }
      found[precedence, default: [:]][symbol] = function
    }
    return found
  }()

  private func takes(_ count: Int) -> Bool {
    switch operands {
    case .count(let expected): count == expected
    case .collection: count > 0
    }
  }

  /// Whether the function is one of a collection.
  var isOfCollection: Bool {
    if case .collection = operands { return true }
    return false
  }

  /// The function's value.
  func value(
    of operands: [ExpressionValue],
    effects: EvaluationEffects = EvaluationEffects()
  ) -> ExpressionValue {
    value(operands, effects)
  }
}

extension ExpressionTree {
  /// The function of the operands; a collection's function takes several as one collection.
  static func applying(
    _ function: PredicateFunction,
    _ operands: [ExpressionTree]
  ) -> ExpressionTree {
    let gathered = function.isOfCollection && operands.count > 1 ? [.aggregate(operands)] : operands
    return .function(function.selector, gathered)
  }
}

/// Values by names that are unique among them.
private struct ValueIndex<Value: Sendable>: Sendable {
  private var values: [String: Value] = [:]

  init(_ all: [Value], names: (Value) -> [String]) {
    for value in all {
      for name in names(value) {
        precondition(values[name] == nil, "two values are named \(name)")
        values[name] = value
      }
    }
  }

  subscript(name: String) -> Value? { values[name] }
}
