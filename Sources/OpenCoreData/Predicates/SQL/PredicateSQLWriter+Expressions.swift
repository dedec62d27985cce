import Effects
import Foundation

extension PredicateSQLWriter {
  /// The value of a tree that does not depend on the row; nil if it does.
  func constantValue(of tree: ExpressionTree) throws -> ExpressionValue? {
    guard tree.isIndependent else { return nil }
    do {
      return try PredicateEvaluator(clock: StoppedClock(now: now)).value(tree, of: nil)
    } catch let error as PredicateEvaluationError {
      throw PredicateNotTranslatable(reason: error.description)
    }
  }

  func bound(_ value: ExpressionValue, in tree: ExpressionTree) throws -> SQLFragment {
    switch value {
    case .null: return SQLFragment("NULL")
    case .url(let url): return SQLFragment("?", [.string(url.absoluteString)])
    case .object, .collection, .opaque: return SQLFragment("NULL")
    default:
      guard let row = value.rowValue else {
        throw PredicateNotTranslatable.expression(tree, "the value has no form in SQL")
      }
      return SQLFragment("?", [row])
    }
  }

  /// The tree as a scalar of the row.
  func term(_ tree: ExpressionTree) throws -> SQLTerm {
    if let value = try constantValue(of: tree) {
      if case .null = value { return .null }
      return SQLTerm(fragment: try bound(value, in: tree), kind: value.sqlKind, constant: value)
    }
    switch tree {
    case .evaluatedObject:
      return objectTerm(root)
    case .variable(let name):
      if let node = variables[name] { return objectTerm(node) }
      if let named = named[name] { return named }
      throw PredicateNotTranslatable(reason: "\(PredicateEvaluationError.unboundVariable(name))")
    case .keyPath(let base, let keys):
      return try keyPath(base, keys, tree)
    case .function(let name, let arguments):
      guard let function = PredicateFunction.named(name) else {
        throw PredicateNotTranslatable.expression(tree, "no function has this name")
      }
      return try applying(function, arguments, tree)
    case .call(let target, let selector, let arguments):
      guard let function = PredicateFunction.method(selector) else {
        throw PredicateNotTranslatable.expression(
          tree,
          "a store cannot evaluate FUNCTION(); filter in memory"
        )
      }
      return try term(.applying(function, [target] + arguments))
    case .conditional(let predicate, let first, let second):
      return try conditional(predicate, first, second, tree)
    case .subquery, .aggregate, .set:
      throw PredicateNotTranslatable.expression(tree, "a collection is no single value")
    case .anyKey, .block, .constant, .fetch:
      throw PredicateNotTranslatable.expression(tree, "it is for memory only")
    }
  }

  func objectTerm(_ node: SQLNode) -> SQLTerm {
    SQLTerm(
      fragment: SQLFragment("\(node.alias).Z_PK"),
      kind: .object(table: naming.sqlTable(ofEntity: node.entity))
    )
  }

  private func conditional(
    _ predicate: PredicateTree,
    _ first: ExpressionTree,
    _ second: ExpressionTree,
    _ tree: ExpressionTree
  ) throws -> SQLTerm {
    let condition = try write(predicate, negated: false)
    let (first, second) = (try term(first), try term(second))
    guard first.kind == second.kind || first.kind == .null || second.kind == .null,
      first.kind != .opaque, second.kind != .opaque
    else { throw PredicateNotTranslatable.expression(tree, "the branches differ in kind") }
    let fragment =
      "CASE WHEN " + condition + " THEN " + first.operand + " ELSE " + second.operand + " END"
    return SQLTerm(
      fragment: "(" + fragment + ")",
      kind: first.kind == .null ? second.kind : first.kind
    )
  }

  // MARK: Key paths

