extension PredicateTree {
  /// The tree with variables replaced by values.
  ///
  /// The variables of a `SUBQUERY` are kept.
  package func substituting(_ values: [String: ExpressionTree]) -> PredicateTree {
    if values.isEmpty { return self }
    switch self {
    case .constant, .opaque: return self
    case .comparison(var comparison):
      comparison.left = comparison.left.substituting(values)
      comparison.right = comparison.right.substituting(values)
      return .comparison(comparison)
    case .and(let parts): return .and(parts.map { $0.substituting(values) })
    case .or(let parts): return .or(parts.map { $0.substituting(values) })
    case .not(let part): return .not(part.substituting(values))
    }
  }

  /// Whether both trees and all values in them are equal.
  package func isEqual(to other: PredicateTree) -> Bool {
    guard PredicateFormatWriter.string(self) == PredicateFormatWriter.string(other) else {
      return false
    }
    let (left, right) = (constants, other.constants)
    return left.count == right.count
      && zip(left, right).allSatisfy { $0.isEqual(to: $1) }
  }

  /// The constants in the order of the text.
  fileprivate var constants: [ExpressionValue] {
    switch self {
    case .constant: []
    case .opaque(let opaque): [.opaque(opaque.predicate)]
    case .comparison(let comparison): comparison.left.constants + comparison.right.constants
    case .and(let parts), .or(let parts): parts.flatMap(\.constants)
    case .not(let part): part.constants
    }
  }

  /// The key paths that start at the evaluated object.
  package var keyPaths: Set<[String]> {
    switch self {
    case .constant, .opaque: []
    case .comparison(let comparison): comparison.left.keyPaths.union(comparison.right.keyPaths)
    case .and(let parts), .or(let parts):
      parts.reduce(into: []) { $0.formUnion($1.keyPaths) }
    case .not(let part): part.keyPaths
    }
  }
}

extension ExpressionTree {
  /// The tree with variables replaced by values.
  package func substituting(_ values: [String: ExpressionTree]) -> ExpressionTree {
    if values.isEmpty { return self }
    func replaced(_ trees: [ExpressionTree]) -> [ExpressionTree] {
      trees.map { $0.substituting(values) }
    }
    switch self {
    case .constant, .evaluatedObject, .anyKey: return self
    case .variable(let name): return values[name] ?? self
    case .keyPath(let base, let keys): return .keyPath(base.substituting(values), keys)
    case .function(let name, let arguments): return .function(name, replaced(arguments))
    case .call(let target, let selector, let arguments):
      return .call(target.substituting(values), selector, replaced(arguments))
    case .aggregate(let members): return .aggregate(replaced(members))
    case .subquery(let collection, let variable, let predicate):
      var inner = values
      inner[variable] = nil
      return .subquery(collection.substituting(values), variable, predicate.substituting(inner))
    case .set(let operation, let left, let right):
      return .set(operation, left.substituting(values), right.substituting(values))
    case .conditional(let predicate, let first, let second):
      return .conditional(
        predicate.substituting(values),
        first.substituting(values),
        second.substituting(values)
      )
    case .fetch(let request, let context, let isCount):
      return .fetch(request.substituting(values), context.substituting(values), isCount)
    case .block(let block, let arguments): return .block(block, replaced(arguments))
    }
  }

  fileprivate var constants: [ExpressionValue] {
    switch self {
    // A constant collection equals the same collection written out.
    case .constant(let constant): constant.value.leaves
    case .evaluatedObject, .variable, .anyKey: []
    case .keyPath(let base, _): base.constants
    case .function(_, let arguments), .aggregate(let arguments), .block(_, let arguments):
      arguments.flatMap(\.constants)
    case .call(let target, _, let arguments):
      target.constants + arguments.flatMap(\.constants)
    case .subquery(let collection, _, let predicate): collection.constants + predicate.constants
    case .set(_, let left, let right), .fetch(let left, let right, _):
      left.constants + right.constants
    case .conditional(let predicate, let first, let second):
      predicate.constants + first.constants + second.constants
    }
  }

  /// The key paths that start at the evaluated object.
  package var keyPaths: Set<[String]> {
    switch self {
    case .keyPath(.evaluatedObject, let keys): [keys]
    case .constant, .evaluatedObject, .variable, .anyKey: []
    case .keyPath(let base, _): base.keyPaths
    case .function(_, let arguments), .aggregate(let arguments), .block(_, let arguments):
      arguments.reduce(into: []) { $0.formUnion($1.keyPaths) }
    case .call(let target, _, let arguments):
      arguments.reduce(into: target.keyPaths) { $0.formUnion($1.keyPaths) }
    case .subquery(let collection, _, let predicate):
      collection.keyPaths.union(predicate.keyPaths)
    case .set(_, let left, let right), .fetch(let left, let right, _):
      left.keyPaths.union(right.keyPaths)
    case .conditional(let predicate, let first, let second):
      predicate.keyPaths.union(first.keyPaths).union(second.keyPaths)
    }
  }
}

extension ExpressionValue {
  fileprivate var leaves: [ExpressionValue] {
    if case .collection(let members) = self { return members.flatMap(\.leaves) }
    return [self]
  }
}
