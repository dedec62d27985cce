import CloudKitWebServices
import Foundation

extension CKDatabase {
  // MARK: Fetching

  /// Fetches a record with its assets.
  public func record(for recordID: CKRecord.ID) async throws -> CKRecord {
    guard let result = try await records(for: [recordID])[recordID] else {
      throw CKError(.unknownItem, "Record not found: \(recordID.recordName)")
    }
    return try result.get()
  }

  /// Fetches records with their assets; each has a result of its own.
  public func records(
    for ids: [CKRecord.ID],
    desiredKeys: [CKRecord.FieldKey]? = nil
  ) async throws -> [CKRecord.ID: Result<CKRecord, any Error>] {
    let found = try await lookUp(ids, desiredKeys: desiredKeys)
    return try await withFiles(found).mapValues { $0.mapError { $0 as any Error } }
  }

  /// Looks records up, without downloading their files.
  package func lookUp(
    _ recordIDs: [CKRecord.ID],
    desiredKeys: [CKRecord.FieldKey]?
  ) async throws(CKError) -> [CKRecord.ID: Result<CKRecord, CKError>] {
    var results: [CKRecord.ID: Result<CKRecord, CKError>] = [:]
    for (zoneID, ids) in Self.grouped(recordIDs, by: \.zoneID) {
      var slices = Array(Self.slices(ids, of: RecordModification.operationLimit).reversed())
      while let slice = slices.popLast() {
        let reply: RecordsResponse
        do {
          reply = try await lookUp(slice, in: zoneID, desiredKeys: desiredKeys)
        } catch  where error.code == .limitExceeded && slice.count > 1 {
          // One reply can't hold all of these records: the slice is split in two.
          slices.append(Array(slice[(slice.count / 2)...]))
          slices.append(Array(slice[..<(slice.count / 2)]))
          continue
        }
        for (recordID, item) in zip(slice, reply.records) {
          results[recordID] = result(item, in: zoneID)
        }
      }
    }
    return results
  }

  private func lookUp(
    _ recordIDs: [CKRecord.ID],
    in zoneID: CKRecordZone.ID,
    desiredKeys: [CKRecord.FieldKey]?
  ) async throws(CKError) -> RecordsResponse {
    let reply = try await container.client().call(
      .lookupRecords,
      scope: databaseScope,
      body: LookupRecordsRequest(
        records: recordIDs.map { LookupRecord(recordName: $0.recordName) },
        zoneID: mapping.wire(zoneID),
        desiredKeys: desiredKeys
      ),
      repeatable: true,
      zone: zoneID,
      as: RecordsResponse.self
    )
    guard reply.records.count == recordIDs.count else {
      throw CKError(
        inconclusive:
          "The service answered \(reply.records.count) of \(recordIDs.count) look-ups."
      )
    }
    return reply
  }

  func result(
    _ item: ItemResult<RecordDictionary>,
    in zoneID: CKRecordZone.ID
  ) -> Result<CKRecord, CKError> {
    switch item {
    case .success(let record):
      if record.deleted == true {
        return .failure(CKError(.unknownItem, "Record not found: \(record.recordName ?? "")"))
      }
      do throws(CKError) {
        return .success(try mapping.record(record, in: zoneID))
      } catch {
        return .failure(error)
      }
    case .failure(let error):
      return .failure(CKError(error, mapping: mapping, zone: zoneID))
    }
  }

  /// Downloads the files of records; a record with a missing file becomes an error.
  func withFiles<Key: Hashable>(
    _ results: [Key: Result<CKRecord, CKError>]
  ) async throws(CKError) -> [Key: Result<CKRecord, CKError>] {
    let records = results.values.compactMap { try? $0.get() }
    let errors = try await (try transfers()).fetch(filesOf: records)
    guard !errors.isEmpty else { return results }
    return results.mapValues { result in
      guard case .success(let record) = result, let error = errors[record.recordID] else {
        return result
      }
      return .failure(error)
    }
  }

  // MARK: Saving and deleting

  /// Saves a record, if the server does not have a newer version.
  @discardableResult
  public func save(_ record: CKRecord) async throws -> CKRecord {
    let results = try await modifyRecords(saving: [record], deleting: [])
    guard let result = results.saveResults[record.recordID] else {
      throw CKError(.internalError, "The service did not answer the save.")
    }
    return try result.get()
  }

