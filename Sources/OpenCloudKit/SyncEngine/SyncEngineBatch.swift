/// How an engine's batch is sent: zone by zone, in as many requests as the service needs.
struct SyncEngineBatch {
  /// The changes of one request.
  private struct Part {
    var records: [CKRecord]
    var recordIDs: [CKRecord.ID]

    var count: Int { records.count + recordIDs.count }

    /// The changes in two parts, in their order.
    var halves: (Part, Part) {
      let middle = count / 2
      let saves = min(middle, records.count)
      let deletes = middle - saves
      return (
        Part(
          records: Array(records.prefix(saves)),
          recordIDs: Array(recordIDs.prefix(deletes))
        ),
        Part(
          records: Array(records.dropFirst(saves)),
          recordIDs: Array(recordIDs.dropFirst(deletes))
        )
      )
    }
  }

  /// The results of the changes that were sent.
  private(set) var saves: [CKRecord.ID: Result<CKRecord, CKError>] = [:]
  private(set) var deletes: [CKRecord.ID: Result<Void, CKError>] = [:]
  /// The error of a request as a whole.
  private(set) var abort: CKError?
  /// Whether the service has answered a request of the batch.
  private var hasAnswer = false
  /// Whether the batch was ended although the service may answer: it refused every request.
  private(set) var isStopped = false
  /// The number of requests that the service refused as a whole.
  private var refusals = 0
  /// The number of consecutive requests at which the service itself failed.
  private var failuresInRow = 0
  /// The last of these failures.
  private var serviceFailure: CKError?

  /// The number of consecutive failures after which the service counts as unavailable; fewer are needed to find the
  /// change at which it fails among those of a request.
  private static let mostFailuresInRow = 12
  /// The number of refused requests after which a service that has accepted none is not asked for the rest.
  private static let mostRefusals = 32

  /// Sends a batch until the service is unreachable or refuses everything; changes that were not sent have no result.
  init(_ batch: CKSyncEngine.RecordZoneChangeBatch, to database: CKDatabase) async {
    let records = CKDatabase.grouped(batch.recordsToSave, by: \.recordID.zoneID)
    let recordIDs = CKDatabase.grouped(batch.recordIDsToDelete, by: \.zoneID)
    var zoneIDs = records.map(\.0)
    for (zoneID, _) in recordIDs where !zoneIDs.contains(zoneID) { zoneIDs.append(zoneID) }
    for zoneID in zoneIDs {
      let part = Part(
        records: records.first { $0.0 == zoneID }?.1 ?? [],
        recordIDs: recordIDs.first { $0.0 == zoneID }?.1 ?? []
      )
      let isAtomic =
        batch.atomicByZone && zoneID.zoneName != CKRecordZone.ID.defaultZoneName
      guard await send(part, atomic: isAtomic, to: database) else { return }
    }
    // Where no request succeeded, the service is the cause and not the changes.
    if !hasAnswer, let serviceFailure { abort = serviceFailure }
  }

  /// Sends the changes of a zone; returns whether the next zone can be tried.
  private mutating func send(
    _ whole: Part,
    atomic: Bool,
    to database: CKDatabase
  ) async -> Bool {
    var parts = [whole]
    while let part = parts.popLast() {
      if !atomic, part.count > RecordModification.operationLimit {
        let (first, second) = part.halves
        parts += [second, first]
        continue
      }
      do {
        let results = try await database.modifyRecords(
          saving: part.records,
          deleting: part.recordIDs,
          savePolicy: .ifServerRecordUnchanged,
          atomically: atomic
        )
        hasAnswer = true
        failuresInRow = 0
        for (recordID, result) in results.saveResults {
          saves[recordID] = result.mapError { CKError(transport: $0) }
        }
        for (recordID, result) in results.deleteResults {
          deletes[recordID] = result.mapError { CKError(transport: $0) }
        }
      } catch {
        let error = CKError(transport: error)
        if error.code == .limitExceeded, !atomic, part.count > 1 {
          // The app does not choose the size of the engine's batches.
          let (first, second) = part.halves
          parts += [second, first]
          continue
        }
        let isOfChange = note(error)
        let isRefused = isRefusal(error)
        if isRefused, !hasAnswer, refusals >= Self.mostRefusals, part.count > 1 || !parts.isEmpty {
          // Nothing shows that single changes are the reason: those that were not refused alone stay pending.
          if part.count == 1 { fail(part, error) }
          abort = error
          isStopped = true
          return false
        }
        if isOfChange || isRefused, !atomic, part.count > 1 {
          // One of the changes makes the service fail or refuse the request; the others must not wait for it.
          let (first, second) = part.halves
          parts += [second, first]
          continue
        }
        if !isOfChange { abort = error }
        fail(part, error)
        if !isOfChange, SyncEngineState.retries(error) { return false }
      }
    }
    return true
  }

  /// Sets the error as the result of each change of a part.
  private mutating func fail(_ part: Part, _ error: CKError) {
    for record in part.records { saves[record.recordID] = .failure(error) }
    for recordID in part.recordIDs { deletes[recordID] = .failure(error) }
  }

  /// Notes the error of a request; returns whether the service refused the request, for which one change may be
  /// the reason.
  private mutating func isRefusal(_ error: CKError) -> Bool {
    guard !error.isInconclusive,
      error.code == .invalidArguments || error.code == .serverRejectedRequest
    else { return false }
    refusals += 1
    return true
  }

  /// Notes the error of a request; returns whether its changes may be the cause of a failure of the service.
  private mutating func note(_ error: CKError) -> Bool {
    guard error.isParkable else { return false }
    serviceFailure = error
    failuresInRow += 1
    return failuresInRow < Self.mostFailuresInRow
  }
}
