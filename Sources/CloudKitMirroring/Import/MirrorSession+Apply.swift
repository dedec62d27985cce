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

  // MARK: Links

  /// The destination of a many-to-one, or null while it is not here.
  private func destination(_ toOne: ToOneMapping, in record: CloudRecord) throws -> RowValue {
    guard !toOne.isOneToOne else {
      try parkOneToOne(toOne, in: record)
      return .null
    }
    guard case .string(let target) = record.fields[toOne.field], !target.isEmpty else {
      try books.unpark(record: record.name, property: toOne.name)
      return .null
    }
    if let reference = try destination(toOne, named: target) {
      try books.unpark(record: record.name, property: toOne.name)
      return .reference(reference)
    }
    try books.park(
      ParkedLink(record: record.name, property: toOne.name, target: target, isOneToOne: false)
    )
    return .null
  }

  /// The object of a record name, if a relationship can lead to it.
  func destination(_ toOne: ToOneMapping, named name: String) throws -> RowReference? {
    guard let record = try books.record(named: name), let reference = reference(of: record),
      let entity = mapping.entity(named: record.entityName),
      entity.layout.isMemberOrSub(of: toOne.destinationEntity)
    else { return nil }
    return reference
  }

  /// Both sides of a one-to-one have a field: they are settled when both have been read.
  private func parkOneToOne(_ toOne: ToOneMapping, in record: CloudRecord) throws {
    var target: String?
    if case .string(let name) = record.fields[toOne.field], !name.isEmpty { target = name }
    try books.park(
      ParkedLink(record: record.name, property: toOne.name, target: target, isOneToOne: true)
    )
  }

  /// Makes the links and edges that could not be made before an object was here.
  private func linkWhatWaited(for name: String) throws {
    for link in try books.linksParked(for: name) {
      guard let source = try books.record(named: link.record),
        let reference = reference(of: source),
        let toOne = mapping.entity(named: source.entityName)?.toOne(link.property),
        let target = try destination(toOne, named: name)
      else { continue }
      try books.unpark(record: link.record, property: link.property)
      // An edit made here meanwhile stands.
      guard !source.unconfirmed.contains(link.property) else { continue }
      try rows.update(reference, set: [toOne.index: .reference(target)])
    }
    for edge in try books.edges(touching: name) where !edge.isLinked && edge.pending != .delete {
      try link(edge)
    }
  }

  private func applyEdge(
    _ record: CloudRecord,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    let known = try books.edge(named: record.name)
    if var known, known.tag == record.tag, known.tag != nil {
      guard known.generation != generation else { return }
      known.generation = generation
      return try books.update(known)
    }
    guard let edge = Edge(fields: record.fields), isKnown(edge.relationship) else {
      effect.skipped.append(record.name)
      context.journal.note(
        .import,
        .recordSkipped,
        cause: "The edge record names no relationship of this model.",
        effect: "The record stays in CloudKit."
      ) { $0.recordNames = [record.name] }
      return
    }
    var booked = known ?? BookedEdge(name: record.name, edge: edge)
    if let known, known.edge != edge, known.isLinked { try unlink(known) }
    if booked.edge != edge {
      booked.edge = edge
      booked.isLinked = false
    }
    booked.tag = record.tag
    booked.stamps = record.stamps
    booked.generation = generation
    if booked.pending == .save { booked.pending = .nothing }
    if known == nil { booked = try books.insert(booked) } else { try books.update(booked) }
    if !booked.isLinked, booked.pending != .delete {
      try link(booked)
      effect.updated.append(record.name)
    }
  }

  private func isKnown(_ relationship: EdgeRelationship) -> Bool {
    mapping.manyToMany(
      entityName: relationship.first.entityName,
      relationship: relationship.first.relationship
    )?.edge == relationship
  }

  private func link(_ edge: BookedEdge) throws {
    guard
      let relationship = mapping.manyToMany(
        entityName: edge.edge.relationship.first.entityName,
        relationship: edge.edge.relationship.first.relationship
      ),
      let first = try reference(named: edge.edge.firstRecord),
      let second = try reference(named: edge.edge.secondRecord)
    else { return }
    try rows.addLink(relationship.description, first, second)
    var edge = edge
    edge.isLinked = true
    try books.update(edge)
  }

  /// Removes the link of an edge, unless another record still says it.
  private func unlink(_ edge: BookedEdge) throws {
    let others = try books.edges(like: edge.edge).filter { $0.id != edge.id && $0.isLinked }
    guard others.isEmpty,
      let relationship = mapping.manyToMany(
        entityName: edge.edge.relationship.first.entityName,
        relationship: edge.edge.relationship.first.relationship
      ),
      let first = try reference(named: edge.edge.firstRecord),
      let second = try reference(named: edge.edge.secondRecord)
    else { return }
    try rows.removeLink(relationship.description, first, second)
  }

  // MARK: Deletions

  func applyDeletion(of edge: BookedEdge) throws {
    // A tombstone of an earlier record of the same name says nothing about one being made now.
    guard edge.pending != .save || edge.tag != nil else { return }
    if edge.isLinked { try unlink(edge) }
    try books.remove(edge)
  }

  /// Deletes the object of a record that another device deleted.
  func applyDeletion(of record: BookedRecord) throws {
    let group = try rows.lastTransactionNumber()
    if let reference = reference(of: record), let row = try rows.row(reference) {
      if record.hasUnconfirmedEdits, let entity = mapping.entity(named: record.entityName) {
        try keepLosingEdit(
          record,
          fields: try serialize(row, entity).fields,
          reason: "Another device deleted an object that was edited here."
        )
        context.journal.note(
          .merge,
          .deleteWon,
          cause: "\(record.entityName) was deleted on another device and edited here.",
          effect: "The object is gone; the edit is kept in the recovery list."
        ) { $0.recordNames = [record.name] }
      }
      for gone in try rows.delete(reference) where gone != reference {
        // What went with it by a delete rule goes at the server too; where the other device sent
        // that deletion as well, it arrives first and nothing is left to send.
        if let other = try booked(gone) { try forget(other, group: group) }
      }
    }
    for edge in try books.edges(touching: record.name) { try forget(edge, group: group) }
    try books.unpark(record: record.name)
    try books.remove(record)
  }

  /// Ends a reading from the start: what the server once had and no longer has was deleted there.
  ///
  /// Returns whether more is left to do.
  package func sweepMissing(
    generation: Int64,
    limit: Int,
    _ effect: inout ImportEffect
  ) throws
    -> Bool
  {
    let edges = try books.missingEdges(generation: generation, limit: limit)
    for edge in edges { try applyDeletion(of: edge) }
    let records = try books.missingRecords(generation: generation, limit: limit)
    for record in records {
      guard let record = try books.record(named: record.name) else { continue }
      if record.pending == .delete {
        try books.remove(record)
      } else {
        if !record.hasUnconfirmedEdits { try keepSwept(record) }
        try applyDeletion(of: record)
        effect.deleted.append(record.name)
      }
    }
    return edges.count == limit || records.count == limit
  }

  /// That a record is missing is weaker news than a tombstone: its object can be had back.
  private func keepSwept(_ record: BookedRecord) throws {
    guard let entity = mapping.entity(named: record.entityName),
      let reference = reference(of: record), let row = try rows.row(reference)
    else { return }
    try keepLosingEdit(
      record,
      fields: try serialize(row, entity).fields,
      reason: "The record was missing when the zone was read from the start."
    )
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
