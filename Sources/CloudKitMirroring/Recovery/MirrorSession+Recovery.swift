import Effects
import Foundation
import OpenCoreData

/// Restores entries of the recovery list.
extension MirrorSession {
  /// Writes an entry's values into the object of its record, or creates that object again, and
  /// removes the entry from the list; returns the object.
  ///
  /// Values that the model has no property for stay in the list, for a version of the app that has one.
  ///
  /// The history records the change under an author that is exported, so other devices receive it.
  /// The record keeps its name: two devices that restore one object create one record, and links to
  /// it become valid again.
  ///
  /// The history is folded: an edit that is in the history alone has to be known.
  func restore(_ id: Int64) throws -> RowReference {
    guard let edit = try metadata.recoveredEdit(id) else {
      throw MirroringErrorCode.recoveryEntryUnusable.error(
        "The entry is not in the recovery list any more: it was restored or discarded."
      )
    }
    guard
      let entity = mapping.entity(named: edit.entityName)
        ?? mapping.entity(recordType: MirrorNames.prefix + edit.entityName, entityName: nil),
      !entity.layout.entity.isAbstract
    else {
      throw MirroringErrorCode.recoveryEntryUnusable.error(
        "The model has no entity \(edit.entityName). The entry stays in the list; restore it with a "
          + "version of the app that has the entity."
      )
    }
    let known = try metadata.record(named: edit.record)
    let reference: RowReference
    if let known, let living = self.reference(of: known), let row = try rows.row(living) {
      // The object's entity may have changed since.
      let present = mapping.entity(named: known.entityName) ?? entity
      try keepUnread(edit, present)
      let fields = present.reading(edit.fields).fields
      try write(fields, into: row, of: known.name, present)
      reference = living
      try restoreLinks(fields, of: known.name, at: reference, present)
    } else {
      try keepUnread(edit, entity)
      let fields = entity.reading(edit.fields).fields
      let name = restoredName(of: edit)
      reference = try make(name, fields, known, entity)
      try restoreLinks(fields, of: name, at: reference, entity)
    }
    return reference
  }

  /// Removes an entry that is being restored from the list, but for the values that the model has no property for.
  private func keepUnread(_ edit: RecoveredEdit, _ entity: EntityMapping) throws {
    let unread = entity.unreadFields(of: edit.fields)
    guard !unread.values.isEmpty else { return try metadata.discardRecoveredEdit(edit.id) }
    guard unread != edit.fields else {
      throw MirroringErrorCode.recoveryEntryUnusable.error(
        "The entity \(entity.entityName) has no property for what the entry has: "
          + "\(unread.values.keys.sorted().joined(separator: ", ")). The entry stays in the list; restore "
          + "it with a version of the app whose model has the property."
      )
    }
    var rest = edit
    rest.fields = unread
    try metadata.update(rest)
  }

  /// The name of an entry's record; entries of objects that never had one were once stored under
  /// entity and key, which identify another object on another device.
  private func restoredName(of edit: RecoveredEdit) -> String {
    guard edit.record.hasPrefix(edit.entityName + "/") else { return edit.record }
    return context.effects.uuid().uuidString
  }

  private func write(
    _ fields: FieldBag,
    into row: Row,
    of name: String,
    _ entity: EntityMapping
  ) throws {
    var set: [Int: RowValue] = [:]
    for attribute in entity.attributes {
      if let value = value(of: attribute, in: fields) { set[attribute.index] = value }
    }
    for toOne in entity.toOnes where !toOne.isOneToOne {
      if let destination = try destination(toOne, in: fields) {
        set[toOne.index] = .reference(destination)
      }
    }
    for (index, value) in set where row.values[index] == value { set[index] = nil }
    guard !set.isEmpty else { return }
    // Another device may have edited the values since.
    let attributes = entity.attributes.filter { set[$0.index] != nil }.map(\.name)
    let toOnes = entity.toOnes.filter { set[$0.index] != nil }.map(\.name)
    try recovery.keepReplaced(Set(attributes + toOnes), of: name, entity, in: row, .restoredEntry)
    try rows.update(row.reference, set: set)
  }

