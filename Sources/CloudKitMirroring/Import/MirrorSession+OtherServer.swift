import Effects
import OpenCoreData

/// Reads a zone whose service may have lost agreed values: another service, or one that was
/// restored from a backup.
extension MirrorSession {
  func isOtherServer() throws -> Bool {
    try metadata.zone(context.zone).rereading == .otherServer
  }

  /// The properties whose last agreed value the service has lost: its copy of the record was saved
  /// before the agreed one.
  ///
  /// The times are the service's own. If its clock was wrong the other values are kept; the values
  /// that lose are in the recovery list in both cases. Always keeping the agreed values would be no
  /// better: a device that reconnects late would revert later edits of others.
  func lostProperties(
    _ record: CloudRecord,
    _ entity: EntityMapping,
    local: FieldBag,
    since base: FieldBag,
    saved stamps: RecordStamps
  ) throws -> Set<String> {
    guard stamps.isNewer(than: record.stamps), try isOtherServer() else { return [] }
    return agreedProperties(record, entity, local: local, since: base)
  }

  /// The properties with an agreed value of which a copy that was made again has no field.
  ///
  /// The version of the app that made it again may lack them. A removal that its device had not sent
  /// before cannot be distinguished from that, and is undone.
  func omittedProperties(
    _ record: CloudRecord,
    _ entity: EntityMapping,
    local: FieldBag,
    since base: FieldBag?,
    saved stamps: RecordStamps,
    isForgotten: Bool
  ) throws -> Set<String> {
    guard let base, let before = stamps.created, let now = record.stamps.created, now != before,
      try isForgotten || isOtherServer()
    else { return [] }
    return agreedProperties(record, entity, local: local, since: base).filter {
      record.fields.content(of: $0) == nil
    }
  }

  /// The properties that have the agreed value here, and another value in the service's copy.
  private func agreedProperties(
    _ record: CloudRecord,
    _ entity: EntityMapping,
    local: FieldBag,
    since base: FieldBag
  ) -> Set<String> {
    Set(
      entity.fieldProperties.filter { property in
        // A link whose object has not arrived is not in the row, and must not be exported as
        // removed.
        !base.agrees(with: record.fields, on: property) && base.agrees(with: local, on: property)
      }
    )
  }

  /// Keeps the agreed values that the service's copy is about to replace, because it may have lost
  /// them.
  ///
  /// A forgotten record is one of a deleted zone: a device that had missed edits may have created
  /// the zone again first, with older values.
  func keepAgreed(
    _ record: CloudRecord,
    _ entity: EntityMapping,
    _ row: Row,
    local: FieldBag,
    since base: FieldBag,
    omitted: Set<String>,
    isForgotten: Bool
  ) throws {
    guard try isForgotten || isOtherServer(), !context.effects.has(.forgetReplaced) else { return }
    try keepOwn(
      agreedProperties(record, entity, local: local, since: base).subtracting(omitted),
      of: record,
      entity,
      row,
      reason: "A zone that was made again, or a server that was restored, replaced it."
    )
  }

  /// Keeps values of this device's object that the service's copy is about to replace.
  func keepOwn(
    _ properties: Set<String>,
    of record: CloudRecord,
    _ entity: EntityMapping,
    _ row: Row,
    reason: String
  ) throws {
    guard !properties.isEmpty else { return }
    let whole = try RecordSerializer(budget: AssetBudget(limit: .max))
      .serialize(row.values, entity) { try recordName(of: $0) }.fields
    try keep(properties, of: record, entity, whole, reason) { whole.content(of: $0) }
  }

  /// Keeps the service's values that this device is about to replace, because they may be edits.
  func keepReplaced(
    _ properties: Set<String>,
    of record: CloudRecord,
    _ entity: EntityMapping,
    reason: String
  ) throws {
    try keep(
      properties,
      of: record,
      entity,
      record.fields,
      reason
    ) { property in
      try whole(record.fields.content(of: property), of: property, entity)
    }
  }

  /// The fields of a record with the contents of its files, which are removed with the page.
  func whole(_ fields: FieldBag, _ entity: EntityMapping) throws -> FieldBag {
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
    return whole
  }

  private func whole(
    _ content: MirrorValue?,
    of property: String,
    _ entity: EntityMapping
  ) throws -> MirrorValue? {
    guard case .asset(let asset)? = content else { return content }
    let contents = try context.assets.read(asset.file)
    let attribute = entity.attribute(property)
    return attribute?.rowValue(fileContents: contents).flatMap { attribute?.mirrorValue($0) }
  }

  private func keep(
    _ properties: Set<String>,
    of record: CloudRecord,
    _ entity: EntityMapping,
    _ source: FieldBag,
    _ reason: String,
    content: (String) throws -> MirrorValue?
  ) throws {
    var fields: [String: MirrorValue] = [:]
    for property in properties {
      if let content = try content(property) { fields[MirrorNames.field(property)] = content }
      let exactField = MirrorNames.exactField(property)
      fields[exactField] = source[exactField]
    }
    guard !fields.isEmpty else { return }
    try metadata.keep(
      RecoveredEdit(
        record: record.name,
        entityName: entity.entityName,
        reason: reason,
        noted: context.effects.now.timeIntervalSinceReferenceDate,
        fields: FieldBag(fields)
      )
    )
  }
}
