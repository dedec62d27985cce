import Foundation

/// Reads an `.xcmappingmodel`: the mapping editor's own Core Data store in XML.
///
/// The file has no version hashes and no expressions for what the editor fills in by itself; both
/// follow from the two models that it carries, as they do when Xcode compiles it.
struct MappingXMLReader {
  private struct Object {
    var type: String
    var attributes: [String: String] = [:]
    var relationships: [String: [String]] = [:]
  }

  private var objects: [String: Object] = [:]
  private var order: [String] = []
  private var source: NSManagedObjectModel?
  private var destination: NSManagedObjectModel?

  static func mappings(in data: Data, file: String) throws -> [NSEntityMapping] {
    let root = try ModelXMLParser.parse(data, file: file, keepsText: true)
    guard root.name == "database" else {
      throw ModelFileError(
        .malformed,
        file: file,
        line: root.line,
        element: root.label,
        found: "the outermost element is <\(root.name)>",
        expected: "the <database> of a mapping model"
      )
    }
    var reader = MappingXMLReader()
    reader.read(root)
    return reader.mappings(file: file)
  }

  private mutating func read(_ root: ModelXMLElement) {
    for element in root.children(named: "object") {
      guard let type = element.attributes["type"], let id = element.attributes["id"] else {
        continue
      }
      var object = Object(type: type)
      for attribute in element.children(named: "attribute") {
        if let name = attribute.attributes["name"] { object.attributes[name] = attribute.text }
      }
      for relationship in element.children(named: "relationship") {
        if let name = relationship.attributes["name"] {
          object.relationships[name] =
            relationship.attributes["idrefs"]?.split(separator: " ").map(String.init)
        }
      }
      objects[id] = object
      order.append(id)
    }
  }

  // MARK: Mappings

  private mutating func mappings(file: String) -> [NSEntityMapping] {
    let model = objects.values.first { $0.type == "XDDEVMAPPINGMODEL" }
    source = Self.model(model?.attributes["sourcemodeldata"], file: file)
    destination = Self.model(model?.attributes["destinationmodeldata"], file: file)
    let entities = order.filter { objects[$0]?.type == "XDDEVENTITYMAPPING" }
      .compactMap { objects[$0] }
      .sorted { number($0) < number($1) }
    // Relationships name the mapping of the entity that they lead to.
    let names = Dictionary(
      entities.compactMap { entity -> (String, String)? in
        guard let name = text(entity, "destinationname"), text(entity, "sourcename") != nil else {
          return nil
        }
        return (name, self.name(of: entity))
      },
      uniquingKeysWith: { first, _ in first }
    )
    return entities.map { mapping($0, names: names) }
  }

  private func number(_ object: Object) -> Int {
    object.attributes["mappingnumber"].flatMap(Int.init) ?? .max
  }

  private func text(_ object: Object, _ key: String) -> String? {
    object.attributes[key].flatMap { $0.isEmpty ? nil : $0 }
  }

  private func name(of object: Object) -> String {
    if let name = text(object, "name") { return name }
    let (from, to) = (text(object, "sourcename"), text(object, "destinationname"))
    return [from, to].compactMap { $0 }.joined(separator: "To")
  }

  private func mapping(_ object: Object, names: [String: String]) -> NSEntityMapping {
    let mapping = NSEntityMapping()
    mapping.name = name(of: object)
    mapping.sourceEntityName = text(object, "sourcename")
    mapping.destinationEntityName = text(object, "destinationname")
    mapping.entityMigrationPolicyClassName = text(object, "migrationpolicyclassname")
    let before = mapping.sourceEntityName.flatMap { source?.entitiesByName[$0] }
    let after = mapping.destinationEntityName.flatMap { destination?.entitiesByName[$0] }
    mapping.sourceEntityVersionHash = before?.versionHash
    mapping.destinationEntityVersionHash = after?.versionHash
    mapping.mappingType = type(of: mapping)
    if let name = mapping.sourceEntityName {
      mapping.sourceExpression = InferredMappings.allObjects(of: name)
    }
    mapping.attributeMappings = properties(object, "attributemappings") { name in
      before?.attributesByName[name].map { _ in InferredMappings.attribute(name) }
    }
    mapping.relationshipMappings = properties(object, "relationshipmappings") { name in
      guard before?.relationshipsByName[name] != nil,
        let target = after?.relationshipsByName[name]?.destinationEntity?.name
      else { return nil }
      return names[target].map { Self.destinations(of: name, by: $0) }
        ?? InferredMappings.relationship(name)
    }
    return mapping
  }

  private func type(of mapping: NSEntityMapping) -> NSEntityMappingType {
    if mapping.entityMigrationPolicyClassName != nil { return .customEntityMappingType }
    if mapping.sourceEntityName == nil { return .addEntityMappingType }
    if mapping.destinationEntityName == nil { return .removeEntityMappingType }
    return mapping.sourceEntityVersionHash == mapping.destinationEntityVersionHash
      ? .copyEntityMappingType : .transformEntityMappingType
  }

  private func properties(
    _ object: Object,
    _ key: String,
    generated: (String) -> NSExpression?
  ) -> [NSPropertyMapping] {
    (object.relationships[key] ?? []).compactMap { objects[$0] }
      .compactMap { element -> NSPropertyMapping? in
        guard let name = text(element, "name") else { return nil }
        let mapping = NSPropertyMapping()
        mapping.name = name
        mapping.valueExpression = Self.expression(element.attributes["valueexpressiondata"])
          ?? generated(name)
        return mapping
      }
      .sorted { VersionHash.precedes($0.name ?? "", $1.name ?? "") }
  }

  /// `FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", …)`
  private static func destinations(of relationship: String, by mapping: String) -> NSExpression {
    NSExpression(
      tree: .call(
        .variable(NSMigrationManagerKey),
        MigrationSelector.destinations,
        [
          .value(mapping), .keyPath(.variable(NSMigrationSourceObjectKey), [relationship]),
        ]
      )
    )
  }

  // MARK: Data

  private static func data(_ text: String?) -> Data? {
    text.flatMap { Data(base64Encoded: $0, options: .ignoreUnknownCharacters) }
  }

  private static func expression(_ text: String?) -> NSExpression? {
    guard let data = data(text), !data.isEmpty, let archive = try? KeyedArchive(data) else {
      // Without an archive there is nothing that could be evaluated.
      return nil
    }
    return ArchivedExpression.expression(archive.root)
  }

  private static func model(_ text: String?, file: String) -> NSManagedObjectModel? {
    // Old editors left no models; hashes are not compared then.
    data(text).flatMap { try? ModelArchive.model(fromArchive: $0, file: file) }
  }
}
