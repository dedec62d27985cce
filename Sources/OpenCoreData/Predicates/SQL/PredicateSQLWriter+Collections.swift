import Foundation

/// The elements of a collection as the rows of a subquery.
struct SQLElements {
  let scope: SQLScope
  /// The first table, with its alias.
  let source: String
  /// The conditions that join the rows to the outer row, and further conditions.
  var conditions: [SQLFragment]
  /// One element.
  let term: SQLTerm
  /// The row of `term`, if the elements are objects.
  let node: SQLNode

  func exists(_ condition: SQLFragment) -> SQLFragment {
    "EXISTS (" + select(SQLFragment("1"), and: condition) + ")"
  }

  /// A SELECT over the elements.
  func select(_ result: SQLFragment, and condition: SQLFragment? = nil) -> SQLFragment {
    var all = conditions
    if let condition, condition != PredicateSQLWriter.always { all.append(condition) }
    return "SELECT " + result + " FROM \(source)\(scope.joins.joined()) WHERE "
      + all.joined(separator: " AND ")
  }
}

extension PredicateSQLWriter {
  /// Whether the tree is a collection here: a to-many, a subquery, a list.
  func isCollection(_ tree: ExpressionTree) throws -> Bool {
    if case .collection? = try constantValue(of: tree) { return true }
    switch tree {
    case .aggregate: return true
    case .subquery: return true
    default: return try elements(of: tree) != nil
    }
  }

  /// The members of a list of expressions, or of a constant collection; nil for anything else.
  func members(of tree: ExpressionTree) throws -> [SQLTerm]? {
    if case .aggregate(let members) = tree { return try members.map { try term($0) } }
    guard case .collection(let values)? = try constantValue(of: tree) else { return nil }
    return try values.map { value in
      SQLTerm(fragment: try bound(value, in: tree), kind: value.sqlKind, constant: value)
    }
  }

  /// The elements of a to-many key path or of a subquery; nil for anything else.
  func elements(of tree: ExpressionTree) throws -> SQLElements? {
    switch tree {
    case .keyPath(let base, let keys):
      if keys.contains(where: { $0.hasPrefix("@") }) { return nil }
      if let node = try node(of: base) { return try elements(keys, from: node) }
      guard let inner = try elements(of: base) else { return nil }
      return try extended(inner, by: keys)
    case .subquery(let collection, let variable, let predicate):
      guard var elements = try elements(of: collection) else {
        throw PredicateNotTranslatable.expression(tree, "its collection is no to-many")
      }
      var inner = self
      inner.variables[variable] = elements.node
      elements.conditions.append(try inner.write(predicate, negated: false))
      return elements
    default:
      return nil
    }
  }

  /// The row that a key path can start from: the evaluated object's, or a variable's.
  func node(of base: ExpressionTree) throws -> SQLNode? {
    switch base {
    case .evaluatedObject: root
    case .variable(let name): variables[name]
    default: nil
    }
  }

  private func elements(_ keys: [String], from start: SQLNode) throws -> SQLElements? {
    var node = start
    for (index, key) in keys.enumerated() {
      if key == "objectID", index == keys.count - 1 { return nil }
      switch naming.sqlProperty(key, ofEntity: node.entity) {
      case .toOne(let destination, let column, _):
        guard index < keys.count - 1 else { return nil }
        // A path without a further to-many must not leave a join behind.
        guard try leadsToMany(Array(keys[(index + 1)...]), from: destination) else { return nil }
        node = node.scope.join(
          node,
          toOne: column,
          destination,
          naming.sqlTable(ofEntity: destination)
        )
      case .toMany(let destination, let link):
        let first = opened(node, destination, link)
        return try extended(first, by: Array(keys[(index + 1)...]))
      default:
        return nil
      }
    }
    return nil
  }

  private func leadsToMany(_ keys: [String], from entity: String) throws -> Bool {
    var entity = entity
    for key in keys {
      switch naming.sqlProperty(key, ofEntity: entity) {
      case .toMany: return true
      case .toOne(let destination, _, _): entity = destination
      default: return false
      }
    }
    return false
  }

