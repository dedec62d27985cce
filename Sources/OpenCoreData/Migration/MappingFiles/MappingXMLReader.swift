import Foundation

/// Reads an `.xcmappingmodel`: the mapping editor's own Core Data store in XML.
///
/// The file has no version hashes, but the names of its two versions, and no expressions for the
/// mappings that the editor generates, which copy the property of the same name.
struct MappingXMLReader {
  private struct Object {
    var type: String
    var attributes: [String: String] = [:]
    var relationships: [String: [String]] = [:]
  }

  private var objects: [String: Object] = [:]
  private var order: [String] = []
  static func read(_ data: Data, file: String) throws -> MappingFile.Contents {
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
    return reader.contents()
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

  private func contents() -> MappingFile.Contents {
    let model = objects.values.first { $0.type == "XDDEVMAPPINGMODEL" }
    return MappingFile.Contents(
      mappings: order.filter { objects[$0]?.type == "XDDEVENTITYMAPPING" }
        .compactMap { objects[$0] }
        .sorted { number($0) < number($1) }
        .map(mapping),
      sourceVersion: Self.version(model?.attributes["sourcemodelpath"]),
      destinationVersion: Self.version(model?.attributes["destinationmodelpath"])
    )
  }

  /// The name of a version in the path of its model.
  private static func version(_ path: String?) -> String? {
    path?.split(separator: "/").last.map { name in
      String(name.split(separator: ".").dropLast().joined(separator: "."))
    }
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

  private func mapping(_ object: Object) -> NSEntityMapping {
    let mapping = NSEntityMapping()
    mapping.name = name(of: object)
    mapping.sourceEntityName = text(object, "sourcename")
    mapping.destinationEntityName = text(object, "destinationname")
    mapping.entityMigrationPolicyClassName = text(object, "migrationpolicyclassname")
    mapping.mappingType = type(of: mapping)
    let hasSource = mapping.sourceEntityName != nil
    if let name = mapping.sourceEntityName {
      mapping.sourceExpression = InferredMappings.allObjects(of: name)
    }
    mapping.attributeMappings = properties(object, "attributemappings") { name in
      hasSource ? InferredMappings.attribute(name) : nil
    }
    mapping.relationshipMappings = properties(object, "relationshipmappings") { name in
      hasSource ? InferredMappings.relationship(name) : nil
    }
    return mapping
  }

  private func type(of mapping: NSEntityMapping) -> NSEntityMappingType {
    if mapping.entityMigrationPolicyClassName != nil { return .customEntityMappingType }
    if mapping.sourceEntityName == nil { return .addEntityMappingType }
    return mapping.destinationEntityName == nil
      ? .removeEntityMappingType : .transformEntityMappingType
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
        if let expression = Self.expression(element.attributes["valueexpressiondata"]) {
          mapping.valueExpression = expression
        } else {
          mapping.valueExpression = generated(name)
          mapping.isGenerated = true
        }
        return mapping
      }
      .sorted { VersionHash.precedes($0.name ?? "", $1.name ?? "") }
  }

  // MARK: Data

  private static func data(_ text: String?) -> Data? {
    text.flatMap { Data(base64Encoded: $0, options: .ignoreUnknownCharacters) }
  }

  private static func expression(_ text: String?) -> NSExpression? {
    guard let data = data(text), !data.isEmpty, let archive = try? KeyedArchive(data),
      !archive.root.isNull
    else {
      // Without an archive there is no expression to evaluate.
      return nil
    }
    return ArchivedExpression.expression(archive.root)
  }
}