  private func keyPath(
    _ base: ExpressionTree,
    _ keys: [String],
    _ tree: ExpressionTree
  ) throws -> SQLTerm {
    if let index = keys.firstIndex(where: { $0.hasPrefix("@") }) {
      return try operation(base, keys, at: index, tree)
    }
    guard let node = try node(of: base) else {
      if case .variable(let name) = base {
        throw PredicateNotTranslatable(reason: "\(PredicateEvaluationError.unboundVariable(name))")
      }
      throw PredicateNotTranslatable.expression(tree, "a key path must start at an object")
    }
    if case .evaluatedObject = base, keys.count == 1, let named = named[keys[0]] {
      return named
    }
    if keys.count > 1, keys.last == "length" {
      // A string's only property; if the path does not end at a string, `scalar` throws the error.
      let text = Array(keys.dropLast())
      if let found = try? scalar(text, from: node), found.kind == .text {
        return try applying(.length, [.keyPath(base, text)], tree)
      }
    }
    return try scalar(keys, from: node)
  }

  /// The value at the end of a path of to-ones.
  func scalar(_ keys: [String], from start: SQLNode) throws -> SQLTerm {
    var node = start
    for (index, key) in keys.enumerated() {
      let isLast = index == keys.count - 1
      if key == "objectID", isLast { return objectTerm(node) }
      switch naming.sqlProperty(key, ofEntity: node.entity) {
      case nil:
        // A leaf of a composite attribute is named by its path.
        let path = keys[index...].joined(separator: ".")
        let leaves = naming.sqlLeaves(ofComposite: Array(keys[index...]), ofEntity: node.entity)
        if !leaves.isEmpty { return Self.composite(leaves, of: node) }
        guard !isLast,
          case .attribute(let column, let kind)? = naming.sqlProperty(path, ofEntity: node.entity)
        else { throw PredicateNotTranslatable.missing(keys, start.entity, naming) }
        return SQLTerm(
          fragment: SQLFragment("\(node.alias).\(column)"),
          kind: kind.valueKind,
          isNumeric: kind == .decimal || kind == .date,
          isDecimal: kind == .decimal
        )
      case .transient:
        throw PredicateNotTranslatable(
          reason: "unimplemented SQL generation for key path \(keys.joined(separator: ".")): "
            + "\(key) is transient and has no column"
        )
      case .toMany:
        throw PredicateNotTranslatable.toMany(keys)
      case .attribute(let column, let kind):
        guard isLast else { throw PredicateNotTranslatable.missing(keys, start.entity, naming) }
        return SQLTerm(
          fragment: SQLFragment("\(node.alias).\(column)"),
          kind: kind.valueKind,
          isNumeric: kind == .decimal || kind == .date,
          isDecimal: kind == .decimal
        )
      case .toOne(let destination, let column, _):
        let table = naming.sqlTable(ofEntity: destination)
        if isLast || (index == keys.count - 2 && keys[index + 1] == "objectID") {
          return SQLTerm(
            fragment: SQLFragment("\(node.alias).\(column)"),
            kind: .object(table: table)
          )
        }
        node = node.scope.join(node, toOne: column, destination, table)
      }
    }
    return objectTerm(node)
  }

  /// A composite attribute has no value in SQL, but it is nil if all of its leaves are.
  private static func composite(_ leaves: [String], of node: SQLNode) -> SQLTerm {
    let columns = leaves.map { "\(node.alias).\($0)" }
    return SQLTerm(
      fragment: SQLFragment(
        columns.count == 1 ? columns[0] : "COALESCE(\(columns.joined(separator: ", ")))"
      ),
      kind: .opaque
    )
  }

  /// A collection operator, with the paths before and after it: `path.@operator.path`.
  private func operation(
    _ base: ExpressionTree,
    _ keys: [String],
    at index: Int,
    _ tree: ExpressionTree
  ) throws -> SQLTerm {
    guard let operation = CollectionOperator(rawValue: keys[index]) else {
      throw PredicateNotTranslatable.expression(tree, "no operator \(keys[index])")
    }
    let path = Array(keys[..<index]) + Array(keys[(index + 1)...])
    let source = path.isEmpty ? base : ExpressionTree.keyPath(base, path)
    return try collected(operation, source)
  }

