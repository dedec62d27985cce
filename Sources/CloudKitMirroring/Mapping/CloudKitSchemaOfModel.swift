import CloudKitWebServices
import OpenCoreData

/// The CloudKit schema of a model's configuration, as the development environment has it after
/// every field has been saved once.
package func cloudKitSchema(
  for model: NSManagedObjectModel,
  configuration: String? = nil
) -> DatabaseSchema {
  let entities = model.entities(forConfigurationName: configuration) ?? []
  var types: [String: [String: FieldSchemaType]] = [:]
  for entity in entities {
    let root = entity.ancestors.last ?? entity
    let name = MirrorNames.prefix + (root.name ?? "")
    // A field has one type; if two subentities differ, the first by name is saved first.
    types[name, default: [:]].merge(fields(of: entity)) { first, _ in first }
  }
  if entities.contains(where: hasManyToMany) {
    types[MirrorNames.edgeType] = [
      MirrorNames.edgeEntityNames: .typed(.string),
      MirrorNames.edgeRecordNames: .typed(.string),
      MirrorNames.edgeRelationships: .typed(.string),
    ]
  }
  let recordTypes = types.sorted { $0.key < $1.key }.map { name, fields in
    RecordTypeSchema.new(
      name,
      fields: fields.sorted { $0.key < $1.key }.map { key, type in
        FieldSchema(name: key, type: type, indexes: type.automaticIndexes)
      }
    )
  }
  return DatabaseSchema(recordTypes: recordTypes + [.users])
}

private let moveReceipt: [String: FieldSchemaType] = [
  MirrorNames.moveReceipt: .typed(.bytes),
  MirrorNames.moveReceipt + MirrorNames.assetSuffix: .typed(.asset),
]

private func fields(of entity: NSEntityDescription) -> [String: FieldSchemaType] {
  var fields = moveReceipt
  fields[MirrorNames.entityName] = .typed(.string)
  for attribute in entity.attributesByName.values.flatMap(\.leaves) {
    let name = attribute.name
    guard !attribute.isTransient, !(attribute is NSDerivedAttributeDescription),
      !MirrorFlags.isIgnored(attribute), let form = AttributeMapping.Form(attribute.attributeType)
    else { continue }
    fields[MirrorNames.field(name)] = .typed(
      form.fieldType,
      isEncrypted: MirrorFlags.isEncrypted(attribute)
    )
    if form.hasAsset { fields[MirrorNames.assetField(name)] = .typed(.asset) }
    if MirrorFlags.isExact(attribute) {
      fields[MirrorNames.exactField(name)] = .typed(
        .string,
        isEncrypted: MirrorFlags.isEncrypted(attribute)
      )
    }
  }
  for (name, relationship) in entity.relationshipsByName where !relationship.isToMany {
    fields[MirrorNames.field(name)] = .typed(.string)
  }
  return fields
}

private func hasManyToMany(_ entity: NSEntityDescription) -> Bool {
  entity.relationshipsByName.values.contains {
    $0.isToMany && ($0.inverseRelationship?.isToMany ?? false)
  }
}

extension AttributeMapping.Form {
  /// The type of the field.
  package var fieldType: FieldType {
    switch self {
    case .integer: .int64
    case .double, .decimal: .double
    case .date: .timestamp
    case .uuid, .url, .string: .string
    case .data: .bytes
    }
  }
}
