import CloudKitWebServices
import Foundation

extension CKDatabase {
  /// Saves and deletes records of one zone in one request, under the given preconditions.
  ///
  /// Assets with files are uploaded first. A request with a sequence is sent again after a transient failure; an error
  /// then says that an earlier attempt may have been executed, and the caller repeats the request with its sequence.
  package func modify(
    _ modification: RecordModification
  ) async throws(CKError) -> RecordModificationResult {
    try await pinnedToAccount().modifyPinned(modification)
  }

  private func modifyPinned(
    _ modification: RecordModification
  ) async throws(CKError) -> RecordModificationResult {
    let count = modification.saves.count + modification.deletes.count
    guard count > 0 else { return RecordModificationResult(saves: [], deletes: []) }
    guard count <= RecordModification.operationLimit else {
      throw CKError(
        .limitExceeded,
        "\(count) records are too many for one request.",
        remedy: "Send at most \(RecordModification.operationLimit) at a time."
      )
    }
    var attempt = try await attempt(modification)
    // A batch with a sequence has one reply; its caller repeats it.
    guard !attempt.outdated.isEmpty, modification.sequence == nil else { return attempt.result }
    var again = modification
    if !modification.atomic {
      again.saves.removeAll { !attempt.outdated.contains($0.recordID) }
      again.deletes = []
    }
    // If the second attempt fails as a whole, the records have the errors of the first one.
    guard let second = try? await self.attempt(again).result else { return attempt.result }
    if modification.atomic { return second }
    attempt.result.replaceSaves(of: modification, by: second, of: again)
    return attempt.result
  }

  /// The outcome of one request of a modification.
  private struct Attempt {
    var result: RecordModificationResult
    /// The records whose file of an earlier upload the service does not have any more.
    var outdated: Set<CKRecord.ID> = []
  }

  private func attempt(
    _ modification: RecordModification
  ) async throws(CKError) -> Attempt {
    let transfers = try transfers()
    let uploads = uploads(of: modification.saves)
    let files = try await transfers.send(
      uploads,
      zone: modification.zoneID,
      atomic: modification.atomic
    )
    let result: RecordModificationResult
    do throws(CKError) {
      result = try await send(modification, files)
    } catch {
      if error.code != .assetNotAvailable { transfers.keep(uploads, files) }
      throw error
    }
    let errors = Dictionary(
      zip(modification.saves, result.saves).map { ($0.recordID, $1.error) }
    ) { first, _ in first }
    transfers.keep(uploads, files, results: errors)
    remember(files.stored, of: modification.saves, where: result)
    let outdated = files.reusing.filter { errors[$0]??.code == .assetNotAvailable }
    return Attempt(result: result, outdated: outdated)
  }

  /// Sends the part of a modification that can be sent.
  ///
  /// A record with a file that was not stored or with a value that can't be sent fails by itself, or with
  /// its whole atomic batch, which is not sent then.
  private func send(
    _ modification: RecordModification,
    _ files: UploadedFiles
  ) async throws(CKError) -> RecordModificationResult {
    var sent = modification
    sent.saves = []
    var operations: [RecordOperation] = []
    var failures: [Int: CKError] = [:]
    for (index, save) in modification.saves.enumerated() {
      do throws(CKError) {
        if let error = files.errors[save.recordID] { throw error }
        operations.append(try operation(save, uploads: files.stored))
        sent.saves.append(save)
      } catch {
        failures[index] = error
      }
    }
    for delete in modification.deletes { operations.append(operation(delete)) }
    if modification.atomic, !failures.isEmpty {
      return RecordModificationResult(refusing: modification, failures)
    }
    guard !operations.isEmpty else {
      return RecordModificationResult(saves: [], deletes: []).inserting(failures)
    }
    return try await request(sent, operations).inserting(failures)
  }

  private func request(
    _ modification: RecordModification,
    _ operations: [RecordOperation]
  ) async throws(CKError) -> RecordModificationResult {
    let reply = try await container.client().call(
      .modifyRecords,
      scope: databaseScope,
      body: ModifyRecordsRequest(
        operations: operations,
        zoneID: mapping.wire(modification.zoneID),
        atomic: modification.atomic,
        // The reply needs no fields: the saved values are those that were sent.
        desiredKeys: [],
        clientSequence: modification.sequence
      ),
      repeatable: modification.sequence != nil,
      zone: modification.zoneID,
      as: RecordsResponse.self
    )
    guard reply.records.count == operations.count else {
      throw CKError(
        inconclusive:
          "The service answered \(reply.records.count) of \(operations.count) operations."
      )
    }
    return try await result(of: reply, to: modification)
  }

  private func uploads(of saves: [RecordModification.Save]) -> [AssetTransfers.Upload] {
    var uploads: [AssetTransfers.Upload] = []
    for save in saves {
      for (key, field) in save.fields.sorted(by: { $0.key < $1.key }) {
        for asset in field?.value.assets ?? [] {
          guard let url = asset.fileURL else { continue }
          uploads.append(
            AssetTransfers.Upload(
              asset: asset,
              fileURL: url,
              recordID: save.recordID,
              recordType: save.recordType,
              fieldName: key
            )
          )
        }
      }
    }
    return uploads
  }