  /// An operator over a to-many, over the rows of the SELECT, or over a single value.
  private func collected(
    _ operation: CollectionOperator,
    _ source: ExpressionTree
  ) throws -> SQLTerm {
    if let elements = try elements(of: source) { return try aggregate(operation, elements) }
    let value = try term(source)
    if aggregatesRows { return try rowAggregate(operation, value) }
    switch operation {
    case .count: return SQLTerm(fragment: "(" + value.fragment + " IS NOT NULL)", kind: .number)
    case .average where value.isDecimal: return value
    case .sum where value.isDecimal:
      var sum = value
      sum.fragment = "COALESCE(" + value.fragment + ", 0)"
      return sum
    case .sum where value.kind == .number:
      return SQLTerm(fragment: "COALESCE(" + value.operand + ", 0)", kind: .number)
    case .average where value.kind == .number:
      return SQLTerm(fragment: "CAST(" + value.fragment + " AS REAL)", kind: .number)
    case .minimum, .maximum: return value
    default:
      throw PredicateNotTranslatable.expression(source, "\(operation.rawValue) needs a to-many")
    }
  }

  /// An aggregate of the SELECT itself counts values, not rows, as SQL does.
  private func rowAggregate(_ operation: CollectionOperator, _ value: SQLTerm) throws -> SQLTerm {
    if operation == .count {
      return SQLTerm(fragment: "COUNT(" + value.fragment + ")", kind: .number)
    }
    if operation == .sum, value.kind == .number, !value.isDecimal {
      // In a dictionary fetch SQL's sum of no rows is NULL; Core Data's is 0.
      return SQLTerm(fragment: "COALESCE(SUM(" + value.operand + "), 0)", kind: .number)
    }
    return try Self.aggregate(operation, value)
  }

  // MARK: Functions

  private func applying(
    _ function: PredicateFunction,
    _ arguments: [ExpressionTree],
    _ tree: ExpressionTree
  ) throws -> SQLTerm {
    switch function.sql {
    case .none(let reason):
      throw PredicateNotTranslatable.expression(tree, reason)
    case .collection:
      return try collectionFunction(function, arguments[0], tree)
    case .unindexed:
      // The unary plus keeps SQLite from using an index, which is the purpose of the function.
      var value = try term(arguments[0])
      value.fragment = "+" + value.fragment
      return value
    case .index:
      guard case .string("SIZE")? = try constantValue(of: arguments[1]) else {
        throw PredicateNotTranslatable.expression(tree, "an index is for memory only")
      }
      return try collected(.count, arguments[0])
    case .cast:
      return try cast(arguments[0], arguments[1], tree)
    case .call(let kind, let result):
      let operands = try arguments.map { try term($0) }
      guard operands.allSatisfy({ $0.kind == kind }) else { return .null }
      return Self.call(function, operands, result)
    case .operator(let symbol, let movesDates):
      let operands = try arguments.map { try term($0) }
      if movesDates, let moved = Self.dateArithmetic(symbol, operands[0], operands[1]) {
        return moved
      }
      guard operands.allSatisfy({ $0.kind == .number }) else { return .null }
      let fragment =
        operands.count == 1
        ? SQLFragment(symbol) + operands[0].operand
        : operands[0].operand + " \(symbol) " + operands[1].operand
      return SQLTerm(fragment: "(" + fragment + ")", kind: .number)
    }
  }

  /// Marks a decimal operand, so that the called function treats it as one.
  private static func marked(_ operand: SQLTerm) -> SQLTerm {
    var isDecimal = operand.isDecimal
    if case .decimal? = operand.constant { isDecimal = true }
    guard isDecimal else { return operand }
    return SQLTerm(
      fragment: "\(PredicateSQLFunctions.decimal)(" + operand.fragment + ")",
      kind: .number
    )
  }

  private static func call(
    _ function: PredicateFunction,
    _ operands: [SQLTerm],
    _ kind: SQLValueKind
  ) -> SQLTerm {
    let list = operands.map(\.operand).joined(separator: ", ")
    return SQLTerm(
      fragment: "\(PredicateSQLFunctions.call)('\(function.selector)', " + list + ")",
      kind: kind
    )
  }

