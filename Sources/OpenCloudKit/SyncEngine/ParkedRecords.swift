/// Decides when an engine tries parked records again: those with a file that could not be downloaded,
/// or with a change at which the service fails.
///
/// A file that is damaged on the service fails with each attempt, after a download of its full
/// size: these retries have their own delays, so that they neither delay other records nor use up
/// bandwidth.
struct ParkedRecordRetries: Sendable {
  /// From half a minute to an hour.
  private static let pauses = RetryPolicy(attempts: .max, firstDelay: 30, longestDelay: 3600)

  private var attempts = 0
  private var next = 0.0

  /// Whether the records are tried now; a fetch that the app calls always tries them.
  func areDue(at time: Double, _ reason: CKSyncEngine.SyncReason) -> Bool {
    reason == .manual || time >= next
  }

  /// Plans the next attempt after a fetch that left records parked; returns its time.
  ///
  /// The delay grows with the attempts that were made.
  mutating func plan(at time: Double, haveTried: Bool, jitter: Double) -> Double {
    if haveTried || attempts == 0 { attempts += 1 }
    if haveTried || next <= time {
      next = time + Self.pauses.delay(afterAttempt: attempts, jitter: jitter)
    }
    return next
  }

  /// Resets the delays: no record is parked any more.
  mutating func succeed() { self = ParkedRecordRetries() }
}

extension CKSyncEngine {
  /// Passes a page of a zone's changes to the delegate.
  ///
  /// A record with a file that could not be downloaded is parked: the delegate keeps its version,
  /// the zone continues, and the record is fetched on its own later. Returns the errors.
  func deliver(_ page: CKDatabase.ZoneChangesPage) async -> [CKRecord.ID: CKError] {
    let whole = page.records.filter { page.failures[$0.recordID] == nil }
    let broken = page.records.filter { page.failures[$0.recordID] != nil }
    TemporaryAssets.discard(filesOf: broken)
    if !whole.isEmpty || !page.deletions.isEmpty {
      await deliver(
        .fetchedRecordZoneChanges(
          Event.FetchedRecordZoneChanges(
            modifications: whole.map { CKDatabase.RecordZoneChange.Modification(record: $0) },
            deletions: page.deletions.map {
              CKDatabase.RecordZoneChange.Deletion(
                recordID: $0.recordID,
                recordType: $0.recordType ?? ""
              )
            }
          )
        )
      )
    }
    let (parked, settled) = (
      page.failures.keys.sorted { $0.recordName < $1.recordName },
      whole.map(\.recordID) + page.deletions.map(\.recordID)
    )
    state.update { $0.park(parked, unparking: settled) }
    return page.failures
  }

  /// Fetches the records that were parked before this fetch, zone by zone.
  ///
  /// Returns the errors of those that stay parked.
  func fetchParked(
    _ recordIDs: [CKRecord.ID],
    of database: CKDatabase
  ) async throws(CKError) -> [AnyHashable: any Error] {
    var failures: [AnyHashable: any Error] = [:]
    // The feed may have delivered newer versions since.
    let waiting = Set(recordIDs).intersection(state.value.parkedRecords)
    for (zoneID, all) in CKDatabase.grouped(recordIDs.filter(waiting.contains), by: \.zoneID) {
      await deliver(.willFetchRecordZoneChanges(Event.WillFetchRecordZoneChanges(zoneID: zoneID)))
      var errors: [CKRecord.ID: CKError] = [:]
      var failure: CKError?
      for slice in CKDatabase.slices(all, of: RecordModification.operationLimit) {
        do throws(CKError) {
          errors.merge(try await fetchParkedSlice(slice, of: database)) { first, _ in first }
        } catch {
          failure = error
          break
        }
      }
      if failure == nil, !errors.isEmpty { failure = .partialFailure(errors) }
      await deliver(
        .didFetchRecordZoneChanges(
          Event.DidFetchRecordZoneChanges(zoneID: zoneID, error: failure)
        )
      )
      await deliverState()
      if let failure {
        if SyncEngineState.retries(failure) { throw failure }
        failures[zoneID] = failure
      }
    }
    return failures
  }

  private func fetchParkedSlice(
    _ recordIDs: [CKRecord.ID],
    of database: CKDatabase
  ) async throws(CKError) -> [CKRecord.ID: CKError] {
    let found = try await database.lookUp(recordIDs, desiredKeys: nil)
    var page = CKDatabase.ZoneChangesPage(
      records: found.values.compactMap { try? $0.get() },
      deletions: [],
      failures: [:],
      changeToken: CKServerChangeToken(syncToken: ""),
      moreComing: false
    )
    page.failures = try await database.fetchFiles(of: page.records)
    if Task.isCancelled {
      TemporaryAssets.discard(filesOf: page.records)
      throw CKError(transport: CancellationError())
    }
    var errors = await deliver(page)
    var gone: [CKRecord.ID] = []
    for (recordID, result) in found {
      guard let error = result.error else { continue }
      switch error.code {
      // The zone's feed reports the deletion.
      case .unknownItem, .zoneNotFound, .userDeletedZone: gone.append(recordID)
      default: errors[recordID] = error
      }
    }
    let settled = gone
    state.update { $0.park([], unparking: settled) }
    return errors
  }
}

extension CKError {
  /// Whether the service itself failed at a request: where other requests succeed, its changes wait
  /// for a retry of their own.
  var isParkable: Bool { isServiceFailure && isInconclusive }

  /// Whether a failed fetch of a zone does not show that the other zones can't be fetched.
  var mayBeOfOneZone: Bool { isInconclusive || code == .zoneBusy }

  /// Whether a fetch ends with this error: its other requests would fail too.
  var endsFetch: Bool { meetsEachRequest || code == .operationCancelled }

  /// Whether the error concerns only changes that wait for a retry of their own.
  package var isOfParkedChangesOnly: Bool {
    guard code == .partialFailure, let items = partialErrorsByItemID, !items.isEmpty else {
      return false
    }
    return items.values.allSatisfy { ($0 as? CKError)?.isParkable == true }
  }

  /// Whether the error concerns single records only, not a zone or the whole request.
  var isOfRecordsOnly: Bool {
    guard code == .partialFailure, let items = partialErrorsByItemID, !items.isEmpty else {
      return false
    }
    return items.allSatisfy { id, error in
      id.base is CKRecord.ID || (error as? CKError)?.isOfRecordsOnly == true
    }
  }
}
