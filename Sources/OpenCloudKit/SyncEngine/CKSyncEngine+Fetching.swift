import CloudKitWebServices

// How an engine fetches. `SyncEngineState` decides what to fetch next.
extension CKSyncEngine {
  /// Fetches the changes and passes them to the delegate.
  func fetch(_ context: FetchChangesContext) async throws(CKError) {
    let database = self.database.pinned(to: try await ensureAccount())
    await deliver(.willFetchChanges(Event.WillFetchChanges(context: context)))
    let parked = parkedRecords(context)
    var failure: CKError?
    var haveTriedParked = false
    do throws(CKError) {
      let listFailure = try await fetchZoneList(context, of: database)
      let zones = await zonesResult(context, of: database)
      // A zone that can't be fetched does not hold up the parked records of others.
      if let error = zones.error, error.endsFetch { throw error }
      haveTriedParked = !parked.isEmpty
      let records = try await fetchParked(parked, of: database)
      var failures = try zones.get()
      failures.merge(records) { first, _ in first }
      if !failures.isEmpty { throw .partialFailure(failures) }
      if let listFailure { throw listFailure }
    } catch {
      failure = error
    }
    planParkedRetry(haveTried: haveTriedParked)
    await deliverState()
    await deliver(.didFetchChanges(Event.DidFetchChanges(context: context)))
    if let failure { throw failure }
  }

  /// The options for the next request, which the delegate may change.
  private func nextOptions(_ context: FetchChangesContext) async -> FetchChangesOptions {
    await delegate?.nextFetchChangesOptions(context, syncEngine: self) ?? context.options
  }

  private func checkCancellation() throws(CKError) {
    if Task.isCancelled { throw CKError(transport: CancellationError()) }
  }

  // MARK: The database's feed

  /// Fetches which zones changed; returns the error of an item that names no zone.
  ///
  /// The token stays where it is then, so that the change of that zone is listed again. The other changed zones
  /// are fetched; deletions wait, since they would be reported at each fetch, also for a zone that the app has
  /// created again meanwhile.
  private func fetchZoneList(
    _ context: FetchChangesContext,
    of database: CKDatabase
  ) async throws(CKError) -> CKError? {
    var page: CKDatabase.ChangedZones
    repeat {
      try checkCancellation()
      let options = await nextOptions(context)
      page = try await zoneListPage(of: database, group: options.operationGroup)
      if page.failure != nil { page.deletions = [] }
      if !page.changed.isEmpty || !page.deleted.isEmpty {
        await deliver(
          .fetchedDatabaseChanges(
            Event.FetchedDatabaseChanges(
              modifications: page.changed.map {
                CKDatabase.DatabaseChange.Modification(zoneID: $0)
              },
              deletions: page.deletions
            )
          )
        )
      }
      let fetched = page
      if let failure = fetched.failure {
        state.update { state in
          for zoneID in fetched.changed { state.noteChanges(in: zoneID) }
        }
        return failure
      }
      state.update {
        $0.didFetch(
          changed: fetched.changed,
          deleted: fetched.deleted,
          token: fetched.changeToken.syncToken
        )
      }
      await deliverState()
    } while page.moreComing
    await reportUnconfirmedZones()
    return nil
  }

  /// Reports zones as deleted that a listing from the beginning of the feed did not contain.
  private func reportUnconfirmedZones() async {
    let gone = state.value.unconfirmedZones
    guard !gone.isEmpty else { return }
    await deliver(
      .fetchedDatabaseChanges(
        Event.FetchedDatabaseChanges(
          modifications: [],
          deletions: gone.map { CKDatabase.DatabaseChange.Deletion(zoneID: $0, reason: .deleted) }
        )
      )
    )
    state.update { state in
      for zoneID in gone { state.didDelete(zoneID) }
    }
    await deliverState()
  }

  /// A page of the database's feed; from its beginning if the token has expired.
  ///
  /// A database's token expires only if the service was restored from an older copy of its data.
  /// For a private database no zone is reported as deleted then: this device may have the only copy
  /// of the data that the service lost.
  private func zoneListPage(
    of database: CKDatabase,
    group: CKOperationGroup
  ) async throws(CKError) -> CKDatabase.ChangedZones {
    let database = database.configured(configuration: nil, group: group)
    let token = state.value.databaseToken
    do {
      return try await database.changedZonesPage(
        since: token.map(CKServerChangeToken.init(syncToken:))
      )
    } catch {
      guard error.code == .changeTokenExpired, token != nil else { throw error }
      let isExplained = error.changeTokenCause != nil
      state.update { $0.restartFeeds(database.databaseScope, keepingZones: isExplained) }
      // The service may have lost the subscription, which a scheduled fetch ensures.
      request(.fetch)
      return try await database.changedZonesPage(since: nil)
    }
  }

