import Foundation
import OpenCoreData

/// What an import changed in the store.
package struct ImportEffect: Hashable, Sendable {
  package var inserted: [String] = []
  package var updated: [String] = []
  package var deleted: [String] = []
  package var skipped: [String] = []
  package var conflicts: [String] = []

  package init() {}

  package mutating func add(_ other: ImportEffect) {
    inserted += other.inserted
    updated += other.updated
    deleted += other.deleted
    skipped += other.skipped
    conflicts += other.conflicts
  }

  package var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty
  }
}

extension MirrorSession {
  /// Applies some of a page: objects with attributes and known links, then edges, then links that
  /// waited for these objects, then deletions.
  ///
  /// Applying the same again changes nothing, so a crash between two transactions of a page costs
  /// only the time to read it again.
  @discardableResult
  package func apply(
    records: some Sequence<CloudRecord>,
    deletedNames: some Sequence<String> = [],
    generation: Int64
  ) throws -> ImportEffect {
    var effect = ImportEffect()
    var edges: [CloudRecord] = []
    for record in records {
      if record.name.hasPrefix(MirrorNames.schemaRecordPrefix) { continue }
      if record.recordType == MirrorNames.edgeType {
        edges.append(record)
      } else {
        try apply(record, generation: generation, &effect)
      }
    }
    for edge in edges { try applyEdge(edge, generation: generation, &effect) }
    for name in effect.inserted { try linkWhatWaited(for: name) }
    var gone: [BookedRecord] = []
    for name in deletedNames {
      if let record = try books.record(named: name) {
        gone.append(record)
      } else if let edge = try books.edge(named: name) {
        try applyDeletion(of: edge)
      } else {
        try books.unpark(record: name)
      }
    }
    for record in gone where record.tag != nil {
      // A cascade may have taken it meanwhile.
      guard let record = try books.record(named: record.name) else { continue }
      try applyDeletion(of: record)
      effect.deleted.append(record.name)
    }
    return effect
  }

  /// Applies one record.
  func apply(_ record: CloudRecord, generation: Int64) throws {
    var effect = ImportEffect()
    try apply(record, generation: generation, &effect)
    for name in effect.inserted { try linkWhatWaited(for: name) }
  }

  private func apply(
    _ record: CloudRecord,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    let known = try books.record(named: record.name)
    if var known, known.tag == record.tag, known.tag != nil {
      // An export of ours coming back, or a page read again.
      guard known.generation != generation else { return }
      known.generation = generation
      return try books.update(known)
    }
    var entityName: String?
    if case .string(let name) = record.fields[MirrorNames.entityName] { entityName = name }
    guard
      let entity = mapping.entity(recordType: record.recordType, entityName: entityName),
      !entity.layout.entity.isAbstract
    else {
      effect.skipped.append(record.name)
      context.journal.note(
        .import,
        .recordSkipped,
        cause: "The model has no entity for \(entityName ?? record.recordType).",
        effect: "The record stays in CloudKit; it is read when a newer model knows it."
      ) { $0.recordNames = [record.name] }
      return
    }
    if let known {
      try applyUpdate(known, record, entity, generation: generation, &effect)
    } else {
      try applyInsert(record, entity, generation: generation, &effect)
    }
  }

  // MARK: Objects

  private func applyInsert(
    _ record: CloudRecord,
    _ entity: EntityMapping,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    var values = [RowValue](repeating: .null, count: entity.layout.rowWidth)
    for slot in entity.layout.attributes { values[slot.index] = slot.defaultRowValue }
    for attribute in entity.attributes {
      if let value = try rowValue(attribute, in: record) { values[attribute.index] = value }
    }
    for toOne in entity.toOnes {
      values[toOne.index] = try destination(toOne, in: record)
    }
    let reference = try rows.insert(entity.layout, values: values)
    var booked = BookedRecord(
      name: record.name,
      recordType: record.recordType,
      entityName: entity.entityName,
      key: reference.key
    )
    booked.tag = record.tag
    booked.stamps = record.stamps
    booked.base = record.fields.asBase
    booked.generation = generation
    try books.insert(booked)
    effect.inserted.append(record.name)
  }

  private func applyUpdate(
    _ known: BookedRecord,
    _ record: CloudRecord,
    _ entity: EntityMapping,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    var known = known
    let base = known.base
    known.tag = record.tag
    known.stamps = record.stamps
    known.base = record.fields.asBase
    known.generation = generation
    guard known.entityName == entity.entityName, let reference = reference(of: known),
      let row = try rows.row(reference)
    else {
      if known.pending == .delete, base.map({ !$0.hasSameFields(as: record.fields) }) ?? true {
        // Deleted here, edited there: the deletion wins and goes out with the new tag.
        try keepLosingEdit(
          known,
          fields: record.fields,
          reason: "Another device edited an object that was deleted here."
        )
      }
      return try books.update(known)
    }
    let local = try serialize(row, entity)
    let merge = PropertyMerge(
      properties: entity.fieldProperties,
      pending: known.unconfirmed,
      base: base,
      server: record.fields,
      local: local.fields
    )
    var set: [Int: RowValue] = [:]
    for property in merge.fromServer {
      if let attribute = entity.attribute(property) {
        set[attribute.index] = try rowValue(attribute, in: record) ?? row.values[attribute.index]
      } else if let toOne = entity.toOne(property), !toOne.isOneToOne {
        set[toOne.index] = try destination(toOne, in: record)
      }
    }
    for toOne in entity.toOnes where toOne.isOneToOne { try parkOneToOne(toOne, in: record) }
    for (index, value) in set where row.values[index] == value { set[index] = nil }
    if !set.isEmpty {
      try rows.update(reference, set: set)
      effect.updated.append(record.name)
    }
    known.properties = known.properties.intersection(merge.stillPending)
    if known.pending == .save, known.properties.isEmpty { known.pending = .nothing }
    known.parked = nil
    try books.update(known)
    if !merge.conflicting.isEmpty {
      effect.conflicts.append(record.name)
      context.journal.note(
        .merge,
        .conflictMerged,
        cause: "\(entity.entityName) was edited on two devices: "
          + merge.conflicting.sorted().joined(separator: ", ") + ".",
        effect: "This device's values of these properties stand; all others came from the server."
      ) { $0.recordNames = [record.name] }
    }
  }

  /// The value of an attribute in a record; the default where it has neither field; nil where it
  /// holds what the attribute cannot.
  private func rowValue(_ attribute: AttributeMapping, in record: CloudRecord) throws -> RowValue? {
    let content = record.fields.content(of: attribute.name)
    switch content {
    case nil: return attribute.defaultValue
    case .asset(let asset)?:
      return attribute.rowValue(fileContents: try context.assets.read(asset.file))
    case let value?:
      guard let converted = attribute.rowValue(value) else {
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

extension FieldBag {
  /// Whether both bags hold the same content under the same keys.
  package func hasSameFields(as other: FieldBag) -> Bool {
    guard values.count == other.values.count else { return false }
    return values.allSatisfy { key, value in
      other.values[key].map { value.hasSameContent(as: $0) } ?? false
    }
  }
}
