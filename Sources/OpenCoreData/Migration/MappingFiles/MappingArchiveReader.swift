import Foundation

/// Reads a compiled mapping model, `.cdm`: a keyed archive.
enum MappingArchiveReader {
  static func mappings(in data: Data, file: String) throws -> [NSEntityMapping] {
    let root = try ModelFileError.naming(file) { try KeyedArchive(data).root }
    guard root.className == "NSMappingModel", let list = root.object("NSEntityMappings") else {
      throw ModelFileError(
        .malformed,
        file: file,
        found: "the archive holds a \(root.className ?? "plain value")",
        expected: "an NSMappingModel with NSEntityMappings"
      )
    }
    return list.elements.map(mapping)
  }

  private static func mapping(_ object: ArchivedObject) -> NSEntityMapping {
    let mapping = NSEntityMapping()
    mapping.name = object.string("NSMappingName")
    mapping.mappingType =
      object.integer("NSMappingType").flatMap(UInt.init(exactly:))
      .flatMap(NSEntityMappingType.init(rawValue:)) ?? .undefinedEntityMappingType
    mapping.sourceEntityName = object.string("NSSourceEntityName")
    mapping.sourceEntityVersionHash = object.data("NSSourceEntityVersionHash")
    mapping.destinationEntityName = object.string("NSDestinationEntityName")
    mapping.destinationEntityVersionHash = object.data("NSDestinationEntityVersionHash")
    mapping.entityMigrationPolicyClassName = object.string("NSEntityMigrationPolicyClassName")
    mapping.sourceExpression = object.object("NSSourceExpression")
      .map(ArchivedExpression.expression)
    mapping.userInfo = object.object("NSUserInfo")?.foundationValue() as? [AnyHashable: Any]
    mapping.attributeMappings = properties(object, "NSAttributeMappings")
    mapping.relationshipMappings = properties(object, "NSRelationshipMappings")
    return mapping
  }

  private static func properties(_ object: ArchivedObject, _ key: String) -> [NSPropertyMapping]? {
    object.object(key)?.elements.map { element in
      let mapping = NSPropertyMapping()
      mapping.name = element.string("NSDestinationPropertyName")
      mapping.valueExpression = element.object("NSValueExpression")
        .map(ArchivedExpression.expression)
      mapping.userInfo = element.object("NSUserInfo")?.foundationValue() as? [AnyHashable: Any]
      return mapping
    }
  }
}