  // MARK: The zones' feeds

  private func zonesResult(
    _ context: FetchChangesContext,
    of database: CKDatabase
  ) async -> Result<[AnyHashable: any Error], CKError> {
    do throws(CKError) {
      return .success(try await fetchZones(context, of: database))
    } catch {
      return .failure(error)
    }
  }

  private func fetchZones(
    _ context: FetchChangesContext,
    of database: CKDatabase
  ) async throws(CKError) -> [AnyHashable: any Error] {
    var done: Set<CKRecordZone.ID> = []
    var failures: [AnyHashable: any Error] = [:]
    var progress = ZoneProgress()
    while true {
      try checkCancellation()
      let options = await nextOptions(context)
      guard let zoneID = state.value.nextZone(options, done: done) else { break }
      done.insert(zoneID)
      await deliver(.willFetchRecordZoneChanges(Event.WillFetchRecordZoneChanges(zoneID: zoneID)))
      var failure: CKError?
      do throws(CKError) {
        let records = try await fetchZone(zoneID, of: database, context, options)
        if !records.isEmpty { throw .partialFailure(records) }
      } catch {
        failure = error
        failures[zoneID] = error
        // The database's feed reports the deletion, or the zone was created again.
        if error.code == .zoneNotFound || error.code == .userDeletedZone {
          state.update { $0.didMiss(zoneID) }
        }
      }
      await deliver(
        .didFetchRecordZoneChanges(
          Event.DidFetchRecordZoneChanges(zoneID: zoneID, error: failure)
        )
      )
      // A zone that takes too long to read may fail each time: the next fetch begins with the others.
      if let failure, SyncEngineState.retries(failure), !failure.endsFetch {
        state.update { $0.postpone(zoneID) }
      }
      await deliverState()
      try progress.note(failure)
    }
    try progress.finish()
    return failures
  }

  /// The zones at which the service failed in one fetch.
  private struct ZoneProgress {
    /// The number of consecutive failures after which the service counts as unavailable.
    private static let mostFailuresInRow = 12

    private var hasAnswer = false
    private var failuresInRow = 0
    private var last: CKError?

    /// Notes the outcome of a zone; throws an error that the other zones would meet too.
    mutating func note(_ failure: CKError?) throws(CKError) {
      guard let failure, SyncEngineState.retries(failure) else {
        hasAnswer = true
        failuresInRow = 0
        return
      }
      failuresInRow += 1
      last = failure
      guard failure.mayBeOfOneZone, failuresInRow < Self.mostFailuresInRow else { throw failure }
    }

    /// Throws the last failure if the service answered for no zone: it is the cause then, and not a zone.
    func finish() throws(CKError) {
      if !hasAnswer, let last { throw last }
    }
  }

  /// Fetches a zone's changes; returns the errors of records with a file that could not be
  /// downloaded.
  private func fetchZone(
    _ zoneID: CKRecordZone.ID,
    of database: CKDatabase,
    _ context: FetchChangesContext,
    _ firstOptions: FetchChangesOptions
  ) async throws(CKError) -> [AnyHashable: any Error] {
    var options = firstOptions
    var failures: [AnyHashable: any Error] = [:]
    while true {
      let page = try await zonePage(zoneID, of: database, context, options)
      if Task.isCancelled {
        TemporaryAssets.discard(filesOf: page.records)
        throw CKError(transport: CancellationError())
      }
      for (recordID, error) in await deliver(page) { failures[recordID] = error }
      let token = page.changeToken.syncToken
      let moreComing = page.moreComing
      state.update { $0.didFetch(zoneID, token: token, moreComing: moreComing) }
      await deliverState()
      guard moreComing else { return failures }
      try checkCancellation()
      options = await nextOptions(context)
    }
  }

  /// A page of a zone's feed; from its beginning if the token has expired.
  private func zonePage(
    _ zoneID: CKRecordZone.ID,
    of database: CKDatabase,
    _ context: FetchChangesContext,
    _ options: FetchChangesOptions
  ) async throws(CKError) -> CKDatabase.ZoneChangesPage {
    let database = database.configured(configuration: nil, group: options.operationGroup)
    let token = state.value.zoneTokens[zoneID]
    do {
      return try await database.changes(
        inZone: zoneID,
        since: token.map(CKServerChangeToken.init(syncToken:))
      )
    } catch {
      guard error.code == .changeTokenExpired, token != nil else { throw error }
      let isOther = error.changeTokenCause == .otherIncarnation
      // A service that was restored from an older copy may have lost records that only this device has:
      // no deletion of the zone is reported.
      if !isOther { try await restart(zoneID, context, error) }
      // The app still has the records, and needs the deletions to remove them. The old token stays until
      // the page has arrived: after a lost request it shows again that they are needed.
      return try await database.changes(inZone: zoneID, since: nil, includesDeleted: isOther)
    }
  }

