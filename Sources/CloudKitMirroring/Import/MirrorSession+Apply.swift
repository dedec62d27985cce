import Effects
import Foundation
import OpenCoreData

/// The changes of an import in the store.
package struct ImportEffect: Hashable, Sendable {
  package var inserted: [String] = []
  package var updated: [String] = []
  package var deleted: [String] = []
  package var skipped: [String] = []
  package var conflicts: [String] = []
  /// Records that were seen again while their deletions waited.
  package var returned: [String] = []
  /// Set if so many records were missing on the server that none was treated as deleted.
  package var stoppedSweep: StoppedSweep?

  /// Deletions that were not applied: the number of objects, or of links.
  package struct StoppedSweep: Hashable, Sendable {
    package var missing: Int
    package var known: Int

    package init(missing: Int, known: Int) {
      self.missing = missing
      self.known = known
    }
  }

  package init() {}

  package mutating func add(_ other: ImportEffect) {
    inserted += other.inserted
    updated += other.updated
    deleted += other.deleted
    skipped += other.skipped
    conflicts += other.conflicts
    returned += other.returned
    stoppedSweep = other.stoppedSweep ?? stoppedSweep
  }

  package var isEmpty: Bool {
    inserted.isEmpty && updated.isEmpty && deleted.isEmpty
  }
}

extension MirrorSession {
  /// Applies some of a page: objects with attributes and known links, then edges, then links that
  /// waited for these objects.
  ///
  /// Deletions are noted, and applied at the end of the feed. Applying the same again changes nothing, so a crash between two transactions of a page costs
  /// only the time to read it again.
  @discardableResult
  package func apply(
    records: some Sequence<CloudRecord>,
    deletedNames: some Sequence<String> = [],
    generation: Int64
  ) throws -> ImportEffect {
    var effect = ImportEffect()
    var edges: [CloudRecord] = []
    let open = OpenOperations(metadata)
    for record in records {
      if record.name.hasPrefix(MirrorNames.schemaRecordPrefix) { continue }
      if record.recordType == MirrorNames.edgeType {
        edges.append(record)
      } else {
        try apply(record, generation: generation, open: open, &effect)
      }
    }
    for edge in edges { try applyEdge(edge, generation: generation, &effect) }
    // A member that was read while its owner's deletion waited has its link parked.
    for name in effect.inserted + effect.returned { try linkWhatWaited(for: name) }
    for name in deletedNames where !context.effects.has(.forgetTombstone) {
      try noteDeletion(of: name)
    }
    return effect
  }

  /// Records which server records are incomplete: the rest of the page is applied, and
  /// they are asked for again later.
  package func park(_ unreadable: [String: String], generation: Int64) throws {
    for (name, reason) in unreadable.sorted(by: { $0.key < $1.key }) {
      try metadata.keepUnreadable(name, reason: reason)
      if var known = try metadata.record(named: name) {
        known.generation = generation
        try metadata.update(known)
      }
      context.journal.note(
        .import,
        .recordParked,
        cause: reason,
        effect: "The record is requested again later; all other records are imported."
      ) { $0.recordNames = [name] }
    }
  }

  /// Applies one record; `repeated` is the update of a repeated batch that it conflicts with.
  func apply(
    _ record: CloudRecord,
    generation: Int64,
    repeated: RepeatedUpdate? = nil
  ) throws {
    var effect = ImportEffect()
    try apply(
      record,
      generation: generation,
      repeated: repeated,
      open: OpenOperations(metadata),
      &effect
    )
    for name in effect.inserted + effect.returned { try linkWhatWaited(for: name) }
  }

