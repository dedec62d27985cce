import Effects
import Foundation

/// Evaluates trees against objects in memory.
///
/// `PredicateTree` says what nil and conflicting kinds mean; the SQL writer keeps to the same.
package struct PredicateEvaluator {
  /// The values of `$variables`.
  package var variables: [String: Any?]
  /// The clock of `now()`.
  package var clock: any EffectClock

  package init(variables: [String: Any?] = [:], clock: any EffectClock = Effects.live.clock) {
    self.variables = variables
    self.clock = clock
  }

  /// Whether the predicate is true of the object.
  package func evaluate(_ tree: PredicateTree, with object: Any?) throws -> Bool {
    try evaluate(tree, EvaluationSubject(object))
  }

  /// The expression's value for the object.
  package func value(_ tree: ExpressionTree, of object: Any?) throws -> ExpressionValue {
    try value(tree, EvaluationSubject(object))
  }

  // MARK: Predicates

  func evaluate(_ tree: PredicateTree, _ subject: EvaluationSubject) throws -> Bool {
    switch tree {
    case .constant(let value):
      return value
    case .comparison(let comparison):
      return try evaluate(comparison, subject)
    case .and(let parts):
      return try parts.allSatisfy { try evaluate($0, subject) }
    case .or(let parts):
      return try parts.contains { try evaluate($0, subject) }
    case .not(let part):
      return try !evaluate(part, subject)
    case .opaque(let opaque):
      return opaque.predicate.evaluate(
        with: subject.raw,
        substitutionVariables: variables.compactMapValues { $0 }
      )
    }
  }

  private func evaluate(
    _ comparison: ComparisonTree,
    _ subject: EvaluationSubject
  ) throws -> Bool {
    let left = try value(comparison.left, subject)
    let right = try value(comparison.right, subject)
    if case .constant(let constant) = comparison.right, let index = constant.index,
      comparison.comparison == .in, comparison.modifier == .direct, comparison.options.isEmpty
    {
      return index.contains(left)
    }
    let relates = comparison.comparison.isRelational
    let leftNumber = relates ? comparison.left.numberInText : nil
    let rightNumber = relates ? comparison.right.numberInText : nil
    func holds(_ member: ExpressionValue) -> Bool {
      var first = right.doubleValue == nil ? member : leftNumber ?? member
      var second = member.doubleValue == nil ? right : rightNumber ?? right
      if first.text != nil, relates || comparison.comparison == .in {
        second = comparison.right.numbersAsText ?? second
      } else if relates, second.text != nil {
        first = comparison.left.numbersAsText ?? first
      }
      return first.holds(comparison.comparison, second, options: comparison.options)
    }
    switch comparison.modifier {
    case .direct: return holds(left)
    case .any: return left.members.contains(where: holds)
    case .all: return left.members.allSatisfy(holds)
    }
  }

  // MARK: Expressions

  func value(_ tree: ExpressionTree, _ subject: EvaluationSubject) throws -> ExpressionValue {
    switch tree {
    case .constant(let constant):
      return constant.value
    case .keyPath(.evaluatedObject, let keys):
      if keys.count == 1, let value = subject.rows?.rowValue(forKey: keys[0]) {
        return ExpressionValue(row: value)
      }
      return ExpressionValue(KeyPathWalk.value(of: subject.raw, keys))
    case .evaluatedObject, .variable, .keyPath, .subquery, .fetch:
      return ExpressionValue(try boxed(tree, subject))
    case .function(let name, let arguments):
      let operands = try arguments.map { try value($0, subject) }
      return PredicateFunction.named(name)?
        .value(of: operands, effects: EvaluationEffects(clock: clock)) ?? .null
    case .call(let target, let selector, let arguments):
      let object = try boxed(target, subject)
      if let answer = try answer(of: object, selector, arguments, subject) {
        return ExpressionValue(answer.value)
      }
      return try SelectorCall.value(
        selector,
        of: object,
        try arguments.map { try value($0, subject) }
      )
    case .aggregate(let members):
      return .collection(try members.map { try value($0, subject) })
    case .set(let operation, let left, let right):
      return operation.applied(try value(left, subject), try value(right, subject))
    case .conditional(let predicate, let first, let second):
      return try value(try evaluate(predicate, subject) ? first : second, subject)
    case .anyKey:
      return .null
    case .block(let block, let arguments):
      let values = try arguments.map { try value($0, subject).foundationValue ?? NSNull() }
      let context = NSMutableDictionary()
      for (name, value) in variables { context[name] = value ?? NSNull() }
      return ExpressionValue(block.body(subject.raw, values, context))
    }
  }

  /// The value as a key path needs it, not converted to `ExpressionValue`.
  func boxed(_ tree: ExpressionTree, _ subject: EvaluationSubject) throws -> Any? {
    switch tree {
    case .evaluatedObject:
      return subject.raw
    case .constant(let constant):
      return constant.raw
    case .variable(let name):
      guard let value = variables[name] else {
        throw PredicateEvaluationError.unboundVariable(name)
      }
      if let expression = value as? NSExpression { return try boxed(expression.tree, subject) }
      return value
    case .keyPath(let base, let keys):
      return KeyPathWalk.value(of: try boxed(base, subject), keys)
    case .subquery(let collection, let variable, let predicate):
      guard let source = flattened(try boxed(collection, subject)) else { return nil }
      let members = ExpressionValue.members(of: source) ?? [source]
      var inner = self
      return try members.filter { member in
        inner.variables[variable] = .some(member)
        return try inner.evaluate(predicate, subject)
      }
    case .fetch(let request, let context, let isCount):
      return try NSFetchRequestExpression.value(
        request: try boxed(request, subject),
        context: try boxed(context, subject),
        countOnly: isCount
      )
    case .call(let target, let selector, let arguments):
      let object = try boxed(target, subject)
      if let answer = try answer(of: object, selector, arguments, subject) { return answer.value }
      return try value(tree, subject).foundationValue
    default:
      return try value(tree, subject).foundationValue
    }
  }

  /// The unchanged result of a method of the object's own; nil for an object without such methods.
  private func answer(
    of object: Any?,
    _ selector: String,
    _ arguments: [ExpressionTree],
    _ subject: EvaluationSubject
  ) throws -> (value: Any?, Void)? {
    guard let object = object as? any SelectorResponding else { return nil }
    let values = try arguments.map { try boxed($0, subject) }
    return (try object.respond(to: selector, arguments: values), ())
  }
}

/// The object to evaluate, with its conformance to `RowValueReading` looked up once.
struct EvaluationSubject {
  let raw: Any?
  let rows: (any RowValueReading)?

  init(_ object: Any?) {
    raw = flattened(object)
    rows = raw as? any RowValueReading
  }
}