  private func operation(
    _ save: RecordModification.Save,
    uploads: [ObjectIdentifier: CKAsset.StoredFile]
  ) throws(CKError) -> RecordOperation {
    var record = RecordDictionary(
      recordName: save.recordID.recordName,
      recordType: save.recordType
    )
    var fields: [String: FieldValue] = [:]
    for (key, field) in save.fields {
      fields[key] = try mapping.wire(field, key: key, of: save.recordID, uploads: uploads)
    }
    record.fields = fields
    record.parent = save.parent.map { ParentDictionary(recordName: $0.recordID.recordName) }
    record.removesParent = save.removesParent
    record.sharing = save.sharing
    if save.becomesRoot { record.createShortGUID = true }
    switch save.condition {
    case .isNew:
      // A new record has no fields to remove.
      record.fields = fields.filter { $0.value.content != .null }
      return RecordOperation(operationType: .create, record: record)
    case .hasTag(let tag):
      record.recordChangeTag = tag
      return RecordOperation(operationType: .update, record: record)
    case .none:
      return RecordOperation(operationType: .forceUpdate, record: record)
    }
  }

  private func operation(_ delete: RecordModification.Delete) -> RecordOperation {
    let record = RecordDictionary(
      recordName: delete.recordID.recordName,
      recordChangeTag: delete.changeTag
    )
    return RecordOperation(
      operationType: delete.changeTag == nil ? .forceDelete : .delete,
      record: record
    )
  }

  private func result(
    of reply: RecordsResponse,
    to modification: RecordModification
  ) async throws(CKError) -> RecordModificationResult {
    let zoneID = modification.zoneID
    let saveCount = modification.saves.count
    var saves = reply.records.prefix(saveCount).map {
      item -> Result<CKRecord.SystemFields, CKError> in
      switch item {
      case .success(let record): .success(mapping.systemFields(record, in: zoneID))
      case .failure(let error): .failure(CKError(error, mapping: mapping, zone: zoneID))
      }
    }
    var deletes = reply.records.dropFirst(saveCount).map { item -> Result<Void, CKError> in
      switch item {
      case .success: .success(())
      case .failure(let error): .failure(CKError(error, mapping: mapping, zone: zoneID))
      }
    }
    let servers = try await serverRecords(
      for: modification.saves.map(\.recordID) + modification.deletes.map(\.recordID),
      errors: saves.map(\.error) + deletes.map(\.error)
    )
    for (index, save) in modification.saves.enumerated() {
      guard case .failure(let error) = saves[index] else { continue }
      saves[index] = .failure(
        error.adding(CKRecordChangedErrorServerRecordKey, servers[save.recordID])
      )
    }
    for (index, delete) in modification.deletes.enumerated() {
      guard case .failure(let error) = deletes[index] else { continue }
      deletes[index] = .failure(
        error.adding(CKRecordChangedErrorServerRecordKey, servers[delete.recordID])
      )
    }
    var result = RecordModificationResult(saves: saves, deletes: deletes)
    for (save, item) in zip(modification.saves, reply.records) where save.sharing != nil {
      if case .success(let record) = item {
        result.shares[save.recordID] = mapping.sharing(record)
      }
    }
    return result
  }

  /// The server's versions of the conflicting records, with their files.
  ///
  /// Watershed's service sends them with the conflict; from another service they are looked up.
  private func serverRecords(
    for recordIDs: [CKRecord.ID],
    errors: [CKError?]
  ) async throws(CKError) -> [CKRecord.ID: CKRecord] {
    var known: [CKRecord.ID: CKRecord] = [:]
    var missing: [CKRecord.ID] = []
    for (recordID, error) in zip(recordIDs, errors) {
      guard let error, error.code == .serverRecordChanged else { continue }
      if let record = error.serverRecord {
        known[recordID] = record
      } else {
        missing.append(recordID)
      }
    }
    if !missing.isEmpty {
      // If the look-up fails, the conflict is reported without the server's record.
      for (recordID, result) in (try? await lookUp(missing, desiredKeys: nil)) ?? [:] {
        if case .success(let record) = result { known[recordID] = record }
      }
    }
    do {
      _ = try await (try transfers()).fetch(filesOf: Array(known.values))
    } catch  where error.code == .operationCancelled {
      // The outcome of the save is known; a conflict is reported without the files of the server's record.
    }
    return known
  }

  /// Stores the server's file information in the assets of the saved records.
  private func remember(
    _ uploads: [ObjectIdentifier: CKAsset.StoredFile],
    of saves: [RecordModification.Save],
    where result: RecordModificationResult
  ) {
    guard !uploads.isEmpty else { return }
    for (save, outcome) in zip(saves, result.saves) {
      guard case .success = outcome else { continue }
      for field in save.fields.values {
        for asset in field?.value.assets ?? [] {
          guard var file = uploads[ObjectIdentifier(asset)] else { continue }
          // An upload receipt is valid for one save.
          file.receipt = nil
          asset.storedFile = file
        }
      }
    }
  }
}

extension Result {
  /// The error, where there is one.
  var error: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}