  /// A subquery over a to-many of the row.
  private func opened(
    _ node: SQLNode,
    _ destination: String,
    _ link: SQLToManyLink
  ) -> SQLElements {
    let scope = SQLScope(aliases: node.scope.aliases)
    let row = SQLNode(scope: scope, alias: scope.aliases.make(), entity: destination)
    let table = naming.sqlTable(ofEntity: destination)
    let source: String
    let condition: String
    switch link {
    case .foreignKey(let column, _):
      source = "\(table) \(row.alias)"
      condition = "\(row.alias).\(column) = \(node.alias).Z_PK"
    case .joinTable(let joinTable, let sourceColumn, let destinationColumn, _):
      let join = scope.aliases.make()
      source = "\(joinTable) \(join)"
      scope.add(" JOIN \(table) \(row.alias) ON \(row.alias).Z_PK = \(join).\(destinationColumn)")
      condition = "\(join).\(sourceColumn) = \(node.alias).Z_PK"
    }
    return SQLElements(
      scope: scope,
      source: source,
      conditions: [SQLFragment(condition)],
      term: objectTerm(row),
      node: row
    )
  }

  /// The subquery with each element followed along more keys.
  private func extended(_ elements: SQLElements, by keys: [String]) throws -> SQLElements {
    var node = elements.node
    var rest = keys[...]
    while let key = rest.first {
      guard
        case .toMany(let destination, let link)? = naming.sqlProperty(key, ofEntity: node.entity)
      else {
        guard
          case .toOne(let destination, let column, _)? =
            naming.sqlProperty(key, ofEntity: node.entity), rest.count > 1,
          rest.dropFirst().first != "objectID"
        else { break }
        node = node.scope.join(
          node,
          toOne: column,
          destination,
          naming.sqlTable(ofEntity: destination)
        )
        rest = rest.dropFirst()
        continue
      }
      node = joined(node, destination, link)
      rest = rest.dropFirst()
    }
    return SQLElements(
      scope: elements.scope,
      source: elements.source,
      conditions: elements.conditions,
      term: rest.isEmpty ? objectTerm(node) : try scalar(Array(rest), from: node),
      node: node
    )
  }

  /// A nested to-many inside a subquery multiplies its rows, as flattening does in memory.
  private func joined(_ node: SQLNode, _ destination: String, _ link: SQLToManyLink) -> SQLNode {
    let scope = node.scope
    let row = SQLNode(scope: scope, alias: scope.aliases.make(), entity: destination)
    let table = naming.sqlTable(ofEntity: destination)
    switch link {
    case .foreignKey(let column, _):
      scope.add(" JOIN \(table) \(row.alias) ON \(row.alias).\(column) = \(node.alias).Z_PK")
    case .joinTable(let joinTable, let sourceColumn, let destinationColumn, _):
      let join = scope.aliases.make()
      scope.add(" JOIN \(joinTable) \(join) ON \(join).\(sourceColumn) = \(node.alias).Z_PK")
      scope.add(" JOIN \(table) \(row.alias) ON \(row.alias).Z_PK = \(join).\(destinationColumn)")
    }
    return row
  }

  // MARK: Aggregates

  /// `@count` and the other collection operators over a collection, as a subquery.
  func aggregate(_ operation: CollectionOperator, _ elements: SQLElements) throws -> SQLTerm {
    let result = try Self.aggregate(operation, elements.term)
    return SQLTerm(
      fragment: "(" + elements.select(result.fragment) + ")",
      kind: result.kind,
      isNumeric: result.isNumeric,
      isDecimal: result.isDecimal
    )
  }

  /// An aggregate of decimal values, which SQLite's own would convert to doubles.
  private static func decimal(_ operation: CollectionOperator, _ value: SQLTerm) -> SQLTerm {
    let name = PredicateSQLFunctions.decimalFold
    return SQLTerm(
      fragment: "\(name)('\(operation.rawValue)', " + value.fragment + ")",
      kind: .number,
      isNumeric: true,
      isDecimal: true
    )
  }

  /// SQL's own aggregate for the operator.
  static func aggregate(_ operation: CollectionOperator, _ value: SQLTerm) throws -> SQLTerm {
    if value.isDecimal, operation != .count { return decimal(operation, value) }
    switch operation {
    case .count:
      return SQLTerm(fragment: SQLFragment("COUNT(*)"), kind: .number)
    case .sum, .average:
      guard value.kind == .number else {
        throw PredicateNotTranslatable(
          reason: "unimplemented SQL generation for \(operation.rawValue) of what is no number"
        )
      }
      return SQLTerm(
        fragment: operation == .sum
          ? "COALESCE(SUM(" + value.operand + "), 0)" : "AVG(" + value.operand + ")",
        kind: .number
      )
    case .minimum, .maximum:
      if case .object = value.kind { return .null }
      return SQLTerm(
        fragment: (operation == .minimum ? "MIN(" : "MAX(") + value.fragment + ")",
        kind: value.kind,
        isNumeric: value.isNumeric
      )
    case .distinctUnion, .union:
      throw PredicateNotTranslatable(
        reason: "unimplemented SQL generation for \(operation.rawValue)"
      )
    }
  }
}
