import Effects
import Foundation
import OpenCoreData

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
    // The link of a member that was read while its owner's deletion was postponed is parked.
    try linkWhatWaited(for: effect.inserted + effect.returned)
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
      // The record was created again after a deletion that an earlier page of the feed listed.
      if try metadata.forgetGoneRecord(name) { try linkWhatWaited(for: name) }
      try metadata.forgetGoneEdge(name)
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
    if let known, try isApplied(record, known, generation: generation) { return }
    guard let entity = entity(of: record, known) else {
      return try skip(record, known, generation: generation, &effect)
    }
    if known == nil, try metadata.takeUnsent(record.name) {
      known = try deletedUnsent(record, entity)
    }
    let newBase = record.fields.asBase
    try learnFieldKinds(from: record.fields, of: entity)
    let local = try valuesOfFormerNames(known, entity)
    var repeated = repeated
    // The open batch is compared first: a field with the value that the batch sent is no edit of another device.
    if var sent = known, repeated == nil {
      repeated = try compareWithOpenBatch(&sent, record, entity, open)
      known = sent
    }
    let base = known?.base
    let (record, unreadFiles) = try readFormerNames(record, entity, since: base, local)
    if let known {
      var incoming = IncomingRecord(
        known: known,
        record: record,
        newBase: newBase,
        entity: entity,
        local: local,
        generation: generation,
        repeated: repeated,
        isOtherServer: try isOtherServer()
      )
      incoming.unreadFiles = unreadFiles
      try applyUpdate(incoming, &effect)
    } else {
      try applyInsert(record, base: newBase, entity, known: nil, generation: generation, &effect)
    }
    try writePresentNames(record.name, since: base, local: local)
  }

  /// Whether this store has the copy: an export of this device in the feed, or a page that is read again.
  ///
  /// A record that was looked up is applied again, and so is each with a model that reads more than the
  /// last one.
  private func isApplied(
    _ record: CloudRecord,
    _ known: RecordMetadata,
    generation: Int64
  ) throws -> Bool {
    guard known.tag == record.tag, known.tag != nil, try !metadata.isUnreadable(record.name) else {
      return false
    }
    guard known.generation != generation else { return true }
    guard try metadata.integer(.readsWithNewModel) != 1 else { return false }
    var known = known
    known.generation = generation
    try metadata.update(known)
    return true
  }

  /// The entity of a record: the metadata follows it through migrations, and the record has its original name.
  private func entity(of record: CloudRecord, _ known: RecordMetadata?) -> EntityMapping? {
    let name = record.entityName
    guard
      let entity = known.flatMap({ mapping.entity(named: $0.entityName) })
        ?? mapping.entity(recordType: record.recordType, entityName: name),
      !entity.layout.entity.isAbstract,
      !context.effects.has(.sweepRenamed) || name == entity.entityName
    else { return nil }
    return entity
  }

  /// Skips a record whose entity the model lacks.
  private func skip(
    _ record: CloudRecord,
    _ known: RecordMetadata?,
    generation: Int64,
    _ effect: inout ImportEffect
  ) throws {
    effect.skipped.append(record.name)
    // The record is on the server, even if this model cannot read it.
    if var known, known.generation != generation, !context.effects.has(.sweepRenamed) {
      known.generation = generation
      try metadata.update(known)
    }
    context.journal.note(
      .import,
      .recordSkipped,
      cause: "The model has no entity for \(record.entityName ?? record.recordType).",
      effect: "The record stays in CloudKit; it is read when a newer model knows it."
    ) { $0.recordNames = [record.name] }
  }

  /// The record with this model's property names, and the properties with files that this device has never read.
  private func readFormerNames(
    _ record: CloudRecord,
    _ entity: EntityMapping,
    since base: FieldBag?,
    _ local: FieldBag?
  ) throws -> (CloudRecord, unreadFiles: Set<String>) {
    guard !context.effects.has(.forgetFormerNames) else { return (record, []) }
    let reading = entity.reading(record.fields, since: base, local: local)
    try recovery.keepReplaced(
      reading.doubtful,
      of: record.name,
      entity,
      in: record.fields,
      .formerFieldDiffers
    )
    var record = record
    record.fields = reading.fields
    return (record, reading.unreadFiles)
  }

  /// Compares a record with the open batch that saves it.
  ///
  /// The fields that the batch created become the base. Returns the update that the record conflicts with, or nil.
  private func compareWithOpenBatch(
    _ known: inout RecordMetadata,
    _ record: CloudRecord,
    _ entity: EntityMapping,
    _ open: OpenOperations
  ) throws -> RepeatedUpdate? {
    guard let operation = try open.operation(of: known) else { return nil }
    if operation.kind == .create {
      // The record was created by this batch, or by the same batch of the store that this one is a copy of.
      known.noteCreation(operation, server: record.fields, entity)
    } else if operation.kind == .update, operation.tag != record.tag, let base = known.base {
      return known.compare(operation, since: base, server: record.fields, entity)
    }
    return nil
  }
}

extension CloudRecord {
  /// The name of the record's entity in the model that wrote it.
  fileprivate var entityName: String? {
    if case .string(let name) = fields[MirrorNames.entityName] { name } else { nil }
  }
}