  private func apply(
    _ record: CloudRecord,
    generation: Int64,
    repeated: RepeatedUpdate? = nil,
    open: OpenOperations,
    _ effect: inout ImportEffect
  ) throws {
    var known = try metadata.record(named: record.name)
    // The record was created again after a deletion that an earlier page of the feed listed.
    if known != nil, try metadata.forgetGoneRecord(record.name) {
      effect.returned.append(record.name)
    }
    if var known, known.tag == record.tag, known.tag != nil {
      // An export of this device in the feed, or a page that is read again. A record that was looked
      // up is applied again, and so is each with a model that reads more than the last one.
      if try !metadata.isUnreadable(record.name) {
        guard known.generation != generation else { return }
        if try metadata.integer(.readsWithNewModel) != 1 {
          known.generation = generation
          return try metadata.update(known)
        }
      }
    }
    var entityName: String?
    if case .string(let name) = record.fields[MirrorNames.entityName] { entityName = name }
    guard
      // The metadata follows an entity through migrations; the record has its original name.
      let entity = known.flatMap({ mapping.entity(named: $0.entityName) })
        ?? mapping.entity(recordType: record.recordType, entityName: entityName),
      !entity.layout.entity.isAbstract,
      !context.effects.has(.sweepRenamed) || entityName == entity.entityName
    else {
      effect.skipped.append(record.name)
      // The record is on the server, even if this model cannot read it.
      if var known, known.generation != generation, !context.effects.has(.sweepRenamed) {
        known.generation = generation
        try metadata.update(known)
      }
      context.journal.note(
        .import,
        .recordSkipped,
        cause: "The model has no entity for \(entityName ?? record.recordType).",
        effect: "The record stays in CloudKit; it is read when a newer model knows it."
      ) { $0.recordNames = [record.name] }
      return
    }
    if known == nil, try metadata.takeUnsent(record.name) {
      known = try deletedUnsent(record, entity)
    }
    let base = record.fields.asBase
    try learnFieldKinds(from: record.fields, of: entity)
    var record = record
    if !context.effects.has(.forgetFormerNames) {
      let reading = entity.reading(record.fields, since: known?.base)
      try keepReplaced(
        reading.doubtful,
        of: record,
        entity,
        reason: "The field under the former name has another value, which is taken for newer."
      )
      record.fields = reading.fields
    }
    if var known {
      var repeated = repeated
      if repeated == nil, let open = try open.operation(of: known) {
        if open.kind == .create {
          // The batch made the record, or the batch of a store that this one is a copy of.
          known.noteCreation(open, server: record.fields, entity)
        } else if open.kind == .update, open.tag != record.tag, let base = known.base {
          repeated = known.compare(open, since: base, server: record.fields, entity)
        }
      }
      try applyUpdate(
        known,
        record,
        base: base,
        entity,
        generation: generation,
        repeated: repeated,
        &effect
      )
    } else {
      try applyInsert(record, base: base, entity, known: nil, generation: generation, &effect)
    }
    try writePresentNames(record.name, since: known?.base)
  }

  // MARK: Objects

