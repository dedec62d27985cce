import Effects
import Foundation
import OpenCoreData

/// Carries out what an import decided about single objects.
extension MirrorSession {
  /// Marks a record for deletion whose object was deleted here before this store sent it: another copy
  /// of the store, or a batch without a reply, has sent it.
  func deletedUnsent(
    _ record: CloudRecord,
    _ entity: EntityMapping
  ) throws -> RecordMetadata {
    var deleted = RecordMetadata(
      name: record.name,
      recordType: record.recordType,
      entityName: entity.entityName,
      key: nil
    )
    deleted.pending = .delete
    deleted.group = try rows.lastTransactionNumber()
    return try metadata.insert(deleted)
  }

  /// Inserts the object of a record; `fields` have this model's names, `base` the record's own.
  func applyInsert(
    _ record: CloudRecord,
    base: FieldBag,
    _ entity: EntityMapping,
    known: RecordMetadata?,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    var values = [RowValue](repeating: .null, count: entity.layout.rowWidth)
    for slot in entity.layout.attributes { values[slot.index] = slot.defaultRowValue }
    let agreed = known?.base.map { entity.reading($0).fields }
    for attribute in entity.attributes {
      let value = try rowValue(attribute, in: record, since: agreed)
      if let value { values[attribute.index] = value }
    }
    for toOne in entity.toOnes {
      values[toOne.index] = try destination(toOne, in: record)
    }
    let reference = try rows.insert(entity.layout, values: values)
    var recordMetadata =
      known
      ?? RecordMetadata(
        name: record.name,
        recordType: record.recordType,
        entityName: entity.entityName,
        key: reference.key
      )
    recordMetadata.entityName = entity.entityName
    recordMetadata.key = reference.key
    recordMetadata.pending = .nothing
    recordMetadata.properties = []
    recordMetadata.parked = nil
    recordMetadata.tag = record.tag
    recordMetadata.stamps = record.stamps
    recordMetadata.base = base
    recordMetadata.generation = generation
    if known == nil {
      try metadata.insert(recordMetadata)
    } else {
      try metadata.update(recordMetadata)
    }
    try metadata.forgetUnreadable(record.name)
    effect.inserted.append(record.name)
  }

  /// Applies a record that this store knows.
  func applyUpdate(_ incoming: IncomingRecord, _ effect: inout ImportEffect) throws {
    let (known, entity) = (incoming.known, incoming.entity)
    try metadata.forgetUnreadable(known.name)
    guard known.entityName == entity.entityName, let reference = reference(of: known),
      let row = try rows.row(reference)
    else { return try applyWithoutObject(incoming, &effect) }
    let decision = ImportDecision(
      incoming,
      try localObject(row, incoming),
      edits: context.effects.has(.importOverEdit) ? [] : known.unconfirmed
    )
    try keep(decision.recoveries, incoming, row)
    try write(decision, incoming, row, &effect)
    var metadata = decision.metadata
    if decision.beginsSave { metadata.group = try rows.lastTransactionNumber() }
    try self.metadata.update(metadata)
    guard !decision.merge.conflicting.isEmpty else { return }
    effect.conflicts.append(known.name)
    context.journal.note(
      .merge,
      .conflictMerged,
      cause: "\(entity.entityName) was edited on two devices: "
        + decision.merge.conflicting.sorted().joined(separator: ", ") + ".",
      effect: "This device's values of these properties stand; all others came from the server."
    ) { $0.recordNames = [known.name] }
  }

  private func applyWithoutObject(
    _ incoming: IncomingRecord,
    _ effect: inout ImportEffect
  ) throws {
    let confirmed = incoming.confirmed
    switch incoming.withoutObject {
    case .keepDeletion(let overridesEdit):
      if overridesEdit {
        try recovery.keepDeleted(
          confirmed,
          incoming.entity,
          in: incoming.record.fields,
          .editedElsewhereDeletedHere
        )
      }
      try metadata.update(confirmed)
    case .insert:
      try applyInsert(
        incoming.record,
        base: incoming.newBase,
        incoming.entity,
        known: confirmed,
        generation: incoming.generation,
        &effect
      )
    }
  }