  /// Deletes a record, regardless of the server's version.
  @discardableResult
  public func deleteRecord(withID recordID: CKRecord.ID) async throws -> CKRecord.ID {
    let results = try await modifyRecords(saving: [], deleting: [recordID])
    try results.deleteResults[recordID]?.get()
    return recordID
  }

  /// Saves and deletes records; each has a result of its own.
  ///
  /// In a custom zone an atomic call saves all of the zone's records or none of them. A saved
  /// record is the given object, with its new change tag. A call that is not atomic, or is in the
  /// default zone, is split into requests of 200 records. A record with a file or a value that can't
  /// be sent fails by itself; in an atomic call the zone's other records then fail with
  /// `batchRequestFailed`. A ``CKShare`` is always saved as with `ifServerRecordUnchanged`.
  ///
  /// Differs from CloudKit: an atomic call takes up to 200 records of a zone, the limit of one
  /// request of the web services; more are `limitExceeded`. Apple's systems take 400 at a time.
  public func modifyRecords(
    saving recordsToSave: [CKRecord],
    deleting recordIDsToDelete: [CKRecord.ID],
    savePolicy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged,
    atomically: Bool = true
  ) async throws -> (
    saveResults: [CKRecord.ID: Result<CKRecord, any Error>],
    deleteResults: [CKRecord.ID: Result<Void, any Error>]
  ) {
    var saveResults: [CKRecord.ID: Result<CKRecord, any Error>] = [:]
    var deleteResults: [CKRecord.ID: Result<Void, any Error>] = [:]
    let saves = Self.grouped(recordsToSave, by: \.recordID.zoneID)
    let deletes = Self.grouped(recordIDsToDelete, by: \.zoneID)
    var zoneIDs = saves.map(\.0)
    for (zoneID, _) in deletes where !zoneIDs.contains(zoneID) { zoneIDs.append(zoneID) }
    var parts: [(part: Part, zoneID: CKRecordZone.ID, isAtomic: Bool)] = []
    for zoneID in zoneIDs {
      let records = saves.first { $0.0 == zoneID }?.1 ?? []
      let recordIDs = deletes.first { $0.0 == zoneID }?.1 ?? []
      let isAtomic = atomically && zoneID.zoneName != CKRecordZone.ID.defaultZoneName
      for part in try Self.parts(saving: records, deleting: recordIDs, atomic: isAtomic) {
        parts.append((part, zoneID, isAtomic))
      }
    }
    // The parts are one operation of one account: they fail if another user signs in between two of
    // them.
    let database = pinnedToAccount()
    /// An error that every later request would also meet: transient, or cancellation.
    var abort: CKError?
    for (part, zoneID, isAtomic) in parts {
      do throws(CKError) {
        if let abort { throw abort }
        let results = try await database.modify(
          part,
          in: zoneID,
          policy: savePolicy,
          atomic: isAtomic
        )
        saveResults.merge(results.saves) { _, new in new }
        deleteResults.merge(results.deletes) { _, new in new }
      } catch {
        let meetsAll = error.isTransient || error.code == .operationCancelled
        // Such an error of the first request is thrown. Once records have results, it becomes the
        // result of the others.
        let isFirst = saveResults.isEmpty && deleteResults.isEmpty
        guard parts.count > 1, !(meetsAll && isFirst) else { throw error }
        if meetsAll { abort = error }
        for record in part.records { saveResults[record.recordID] = .failure(error) }
        for recordID in part.recordIDs { deleteResults[recordID] = .failure(error) }
      }
    }
    return (saveResults, deleteResults)
  }

  private typealias Part = (records: [CKRecord], recordIDs: [CKRecord.ID])

  private static func parts(
    saving records: [CKRecord],
    deleting recordIDs: [CKRecord.ID],
    atomic: Bool
  ) throws(CKError) -> [Part] {
    let limit = RecordModification.operationLimit
    guard records.count + recordIDs.count > limit else { return [(records, recordIDs)] }
    guard !atomic else {
      throw CKError(
        .limitExceeded,
        "\(records.count + recordIDs.count) records are too many for one atomic request.",
        remedy: "Send at most \(limit) at a time, or not atomically."
      )
    }
    return slices(records, of: limit).map { ($0, []) }
      + slices(recordIDs, of: limit).map { ([], $0) }
  }

