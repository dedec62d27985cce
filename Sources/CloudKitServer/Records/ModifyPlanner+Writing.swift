import CloudKitWebServices
import Foundation

/// Turns the decision into the batch to write and the results.
extension ModifyPlanner {
  func failedAtomically() -> ModifyPlan {
    let items = input.operations.indices.map { index -> ModifyPlan.Item in
      if let failure = failures[index] { return failed(failure) }
      return .failed(Self.batchFailed, current: nil)
    }
    return ModifyPlan(items: items)
  }

  static let batchFailed = ErrorDictionary(
    .atomicError,
    "another item of the atomic batch failed"
  )

  func finished() throws -> ModifyPlan {
    var batch = WriteBatch(partition: input.partition)
    var counter = input.database.counter
    /// The index of each record in the batch.
    var written = [RecordKey: Int](minimumCapacity: saved.count)
    batch.records.reserveCapacity(saved.count + deleted.count)
    batch.madeRecords.reserveCapacity(saved.count)
    var zones: Set<ZoneNumber> = []
    // Records are written in the order of operations, then cascades, so that feeds list changes in that order.
    for key in orderedSaves() {
      guard let draft = saved[key] else { continue }
      var record = draft.stored
      record.change = nextChange(&counter)
      record.tag = input.stamping.tag()
      record.fields = encoded(try sealed(draft, key))
      record.contents = draft.contents
      record.sharing = try encodedSharing(draft.sharing, at: record.change)
      place(&record, in: &batch)
      written[key] = batch.records.count
      batch.records.append(record)
      if input.existing[key] == nil { batch.madeRecords.insert(key) }
      batch.references += binding(draft)
      if draft.contents.contains(.assets) {
        batch.assetUses += draft.fields.values.flatMap(\.content.assets).compactMap { asset in
          asset.fileName.map { StoredAssetUse(key: key, digest: $0) }
        }
      }
      try index(record, draft.fields, in: &batch)
      try checkLinkedRows(of: batch)
      if mayHaveLinks(key, draft) { batch.relinkedRecords.append(key) }
      zones.insert(key.zone)
    }
    for key in orderedDeletes() {
      guard let found = deleted[key] else { continue }
      if let stored = input.existing[key], !stored.isDeleted {
        try unindex(stored, in: &batch)
        try checkLinkedRows(of: batch)
        batch.removedShortGUIDs += (try stored.decodedSharing()?.shortGUIDs ?? []).map {
          WriteBatch.RemovedShortGUID(guid: $0, key: key)
        }
        if key.zone == .defaultZone {
          // No feed reports it, but other servers' decisions depend on the counter.
          _ = nextChange(&counter)
          batch.erasedRecords.append(key)
          if mayHaveLinks(stored) { batch.relinkedRecords.append(key) }
        } else {
          let tombstone = try tombstone(found, &counter)
          depart(stored, from: nil, at: tombstone.change, in: &batch)
          batch.records.append(tombstone)
          if mayHaveLinks(stored) { batch.relinkedRecords.append(key) }
        }
        zones.insert(key.zone)
      }
    }
    try writeRoots(in: &batch, &counter)
    writeMoves(in: &batch, &counter)
    // In the same transaction: the file counts as used from its first use on.
    batch.removedEntries += Set(batch.assetUses.map(\.digest)).intersection(receivedFiles).map {
      AssetPlace(input.partition, $0).unusedUpload
    }
    schema.contribute(to: &batch)
    expect(in: &batch, counter)
    var plan = ModifyPlan(items: items(batch, written))
    plan.savedCount = saved.count
    plan.attempts = work.attempts
    plan.examinedReferences = work.examinedReferences
    plan.deletedCount = deleted.count
    plan.changedZones = zones
    plan.touchedShares = touchedShares(batch)
    if !batch.records.isEmpty || !batch.erasedRecords.isEmpty { plan.batch = batch }
    return plan
  }

  /// The fields as the storage stores them, encrypted where declared.
  private func sealed(_ draft: Draft, _ key: RecordKey) throws -> [String: FieldValue] {
    guard draft.contents.contains(.encrypted) else { return draft.fields }
    var sealed = draft.fields
    for (name, value) in draft.fields where value.isEncrypted {
      sealed[name] = try input.seal(value, key, name)
    }
    return sealed
  }

  private func encoded(_ fields: [String: FieldValue]) -> Data {
    var json = JSONWriter(capacity: 1024)
    json.fields(fields)
    return json.finished()
  }

