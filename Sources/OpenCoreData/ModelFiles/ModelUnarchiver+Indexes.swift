import Foundation

/// Fetch indexes, with the expressions and predicates in them.
extension ModelUnarchiver {
  func readIndexes(_ object: ArchivedObject, of entity: NSEntityDescription) throws {
    let properties = entity.propertiesByName
    var indexes: [NSFetchIndexDescription] = []
    for index in object.object("NSFetchIndexDescriptions")?.elements ?? [] {
      let name = index.string("NSIndexName") ?? ""
      var elements: [NSFetchIndexElementDescription] = []
      for element in index.object("NSIndexElements")?.elements ?? [] {
        let propertyName = element.string("NSPropertyName") ?? ""
        let property: NSPropertyDescription
        if let computed = element.object("NSIndexedProperty"),
          computed.className == "NSExpressionDescription"
        {
          property = expressionDescription(computed)
        } else if let known = properties[propertyName] {
          property = known
        } else {
          throw error(
            "the index '\(name)' of the entity '\(entity.name ?? "")' names the unknown property "
              + "'\(propertyName)'",
            expected: "a property of the entity",
            reason: .inconsistent
          )
        }
        let type = element.integer("NSFetchIndexElementType").flatMap(UInt.init(exactly:))
        let description = NSFetchIndexElementDescription(
          property: property,
          collationType: type.flatMap(NSFetchIndexElementType.init(rawValue:)) ?? .binary
        )
        description.isAscending = element.boolean("NSAscending")
        elements.append(description)
      }
      let description = NSFetchIndexDescription(name: name, elements: elements)
      description.partialPredicateSource = predicateFormat(index, "NSPartialIndexPredicate")
        .map { ParsedPredicateSource(format: $0) }
      indexes.append(description)
    }
    entity.indexes = indexes
  }

  func expressionDescription(_ object: ArchivedObject) -> NSExpressionDescription {
    let description = NSExpressionDescription()
    description.name = object.string("NSPropertyName") ?? ""
    description.expressionSource = expressionSource(
      object,
      "NSExpression",
      ModelArchiver.Key.expression
    )
    description.expressionResultType =
      object.integer("NSExpressionType").flatMap(UInt.init(exactly:))
      .flatMap(NSAttributeType.init(rawValue:)) ?? .undefinedAttributeType
    return description
  }

  /// Our own key has the developer's text; Apple's archives have only the objects.
  func expressionSource(
    _ object: ArchivedObject,
    _ key: String,
    _ ownKey: String
  ) -> ParsedExpressionSource? {
    let format =
      object.string(ownKey)
      ?? object.object(key).flatMap { ArchivedPredicateFormat.expression($0) }
    return format.map { ParsedExpressionSource(format: $0) }
  }

  /// The predicate of a fetch request; one that cannot be read matches no object, like a text that
  /// cannot be parsed.
  ///
  /// Without a predicate the request would find every object, and apps delete what it finds.
  func requestPredicate(_ object: ArchivedObject, of owner: String) -> String? {
    let key = "NSPredicate"
    if let format = predicateFormat(object, key) { return format }
    guard let predicate = object.object(key) else { return nil }
    StoreLog.warning(
      "\(owner) in \(file) matches no object: its predicate, an archived "
        + "\(predicate.className ?? "value"), has a part that cannot be read. Keep the model's "
        + "source, whose predicates are texts, or set the request in code."
    )
    return "FALSEPREDICATE"
  }

  func predicateFormat(
    _ object: ArchivedObject,
    _ key: String,
    _ ownKey: String = ModelArchiver.Key.predicate
  ) -> String? {
    object.string(ownKey) ?? object.object(key).flatMap { ArchivedPredicateFormat.predicate($0) }
  }
}