  /// Marks a record for deletion whose object was deleted here before this store sent it: another copy
  /// of the store, or a batch without a reply, has sent it.
  private func deletedUnsent(
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
  private func applyInsert(
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

  private func applyUpdate(
    _ known: RecordMetadata,
    _ record: CloudRecord,
    base newBase: FieldBag,
    _ entity: EntityMapping,
    generation: Int64,
    repeated: RepeatedUpdate?,
    _ effect: inout ImportEffect
  ) throws {
    var known = known
    let base = known.base.map { entity.reading($0).fields }
    let stamps = known.stamps
    // A record that was never confirmed has no stamps.
    let isForgotten = known.tag == nil && known.stamps.created != nil
    let isCopy = known.isNeverSent
    // A copy of the store that another version of the app opened sent it under another type.
    known.recordType = record.recordType
    known.tag = record.tag
    known.stamps = record.stamps
    known.base = newBase
    known.generation = generation
    // A batch that was abandoned without a reply has one now.
    if known.sequence == nil { known.sentKind = .nothing }
    try metadata.forgetUnreadable(record.name)
    guard known.entityName == entity.entityName, let reference = reference(of: known),
      let row = try rows.row(reference)
    else {
      let isDeletedHere = known.pending == .delete || known.sentKind == .delete
      if isDeletedHere, base.map({ !$0.hasSameFields(as: record.fields) }) ?? true {
        // Deleted here and edited on the other device: the deletion wins and is sent with the new
        // tag.
        try keepLosingEdit(
          known,
          fields: try whole(record.fields, entity),
          entity,
          reason: "Another device edited an object that was deleted here."
        )
      }
      guard isDeletedHere else {
        // An earlier model or a migration dropped the object, and this model has its entity.
        return try applyInsert(
          record,
          base: newBase,
          entity,
          known: known,
          generation: generation,
          &effect
        )
      }
      return try metadata.update(known)
    }
    let local = try serialize(row, entity)
    // Agreed values that the service has lost are treated as edited here.
    let lost =
      try base.map { base in
        try lostProperties(record, entity, local: local.fields, since: base, saved: stamps)
      } ?? []
    let omitted = try omittedProperties(
      record,
      entity,
      local: local.fields,
      since: base,
      saved: stamps,
      isForgotten: isForgotten
    )
    var mergeBase = lost.isEmpty ? base : record.fields
    for property in omitted { mergeBase?.removeContent(of: property) }
    // The original of this copy has sent them as they were at an earlier opening.
    let followed = isCopy ? try followedProperties(record, entity, since: base) : []
    for property in followed { mergeBase?.copyContent(of: property, from: record.fields) }
    // A value whose file is missing here is not an edit: the server's comes back.
    let pending = try known.unconfirmed.union(lost).union(omitted)
      .subtracting(rows.missingFiles(of: row))
    let merge = PropertyMerge(
      properties: entity.fieldProperties,
      pending: context.effects.has(.importOverEdit) ? [] : pending,
      base: mergeBase,
      server: record.fields,
      local: local.fields
    )
    // Other devices may have sent the lost values and edited them since.
    if stamps.isOfLostCopy, !context.effects.has(.forgetReplaced) {
      try keepReplaced(
        merge.stillPending,
        of: record,
        entity,
        reason: "A value that a restored server had lost was sent again in its place."
      )
    }
    if !lost.isEmpty || (stamps.isOfLostCopy && !merge.conflicting.isEmpty) {
      known.stamps.modified = nil
    }
    if !lost.isEmpty {
      try keepReplaced(
        merge.stillPending,
        of: record,
        entity,
        reason: "A server that was restored had other values than the last agreed ones."
      )
    } else if let base, base.values.isEmpty {
      // An object that was restored here, without agreed values.
      try keepReplaced(
        merge.conflicting,
        of: record,
        entity,
        reason: "Another device restored the object too, with other values."
      )
    } else if let base {
      if repeated == nil, !merge.conflicting.isEmpty, try isFromEarlierOpening(known) {
        // The store may be a backup that was restored, and the other edit later than this one.
        try keepReplaced(
          merge.conflicting,
          of: record,
          entity,
          reason: "It was edited on another device, and here before the store was opened."
        )
      }
      if isCopy {
        // Another device may have set it back.
        try keepReplaced(
          merge.stillPending.intersection(followed),
          of: record,
          entity,
          reason: "It was edited here in an earlier launch, before which the store had this value."
        )
        try keepOwn(
          merge.fromServer.filter { !base.agrees(with: record.fields, on: $0) },
          of: record,
          entity,
          row,
          reason: "Another copy of this store had sent it, and it was edited since."
        )
      }
      if let repeated {
        try keepReplaced(
          merge.conflicting,
          of: record,
          entity,
          reason: "Another device edited it while the reply to a batch of this device was lost."
        )
        try keepOwn(
          merge.fromServer.intersection(repeated.taken),
          of: record,
          entity,
          row,
          reason: "Another device replaced it while the reply to a batch of this device was lost."
        )
      }
      try keepAgreed(
        record,
        entity,
        row,
        local: local.fields,
        since: base,
        omitted: omitted,
        isForgotten: isForgotten
      )
    } else {
      try keepReplaced(
        merge.stillPending,
        of: record,
        entity,
        reason: "A record of the same name, which another copy of this store may have sent, had it."
      )
    }
    var set: [Int: RowValue] = [:]
    for property in merge.fromServer {
      if let attribute = entity.attribute(property) {
        set[attribute.index] =
          try rowValue(attribute, in: record, since: base) ?? row.values[attribute.index]
      } else if let toOne = entity.toOne(property), !toOne.isOneToOne {
        set[toOne.index] = try destination(toOne, in: record)
      }
    }
    for toOne in entity.toOnes {
      if toOne.isOneToOne {
        try parkOneToOne(toOne, in: record)
      } else if base?.content(of: toOne.name) != nil,
        record.fields.content(of: toOne.name) == nil, !merge.stillPending.contains(toOne.name)
      {
        // A link that waits for its object is nil here, as it is in the record from which it was removed.
        try metadata.unpark(record: record.name, property: toOne.name)
      }
    }
    for (index, value) in set where row.values[index] == value { set[index] = nil }
    if !set.isEmpty {
      try rows.update(reference, set: set)
      effect.updated.append(record.name)
    }
    let writesEntityName =
      known.properties.contains(MirrorNames.entityName)
      && newBase[MirrorNames.entityName] != .string(entity.entityName)
    known.properties = known.properties.intersection(merge.stillPending)
    if writesEntityName { known.properties.insert(MirrorNames.entityName) }
    let resent = lost.union(omitted).intersection(merge.stillPending)
    if !resent.isEmpty, known.pending != .delete {
      if known.pending == .nothing { known.group = try rows.lastTransactionNumber() }
      known.pending = .save
      known.properties.formUnion(resent)
    }
    if known.pending == .save, known.properties.isEmpty { known.pending = .nothing }
    known.parked = nil
    try metadata.update(known)
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

extension FieldBag {
  /// Whether both bags have the same content under the same keys.
  package func hasSameFields(as other: FieldBag) -> Bool {
    guard values.count == other.values.count else { return false }
    return values.allSatisfy { key, value in
      other.values[key].map { value.hasSameContent(as: $0) } ?? false
    }
  }
}
