import Foundation

/// What a fetch of dictionaries asks for, with names turned into descriptions.
enum FetchDictionaries {
  static func shape<ResultType>(
    of request: NSFetchRequest<ResultType>,
    entity: NSEntityDescription
  ) throws -> RowFetch.DictionaryShape {
    let all =
      entity.layout.attributes.filter { !$0.isTransient }.map(\.description)
      + entity.layout.toOnes.map(\.description)
    return RowFetch.DictionaryShape(
      properties: try request.propertiesToFetch.map { try properties($0, entity) } ?? all,
      groupBy: try properties(request.propertiesToGroupBy ?? [], entity),
      having: request.havingPredicate,
      isDistinct: request.returnsDistinctResults
    )
  }

  private static func properties(
    _ given: [Any],
    _ entity: NSEntityDescription
  ) throws -> [NSPropertyDescription] {
    try given.map { item in
      if let property = item as? NSPropertyDescription { return property }
      let name = item as? String ?? "\(item)"
      if let property = entity.propertiesByName[name] { return property }
      guard name.contains(".") else {
        throw CoreDataError.make(
          NSCoreDataError,
          "Invalid keypath '\(name)' passed to setPropertiesToFetch: the entity "
            + "\(entity.name ?? "") has no such property."
        )
      }
      let expression = NSExpressionDescription()
      expression.name = name
      expression.expression = NSExpression(forKeyPath: name)
      return expression
    }
  }
}