  func nextChange(_ counter: inout ChangeNumber) -> ChangeNumber {
    // The public database has no counter: one would serialize all its writers.
    guard input.scope != .public else { return ChangeNumber(input.stamping.now) }
    counter = counter.next
    return counter
  }

  private func tombstone(
    _ found: StoredRecord,
    _ counter: inout ChangeNumber
  ) throws -> StoredRecord {
    var record = found
    record.change = nextChange(&counter)
    record.tag = input.stamping.tag()
    record.modified = input.stamping.stamp
    record.parent = nil
    record.fields = Data()
    record.contents = []
    record.isDeleted = true
    record.membership = nil
    record.sharing = try endedSharing(of: found, at: record.change)
    return record
  }

  private func expect(in batch: inout WriteBatch, _ counter: ChangeNumber) {
    batch.expectedIndexes = input.database.indexes
    guard input.scope == .public else {
      batch.expectedCounter = input.database.counter
      batch.counter = counter
      return
    }
    for operation in input.operations {
      if let key = operation.key { batch.expectedTags[key] = .some(input.existing[key]?.tag) }
    }
    for (key, record) in input.existing { batch.expectedTags[key] = .some(record.tag) }
    for (key, record) in input.holders { batch.expectedTags[key] = .some(record.tag) }
    for key in deleted.keys where !input.cutTargets.contains(key) {
      batch.expectedReferrers[key] = Set((input.references[key] ?? []).map(\.source))
    }
  }

  private func orderedSaves() -> [RecordKey] {
    saved.keys.map { (key: $0, index: savedBy[$0, default: 0]) }.sorted { $0.index < $1.index }
      .map(\.key)
  }

  private func orderedDeletes() -> [RecordKey] {
    deleted.keys.filter { saved[$0] == nil }.sorted {
      (deletedBy[$0] ?? .max, $0.name) < (deletedBy[$1] ?? .max, $1.name)
    }
  }

  /// Whether the record may have rows of references or asset uses, before or after the batch.
  private func mayHaveLinks(_ key: RecordKey, _ draft: Draft) -> Bool {
    !draft.contents.isDisjoint(with: .linking) || input.existing[key].map(mayHaveLinks) == true
  }

  private func mayHaveLinks(_ stored: StoredRecord) -> Bool {
    !stored.contents.isDisjoint(with: .linking)
  }

  private func items(_ batch: WriteBatch, _ written: [RecordKey: Int]) -> [ModifyPlan.Item] {
    input.operations.indices.map { index in
      let operation = input.operations[index]
      if let failure = failures[index] { return failed(failure) }
      guard let key = operation.key, !operation.type.isDelete, let place = written[key] else {
        return .deleted(name: operation.record.recordName ?? "")
      }
      let record = batch.records[place]
      return .saved(record, isReadable: mayRead(record))
    }
  }

  private func failed(_ failure: Failure) -> ModifyPlan.Item {
    .failed(failure.error, current: failure.current.flatMap { mayRead($0) ? $0 : nil })
  }

  // MARK: Indexes

  /// Refuses a batch that would hold the storage's writer for long.
  ///
  /// A single operation may remove any number of rows: what was stored can always be deleted, with
  /// all that refer to it. One of the service's own erasing may write as many as it keeps.
  private func checkLinkedRows(of batch: WriteBatch) throws(ErrorDictionary) {
    let isSingle = input.operations.count == 1
    if isSingle, input.isErasing { return }
    let removed = isSingle ? 0 : batch.removedIndexEntries.count
    guard batch.linkedRowCount + removed > input.limits.linkedRowsPerRequest else { return }
    throw ErrorDictionary(
      .badRequest,
      "the records have more than \(input.limits.linkedRowsPerRequest) values, words and "
        + "references in indexes together; save fewer at a time",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  func index(
    _ record: StoredRecord,
    _ fields: [String: FieldValue],
    in batch: inout WriteBatch
  ) throws {
    if let stored = input.existing[record.key], !stored.isDeleted {
      try unindex(stored, in: &batch)
    }
    for active in input.activeIndexes[record.type] ?? [] {
      for key in active.index.keys(of: record, fields) {
        batch.addedIndexEntries.append(
          IndexEntry(type: record.type, field: active.name, value: key, key: record.key)
        )
      }
    }
  }

  private func unindex(_ stored: StoredRecord, in batch: inout WriteBatch) throws {
    guard let indexes = input.activeIndexes[stored.type] else { return }
    let fields = try stored.decodedFields()
    for active in indexes {
      for key in active.index.keys(of: stored, fields) {
        batch.removedIndexEntries.append(
          IndexEntry(type: stored.type, field: active.name, value: key, key: stored.key)
        )
      }
    }
  }
}