  private func modify(
    _ part: Part,
    in zoneID: CKRecordZone.ID,
    policy: CKModifyRecordsOperation.RecordSavePolicy,
    atomic: Bool
  ) async throws(CKError) -> (
    saves: [CKRecord.ID: Result<CKRecord, any Error>],
    deletes: [CKRecord.ID: Result<Void, any Error>]
  ) {
    let sent = part.records.map(\.systemFields)
    let shared = part.records.map { ($0 as? CKShare)?.sharingState.content }
    let saves = zip(part.records, sent).map { Self.save(of: $0, $1, policy: policy) }
    let result = try await modify(
      RecordModification(
        zoneID: zoneID,
        saves: saves,
        deletes: part.recordIDs.map { RecordModification.Delete(recordID: $0, changeTag: nil) },
        atomic: atomic
      )
    )
    var saveResults: [CKRecord.ID: Result<CKRecord, any Error>] = [:]
    for (index, record) in part.records.enumerated() {
      switch result.saves[index] {
      case .success(let system):
        record.adoptSaved(system: system, sent: sent[index], fields: saves[index].fields)
        if let share = record as? CKShare, let content = shared[index],
          let saved = result.shares[share.recordID]
        {
          share.adopt(saved, sent: content)
        }
        saveResults[record.recordID] = .success(record)
      case .failure(var error):
        if error.code == .serverRecordChanged {
          error = error.adding(CKRecordChangedErrorClientRecordKey, record)
            .adding(CKRecordChangedErrorAncestorRecordKey, record.ancestor())
        }
        saveResults[record.recordID] = .failure(error)
      }
    }
    var deleteResults: [CKRecord.ID: Result<Void, any Error>] = [:]
    for (recordID, outcome) in zip(part.recordIDs, result.deletes) {
      deleteResults[recordID] = outcome.mapError { $0 as any Error }
    }
    return (saveResults, deleteResults)
  }

  private static func save(
    of record: CKRecord,
    _ system: CKRecord.SystemFields,
    policy: CKModifyRecordsOperation.RecordSavePolicy
  ) -> RecordModification.Save {
    var fields = record.changedFields()
    // As CloudKit documents it: a share is saved so regardless of the operation's policy.
    let policy = record is CKShare ? .ifServerRecordUnchanged : policy
    let condition: RecordModification.Save.Condition
    switch policy {
    case .ifServerRecordUnchanged:
      condition = system.recordChangeTag.map { .hasTag($0) } ?? .isNew
    case .changedKeys:
      condition = .none
    case .allKeys:
      condition = .none
      for (key, field) in record.fields { fields[key] = .some(field) }
    }
    if condition == .isNew {
      for (key, field) in record.fields { fields[key] = .some(field) }
    }
    var save = RecordModification.Save(
      recordType: record.recordType,
      recordID: record.recordID,
      condition: condition,
      fields: fields,
      // Also with all keys, only a changed parent is sent: an older copy would move a record back into a share that
      // another device has taken it out of.
      parent: system.isParentChanged ? system.parent : nil
    )
    save.removesParent =
      system.isParentChanged && system.parent == nil && system.recordChangeTag != nil
    save.becomesRoot = system.isShareChanged
    save.sharing = (record as? CKShare)?.wireSharing()
    return save
  }

  // MARK: Batches

  /// The elements grouped by a key, in the order in which the keys first appear.
  static func grouped<Element, Key: Hashable>(
    _ elements: [Element],
    by key: (Element) -> Key
  ) -> [(Key, [Element])] {
    var order: [Key] = []
    var groups: [Key: [Element]] = [:]
    for element in elements {
      let key = key(element)
      if groups[key] == nil { order.append(key) }
      groups[key, default: []].append(element)
    }
    return order.map { ($0, groups[$0] ?? []) }
  }

  static func slices<Element>(_ elements: [Element], of count: Int) -> [[Element]] {
    stride(from: 0, to: elements.count, by: count).map {
      Array(elements[$0..<min($0 + count, elements.count)])
    }
  }
}
