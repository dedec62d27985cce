import Foundation

/// The shape of a fetch of dictionaries, with names resolved to descriptions.
enum FetchDictionaries {
  static func shape<ResultType>(
    of request: NSFetchRequest<ResultType>,
    entity: NSEntityDescription
  ) throws -> RowFetch.DictionaryShape {
    let all =
      entity.layout.attributes.filter { !$0.isTransient }.map(\.description)
      + entity.layout.toOnes.map(\.description)
    let wanted = try request.propertiesToFetch.map { try properties($0, entity) } ?? all
    let groupBy = try properties(request.propertiesToGroupBy ?? [], entity)
    if !groupBy.isEmpty {
      let names = Set(groupBy.map(\.name))
      for property in wanted where !names.contains(property.name) && !isAggregate(property) {
        throw InvalidArgument(
          "SELECT clauses in queries with GROUP BY components can only contain properties named "
            + "in the GROUP BY or aggregate functions (\(property.name) is not in the GROUP BY)"
        )
      }
    }
    return RowFetch.DictionaryShape(
      properties: wanted,
      groupBy: groupBy,
      having: request.havingPredicate,
      isDistinct: request.returnsDistinctResults
    )
  }

  private static func isAggregate(_ property: NSPropertyDescription) -> Bool {
    (property as? NSExpressionDescription)?.expression?.tree.isOneForGroup ?? false
  }

  /// Stops the process if a name is unknown, or leads to a collection.
  static func check<ResultType>(
    _ request: NSFetchRequest<ResultType>,
    entity: NSEntityDescription
  ) throws {
    _ = try request.propertiesToFetch.map { try properties($0, entity) }
    guard request.resultType != .dictionaryResultType else { return }
    if request.propertiesToGroupBy?.isEmpty == false || request.havingPredicate != nil {
      throw InvalidArgument("Invalid fetch request: GROUP BY requires NSDictionaryResultType")
    }
  }

  private static func properties(
    _ given: [Any],
    _ entity: NSEntityDescription
  ) throws -> [NSPropertyDescription] {
    try given.map { try property($0, entity) }
  }

  private static func property(
    _ given: Any,
    _ entity: NSEntityDescription
  ) throws -> NSPropertyDescription {
    let setter = "passed to setPropertiesToFetch:"
    let name: String
    switch given {
    case let expression as NSExpressionDescription: return expression
    case let property as NSPropertyDescription: name = property.name
    case let text as String: name = text
    default: throw InvalidArgument("Invalid keypath \(given) \(setter)")
    }
    if let property = entity.propertiesByName[name] {
      if let relationship = property as? NSRelationshipDescription, relationship.isToMany {
        throw InvalidArgument("Invalid to many relationship (\(name)) \(setter)")
      }
      return property
    }
    guard name == "objectID" || leadsToValue(name.split(separator: "."), entity) else {
      throw InvalidArgument("Invalid keypath \(name) \(setter)")
    }
    let expression = NSExpressionDescription()
    expression.name = name
    expression.expression = NSExpression(forKeyPath: name)
    return expression
  }

  /// Whether the key path follows to-ones only, or applies an operator to a collection.
  private static func leadsToValue(_ keys: [Substring], _ entity: NSEntityDescription) -> Bool {
    var entity = entity
    for (index, key) in keys.enumerated() {
      if key.hasPrefix("@") || (key == "objectID" && index == keys.count - 1) { return true }
      switch entity.propertiesByName[String(key)] {
      case let relationship as NSRelationshipDescription:
        guard let destination = relationship.destinationEntity else { return false }
        entity = destination
      case let attribute as NSAttributeDescription:
        return index == keys.count - 1 || attribute is NSCompositeAttributeDescription
      default: return false
      }
    }
    return true
  }
}

extension ExpressionTree {
  /// Whether the value is equal for all rows of any group.
  fileprivate var isOneForGroup: Bool {
    switch self {
    case .constant: true
    case .keyPath(_, let keys): keys.contains { $0.hasPrefix("@") }
    case .function(let name, let arguments):
      PredicateFunction.named(name)?.isOfCollection == true
        || arguments.allSatisfy(\.isOneForGroup)
    case .conditional(_, let first, let second): first.isOneForGroup && second.isOneForGroup
    default: false
    }
  }
}
