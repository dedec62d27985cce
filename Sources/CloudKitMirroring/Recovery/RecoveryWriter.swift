import Effects
import OpenCoreData

/// Adds entries to the recovery list: values that were replaced, objects and links that were deleted.
struct RecoveryWriter {
  let session: MirrorSession

  /// Keeps the values of some properties; `fields` are those of the record or object that loses them.
  ///
  /// Adds no entry if none of the properties has a value.
  func keepReplaced(
    _ properties: Set<String>,
    of record: String,
    _ entity: EntityMapping,
    in fields: FieldBag,
    _ reason: RecoveryReason
  ) throws {
    var kept: [String: MirrorValue] = [:]
    for property in properties {
      if let content = try whole(fields.content(of: property), of: property, entity) {
        kept[MirrorNames.field(property)] = content
      }
      let exactField = MirrorNames.exactField(property)
      kept[exactField] = fields[exactField]
    }
    guard !kept.isEmpty else { return }
    try keep(record, entity.entityName, FieldBag(kept), reason)
  }

  /// Keeps the values of an object that are about to be replaced.
  func keepReplaced(
    _ properties: Set<String>,
    of record: String,
    _ entity: EntityMapping,
    in row: Row,
    _ reason: RecoveryReason
  ) throws {
    guard !properties.isEmpty else { return }
    try keepReplaced(properties, of: record, entity, in: serialize(row, entity), reason)
  }

  /// Keeps an object that is about to be deleted, with its links.
  func keepDeleted(
    _ row: Row,
    of record: String,
    _ entity: EntityMapping,
    _ reason: RecoveryReason
  ) throws {
    var fields = try serialize(row, entity)
    for relationship in entity.manyToManys {
      let names = try session.rows
        .destinations(of: relationship.description, from: row.reference)
        .compactMap { try session.recordName(of: $0) }
      guard !names.isEmpty else { continue }
      fields[relationship.name] = .string(names.sorted().joined(separator: "\n"))
    }
    try keep(record, entity.entityName, fields, reason)
  }

  /// Keeps the server's copy of a record whose object was deleted here.
  func keepDeleted(
    _ known: RecordMetadata,
    _ entity: EntityMapping,
    in fields: FieldBag,
    _ reason: RecoveryReason
  ) throws {
    var whole = fields
    for attribute in entity.attributes {
      guard case .asset? = fields.content(of: attribute.name) else { continue }
      whole[MirrorNames.assetField(attribute.name)] = nil
      whole[MirrorNames.field(attribute.name)] = try self.whole(
        fields.content(of: attribute.name),
        of: attribute.name,
        entity
      )
    }
    try keep(known.name, known.entityName, whole, reason)
  }

  /// Keeps a link that is about to be removed, as a value of the object at its first position.
  func keepLink(_ edge: Edge, of record: RecordMetadata, _ reason: RecoveryReason) throws {
    let fields = FieldBag([edge.relationship.first.relationship: .string(edge.secondRecord)])
    try keep(record.name, record.entityName, fields, reason)
  }

  private func keep(
    _ record: String,
    _ entityName: String,
    _ fields: FieldBag,
    _ reason: RecoveryReason
  ) throws {
    try session.metadata.keep(
      RecoveredEdit(
        record: record,
        entityName: entityName,
        reason: reason.text,
        noted: session.context.effects.now.timeIntervalSinceReferenceDate,
        fields: fields
      )
    )
  }

  /// The fields of an object, with long values in full instead of in files, and links by record names.
  private func serialize(_ row: Row, _ entity: EntityMapping) throws -> FieldBag {
    try RecordSerializer(budget: AssetBudget(limit: .max))
      .serialize(row.values, entity) { try session.recordName(of: $0) }.fields
  }

  /// A value with the content of its file, which is removed with the page.
  private func whole(
    _ content: MirrorValue?,
    of property: String,
    _ entity: EntityMapping
  ) throws -> MirrorValue? {
    guard case .asset(let asset)? = content else { return content }
    let contents = try session.context.assets.read(asset.file)
    let attribute = entity.attribute(property)
    return attribute?.rowValue(fileContents: contents).flatMap { attribute?.mirrorValue($0) }
  }
}

extension MirrorSession {
  var recovery: RecoveryWriter { RecoveryWriter(session: self) }
}
