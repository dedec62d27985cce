// How an engine fetches. What to fetch next is `SyncEngineState`'s to say.
extension CKSyncEngine {
  /// Fetches what changed and gives it to the delegate.
  func fetch(_ context: FetchChangesContext) async throws(CKError) {
    try await ensureAccount()
    await tell(.willFetchChanges(Event.WillFetchChanges(context: context)))
    var failure: CKError?
    do throws(CKError) {
      try await fetchZoneList(context)
      try await fetchZones(context)
    } catch {
      failure = error
    }
    await tellOfState()
    await tell(.didFetchChanges(Event.DidFetchChanges(context: context)))
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

  private func fetchZoneList(_ context: FetchChangesContext) async throws(CKError) {
    var page: CKDatabase.ChangedZones
    repeat {
      try checkCancellation()
      let options = await nextOptions(context)
      page = try await zoneListPage(group: options.operationGroup)
      if !page.changed.isEmpty || !page.deleted.isEmpty {
        await tell(
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
      state.update {
        $0.didFetch(
          changed: fetched.changed,
          deleted: fetched.deleted,
          token: fetched.changeToken.syncToken
        )
      }
      await tellOfState()
    } while page.moreComing
  }

  /// A page of the feed; from its beginning where the place it was read to is too long ago.
  private func zoneListPage(
    group: CKOperationGroup
  ) async throws(CKError) -> CKDatabase.ChangedZones {
    let database = database.configured(configuration: nil, group: group)
    let token = state.value.databaseToken
    do {
      return try await database.changedZones(since: token.map(CKServerChangeToken.init(syncToken:)))
    } catch {
      guard error.code == .changeTokenExpired, token != nil else { throw error }
      state.update { $0.databaseToken = nil }
      return try await database.changedZones(since: nil)
    }
  }

  // MARK: The zones' feeds

  private func fetchZones(_ context: FetchChangesContext) async throws(CKError) {
    var done: Set<CKRecordZone.ID> = []
    var failures: [AnyHashable: any Error] = [:]
    while true {
      try checkCancellation()
      let options = await nextOptions(context)
      guard let zoneID = state.value.nextZone(options, done: done) else { break }
      done.insert(zoneID)
      await tell(.willFetchRecordZoneChanges(Event.WillFetchRecordZoneChanges(zoneID: zoneID)))
      var failure: CKError?
      do throws(CKError) {
        try await fetchZone(zoneID, context, options)
      } catch {
        failure = error
        failures[zoneID] = error
        // A zone that is gone is told of by the database's feed.
        if error.code == .zoneNotFound || error.code == .userDeletedZone {
          state.update { $0.forget(zoneID) }
        }
      }
      await tell(
        .didFetchRecordZoneChanges(
          Event.DidFetchRecordZoneChanges(zoneID: zoneID, error: failure)
        )
      )
      await tellOfState()
      // Where the service is away, the other zones need not be tried.
      if let failure, SyncEngineState.retries(failure) { throw failure }
    }
    if !failures.isEmpty { throw .partialFailure(failures) }
  }

  private func fetchZone(
    _ zoneID: CKRecordZone.ID,
    _ context: FetchChangesContext,
    _ firstOptions: FetchChangesOptions
  ) async throws(CKError) {
    var options = firstOptions
    while true {
      let page = try await zonePage(zoneID, group: options.operationGroup)
      if let failure = page.failures.values.first(where: SyncEngineState.retries) { throw failure }
      if !page.records.isEmpty || !page.deletions.isEmpty {
        await tell(
          .fetchedRecordZoneChanges(
            Event.FetchedRecordZoneChanges(
              modifications: page.records.map {
                CKDatabase.RecordZoneChange.Modification(record: $0)
              },
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
      let token = page.changeToken.syncToken
      let moreComing = page.moreComing
      state.update { $0.didFetch(zoneID, token: token, moreComing: moreComing) }
      await tellOfState()
      guard moreComing else { return }
      try checkCancellation()
      options = await nextOptions(context)
    }
  }

  /// A page of a zone's feed; from its beginning where the place it was read to is too long ago.
  private func zonePage(
    _ zoneID: CKRecordZone.ID,
    group: CKOperationGroup
  ) async throws(CKError) -> CKDatabase.ZoneChangesPage {
    let database = database.configured(configuration: nil, group: group)
    let token = state.value.zoneTokens[zoneID]
    do {
      return try await database.changes(
        inZone: zoneID,
        since: token.map(CKServerChangeToken.init(syncToken:))
      )
    } catch {
      guard error.code == .changeTokenExpired, token != nil else { throw error }
      state.update { $0.zoneTokens[zoneID] = nil }
      return try await database.changes(inZone: zoneID, since: nil)
    }
  }

  // MARK: The subscription

  /// Makes sure that the database has a subscription that tells of its changes.
  func ensureSubscription() async throws(CKError) {
    try await ensureAccount()
    let known = state.value.subscriptionID
    if let known, configuredSubscriptionID == nil || configuredSubscriptionID == known { return }
    do {
      let found = try await findSubscription()
      let name = if let found { found } else { try await makeSubscription() }
      state.update { $0.subscriptionID = name }
    } catch {
      let error = CKError(transport: error)
      // A service that refuses subscriptions can still be asked.
      if SyncEngineState.retries(error) { throw error }
    }
  }

  private func findSubscription() async throws -> CKSubscription.ID? {
    let all = try await database.allSubscriptions()
    if let wanted = configuredSubscriptionID {
      return all.first { $0.subscriptionID == wanted }?.subscriptionID
    }
    return all.first { $0.subscriptionType == .database }?.subscriptionID
  }

  private func makeSubscription() async throws -> CKSubscription.ID {
    let subscription = CKDatabaseSubscription(
      subscriptionID: configuredSubscriptionID ?? "CKSyncEngine"
    )
    subscription.notificationInfo = CKNotificationInfo(shouldSendContentAvailable: true)
    return try await database.save(subscription).subscriptionID
  }
}