  /// Creates the object of a record again; a pending deletion of the record is cancelled.
  private func make(
    _ name: String,
    _ fields: FieldBag,
    _ known: RecordMetadata?,
    _ entity: EntityMapping
  ) throws -> RowReference {
    var values = [RowValue](repeating: .null, count: entity.layout.rowWidth)
    // In a whole object a missing field means nil; in a part of one it has no meaning.
    let isWhole = fields[MirrorNames.entityName] != nil
    for slot in entity.layout.attributes where !isWhole || !slot.isOptional {
      values[slot.index] = slot.defaultRowValue
    }
    for attribute in entity.attributes {
      if let value = value(of: attribute, in: fields) { values[attribute.index] = value }
    }
    var waiting: [ParkedLink] = []
    for toOne in entity.toOnes where !toOne.isOneToOne {
      guard case .string(let target)? = fields[toOne.field], !target.isEmpty else { continue }
      if let destination = try destination(toOne, named: target) {
        values[toOne.index] = .reference(destination)
      } else {
        waiting.append(
          ParkedLink(record: name, property: toOne.name, target: target, isOneToOne: false)
        )
      }
    }
    let reference = try rows.insert(entity.layout, values: values)
    var record =
      known
      ?? RecordMetadata(
        name: name,
        recordType: entity.recordType,
        entityName: entity.entityName,
        key: nil
      )
    record.entityName = entity.entityName
    record.key = reference.key
    if record.pending == .nothing { record.group = try rows.lastTransactionNumber() }
    record.pending = .save
    // A link that waits for its object is not an edit of this device; otherwise it would be sent as removed.
    record.properties = Set(entity.fieldProperties).subtracting(waiting.map(\.property))
    record.edges = Set(entity.manyToManys.map(\.name))
    record.parked = nil
    // Another device may have restored it too: no values are agreed on with that device.
    if record.base == nil, record.sequence == nil { record.base = FieldBag() }
    if known == nil { try metadata.insert(record) } else { try metadata.update(record) }
    for link in waiting { try metadata.park(link) }
    // A record of this name on the server belongs to the restored object from now on.
    _ = try metadata.takeUnsent(name)
    return reference
  }

  /// Sets the links of an entry to imported objects, and those of other entries that waited for
  /// this object.
  private func restoreLinks(
    _ fields: FieldBag,
    of name: String,
    at reference: RowReference,
    _ entity: EntityMapping
  ) throws {
    for relationship in entity.manyToManys {
      guard let targets = entity.linkedNames(relationship, in: fields) else { continue }
      for target in targets {
        if let other = try self.reference(named: target) {
          try rows.addLink(relationship.description, reference, other)
        } else {
          try keepForLater(relationship, from: name, to: target)
        }
      }
      guard var record = try metadata.record(named: name) else { continue }
      record.edges.insert(relationship.name)
      try metadata.update(record)
    }
    for toOne in entity.toOnes where toOne.isOneToOne {
      guard case .string(let target)? = fields[toOne.field],
        let other = try metadata.record(named: target), let partner = self.reference(of: other),
        let back = mapping.entity(named: other.entityName)?.toOne(toOne.partner?.name ?? ""),
        // An object that was given another link since keeps it.
        try rows.row(partner)?.values[back.index].isNull == true,
        try rows.row(reference)?.values[toOne.index].isNull == true
      else { continue }
      try rows.update(reference, set: [toOne.index: .reference(partner)])
      try rows.update(partner, set: [back.index: .reference(reference)])
    }
    try linkWhatWaited(for: name)
  }

  /// Stores the edge to an object that has not been imported; it is linked and sent once the object
  /// is.
  private func keepForLater(
    _ relationship: ManyToManyMapping,
    from name: String,
    to target: String
  ) throws {
    let edge = Edge(
      relationship: relationship.edge,
      firstRecord: relationship.isFirst ? name : target,
      secondRecord: relationship.isFirst ? target : name
    )
    let recordName = edge.recordName(zone: context.zone)
    guard try metadata.edges(like: edge).isEmpty, try metadata.edge(named: recordName) == nil else {
      return
    }
    try metadata.insert(EdgeMetadata(name: recordName, edge: edge))
  }

  private func value(of attribute: AttributeMapping, in fields: FieldBag) -> RowValue? {
    fields.content(of: attribute.name).flatMap { attribute.rowValue($0, in: fields) }
  }

  private func destination(_ toOne: ToOneMapping, in fields: FieldBag) throws -> RowReference? {
    guard case .string(let target)? = fields[toOne.field], !target.isEmpty else { return nil }
    return try destination(toOne, named: target)
  }
}