  /// Reports a zone as deleted, before the zone is read from its beginning.
  ///
  /// The zone was deleted and created again, or its token is older than the tombstones that the
  /// service keeps. A listing from the beginning names only the existing records: without the
  /// reported deletion the app would keep deleted records forever, and would create them again with
  /// its next edit. Pending changes are sent first, since the app deletes their records with the
  /// zone. If some of them fail, or the service refused to save a record before, the zone is not
  /// restarted: this device may have the only copy. A later fetch tries again; it restarts the zone
  /// when every refused record was saved, or the app deleted it or removed its change. A pending
  /// change for which the delegate has no record does not prevent the restart.
  ///
  /// Apple does not document its engine's behaviour in this case.
  private func restart(
    _ zoneID: CKRecordZone.ID,
    _ context: FetchChangesContext,
    _ expiry: CKError
  ) async throws(CKError) {
    if state.value.hasUntrackedChanges || state.value.hasChangesToSend(in: zoneID) {
      let offered: Offered?
      do {
        offered = try await send(
          SendChangesContext(
            reason: context.reason,
            options: SendChangesOptions(scope: .zoneIDs([zoneID]))
          )
        )
      } catch {
        // The delegate may add a refused change again while it handles the event.
        throw SyncEngineState.retries(error) ? error : expiry
      }
      guard let offered, state.untrackedCount == offered.untracked else { throw expiry }
      let added = state.value.recordChanges.changes(since: offered.changes)
      if added.contains(where: { $0.recordID.zoneID == zoneID }) { throw expiry }
    }
    if state.value.hasRefusedRecords(in: zoneID) { throw expiry }
    await deliver(
      .fetchedDatabaseChanges(
        Event.FetchedDatabaseChanges(
          modifications: [],
          deletions: [CKDatabase.DatabaseChange.Deletion(zoneID: zoneID, reason: .deleted)]
        )
      )
    )
    state.update { $0.restart(zoneID) }
    await deliver(
      .fetchedDatabaseChanges(
        Event.FetchedDatabaseChanges(
          modifications: [CKDatabase.DatabaseChange.Modification(zoneID: zoneID)],
          deletions: []
        )
      )
    )
  }

  // MARK: The subscription

  /// The time until the subscription is asked for again after a failure.
  private static let subscriptionRetryTime = 300.0

  /// Ensures that the database has a subscription that notifies this device of its changes.
  func ensureSubscription() async throws(CKError) {
    let database = self.database.pinned(to: try await ensureAccount())
    let known = state.value.subscriptionID
    if let known, hasCheckedSubscription,
      configuredSubscriptionID == nil || configuredSubscriptionID == known
    {
      return
    }
    do {
      let found = try await findSubscription(of: database)
      let name = if let found { found } else { try await makeSubscription(of: database) }
      state.update { $0.subscriptionID = name }
      hasCheckedSubscription = true
    } catch {
      let error = CKError(transport: error)
      if error.endsFetch { throw error }
      // A service that refuses subscriptions can still be polled, and so can one that fails at them or has none.
      if SyncEngineState.retries(error) || error.isServiceFailure {
        requestFetch(after: max(Self.subscriptionRetryTime, error.retryAfterSeconds ?? 0))
      }
    }
  }

  private func findSubscription(of database: CKDatabase) async throws -> CKSubscription.ID? {
    let all = try await database.allSubscriptions()
    if let wanted = configuredSubscriptionID {
      return all.first { $0.subscriptionID == wanted }?.subscriptionID
    }
    // A subscription to one record type may not fire for the others.
    return all.compactMap { $0 as? CKDatabaseSubscription }.first { $0.recordType == nil }?
      .subscriptionID
  }

  private func makeSubscription(of database: CKDatabase) async throws -> CKSubscription.ID {
    let subscription = CKDatabaseSubscription(
      subscriptionID: configuredSubscriptionID ?? "CKSyncEngine"
    )
    subscription.notificationInfo = CKNotificationInfo(shouldSendContentAvailable: true)
    return try await database.save(subscription).subscriptionID
  }
}