  /// Adds seconds to a date, or returns the seconds between two dates.
  private static func dateArithmetic(
    _ symbol: String,
    _ left: SQLTerm,
    _ right: SQLTerm
  ) -> SQLTerm? {
    let kind: SQLValueKind
    switch (left.kind, right.kind) {
    case (.date, .date) where symbol == "-": kind = .number
    case (.date, .number): kind = .date
    case (.number, .date) where symbol == "+": kind = .date
    default: return nil
    }
    return SQLTerm(
      fragment: "(" + left.operand + " \(symbol) " + right.operand + ")",
      kind: kind
    )
  }

  private func collectionFunction(
    _ function: PredicateFunction,
    _ source: ExpressionTree,
    _ tree: ExpressionTree
  ) throws -> SQLTerm {
    guard case .collection(let operation) = function.operands else {
      throw PredicateNotTranslatable.expression(tree, "it takes no collection")
    }
    if case .aggregate(let members) = source {
      let operands = try members.map { try term($0) }.filter { $0.kind != .null }
      let kinds = Set(operands.map(\.kind))
      guard kinds.isSubset(of: [.number]) || (kinds.count == 1 && operation == .count) else {
        throw PredicateNotTranslatable.expression(tree, "the members are no numbers")
      }
      if operation == .count {
        return SQLTerm(fragment: SQLFragment("\(members.count)"), kind: .number)
      }
      if operands.isEmpty { return operation == .sum ? try term(.value(0)) : .null }
      return Self.call(function, operands.map(Self.marked), .number)
    }
    if aggregatesRows, operation == .count,
      case .function(PredicateFunction.distinct.selector, let inner) = source,
      let values = inner.first
    {
      return SQLTerm(
        fragment: "COUNT(DISTINCT " + (try term(values)).fragment + ")",
        kind: .number
      )
    }
    guard let operation else {
      throw PredicateNotTranslatable.expression(tree, "SQLite has no such aggregate")
    }
    return try collected(operation, source)
  }

  private func cast(
    _ value: ExpressionTree,
    _ type: ExpressionTree,
    _ tree: ExpressionTree
  ) throws -> SQLTerm {
    guard let name = try constantValue(of: type)?.text, let cast = ValueCast(name) else {
      throw PredicateNotTranslatable.expression(tree, "the type must be a constant")
    }
    var operand = try term(value)
    switch (operand.kind, cast) {
    case (.null, _): return .null
    case (.number, .number), (.text, .string), (.text, .url), (.data, .data), (.date, .date),
      (.data, .uuid):
      return operand
    case (.number, .decimal):
      operand.isNumeric = true
      operand.isDecimal = true
      return operand
    case (.number, .date):
      operand.kind = .date
      operand.isNumeric = true
      return operand
    case (.date, .number):
      operand.kind = .number
      return operand
    case (.text, .number):
      return Self.call(.cast, [operand, Self.text("NSNumber")], .number)
    case (.number, .string) where !operand.isNumeric:
      return Self.call(.cast, [operand, Self.text("NSString")], .text)
    default:
      throw PredicateNotTranslatable.expression(tree, "no such cast in SQL")
    }
  }

  private static func text(_ text: String) -> SQLTerm {
    SQLTerm(fragment: SQLFragment("'\(text)'"), kind: .text)
  }
}

/// A clock that returns the time at which the statement was written.
private struct StoppedClock: EffectClock {
  let now: Date
  var uptime: Double { 0 }

  func sleep(seconds: Double) async throws {}
}

extension ExpressionTree {
  /// Whether the value is the same for every row.
  var isIndependent: Bool {
    switch self {
    case .constant: true
    case .evaluatedObject, .variable, .anyKey, .block: false
    case .keyPath(let base, _): base.isIndependent
    case .function(let name, let arguments):
      // A random function has a new value for each row.
      PredicateFunction.named(name)?.isRandom != true && arguments.allSatisfy(\.isIndependent)
    case .aggregate(let members):
      members.allSatisfy(\.isIndependent)
    case .call(let target, _, let arguments):
      target.isIndependent && arguments.allSatisfy(\.isIndependent)
    case .set(_, let left, let right): left.isIndependent && right.isIndependent
    case .subquery, .conditional, .fetch: false
    }
  }
}