  /// The state of the store's object that a decision depends on.
  private func localObject(_ row: Row, _ incoming: IncomingRecord) throws -> LocalObject {
    let known = incoming.known
    var local = LocalObject(try serialize(row, incoming.entity).fields)
    local.missingFiles = try rows.missingFiles(of: row)
    if known.isNeverSent, known.base != nil {
      local.trusted = try metadata.trusted(of: known.name)
      if !local.trusted.isEmpty { try metadata.forgetTrusted(of: known.name) }
    }
    // Only unconfirmed edits can conflict.
    if incoming.repeated == nil, !known.unconfirmed.isEmpty {
      local.isFromEarlierOpening = try isFromEarlierOpening(known)
    }
    return local
  }

  private func keep(
    _ recoveries: [ImportRecovery],
    _ incoming: IncomingRecord,
    _ row: Row
  ) throws {
    let (name, entity) = (incoming.record.name, incoming.entity)
    for entry in recoveries {
      if context.effects.has(.forgetReplaced),
        entry.reason == .lostValueSentAgain || entry.reason == .replacedAfterLoss
      {
        continue
      }
      switch entry.side {
      case .server:
        let fields = incoming.record.fields
        try recovery.keepReplaced(entry.properties, of: name, entity, in: fields, entry.reason)
      case .device:
        try recovery.keepReplaced(entry.properties, of: name, entity, in: row, entry.reason)
      }
    }
  }

  /// Writes the values that the server decides into the row, and parks links that have to wait.
  private func write(
    _ decision: ImportDecision,
    _ incoming: IncomingRecord,
    _ row: Row,
    _ effect: inout ImportEffect
  ) throws {
    let (record, entity) = (incoming.record, incoming.entity)
    var set: [Int: RowValue] = [:]
    for property in decision.merge.fromServer {
      if let attribute = entity.attribute(property) {
        set[attribute.index] =
          try rowValue(attribute, in: record, since: incoming.base) ?? row.values[attribute.index]
      } else if let toOne = entity.toOne(property), !toOne.isOneToOne {
        set[toOne.index] = try destination(toOne, in: record)
      }
    }
    for toOne in entity.toOnes where toOne.isOneToOne { try parkOneToOne(toOne, in: record) }
    for property in decision.removedLinks {
      try metadata.unpark(record: record.name, property: property)
    }
    for (index, value) in set where row.values[index] == value { set[index] = nil }
    guard !set.isEmpty else { return }
    try rows.update(row.reference, set: set)
    effect.updated.append(record.name)
  }

  /// The value of an attribute in a record; nil if the attribute cannot have the value.
  ///
  /// A record with neither field has the default, if the last agreed copy had neither: the record may
  /// be of a version of the app without the attribute. If that copy had a value, a device has set the
  /// attribute to nil.
  private func rowValue(
    _ attribute: AttributeMapping,
    in record: CloudRecord,
    since base: FieldBag?
  ) throws -> RowValue? {
    let content = record.fields.content(of: attribute.name)
    switch content {
    case nil where attribute.isOptional && base?.content(of: attribute.name) != nil: return .null
    case nil: return attribute.defaultValue
    case .asset(let asset)?:
      return attribute.rowValue(fileContents: try context.assets.read(asset.file))
    case let value?:
      guard let converted = attribute.rowValue(value, in: record.fields) else {
        context.journal.note(
          .import,
          .recordSkipped,
          cause: "The field \(attribute.field) holds a value that \(attribute.name) cannot take.",
          effect: "The attribute keeps its value."
        ) { $0.recordNames = [record.name] }
        return nil
      }
      return converted
    }
  }
}
