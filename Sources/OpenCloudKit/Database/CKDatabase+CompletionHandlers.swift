import Effects
import Foundation

// The methods with completion handlers: each starts the asynchronous method and passes its result
// to the handler.
extension CKDatabase {
  /// Runs the body and passes its result to the handler.
  private func start<Output: Sendable>(
    _ completionHandler: @escaping @Sendable (Result<Output, any Error>) -> Void,
    _ body: @escaping @Sendable (CKDatabase) async throws -> Output
  ) {
    effects.tasks.spawn {
      do {
        completionHandler(.success(try await body(self)))
      } catch {
        completionHandler(.failure(error))
      }
    }
  }

  /// Runs the body and passes its result or its error to the handler.
  private func start<Output: Sendable>(
    pair completionHandler: @escaping @Sendable (Output?, (any Error)?) -> Void,
    _ body: @escaping @Sendable (CKDatabase) async throws -> Output
  ) {
    start(
      { result in
        switch result {
        case .success(let output): completionHandler(output, nil)
        case .failure(let error): completionHandler(nil, error)
        }
      },
      body
    )
  }

  // MARK: Records

  /// Fetches a record.
  public func fetch(
    withRecordID recordID: CKRecord.ID,
    completionHandler: @escaping @Sendable (CKRecord?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.record(for: recordID) }
  }

  /// Fetches records; each has a result of its own.
  public func fetch(
    withRecordIDs recordIDs: [CKRecord.ID],
    desiredKeys: [CKRecord.FieldKey]? = nil,
    completionHandler:
      @escaping @Sendable (
        Result<[CKRecord.ID: Result<CKRecord, any Error>], any Error>
      ) -> Void
  ) {
    start(completionHandler) { try await $0.records(for: recordIDs, desiredKeys: desiredKeys) }
  }

  /// Saves a record, if the server does not have a newer version.
  public func save(
    _ record: CKRecord,
    completionHandler: @escaping @Sendable (CKRecord?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.save(record) }
  }

  /// Deletes a record.
  public func delete(
    withRecordID recordID: CKRecord.ID,
    completionHandler: @escaping @Sendable (CKRecord.ID?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.deleteRecord(withID: recordID) }
  }

  /// Saves and deletes records; each has a result of its own.
  public func modifyRecords(
    saving recordsToSave: [CKRecord],
    deleting recordIDsToDelete: [CKRecord.ID],
    savePolicy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged,
    atomically: Bool = true,
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            saveResults: [CKRecord.ID: Result<CKRecord, any Error>],
            deleteResults: [CKRecord.ID: Result<Void, any Error>]
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.modifyRecords(
        saving: recordsToSave,
        deleting: recordIDsToDelete,
        savePolicy: savePolicy,
        atomically: atomically
      )
    }
  }

  // MARK: Zones

  /// Fetches all zones.
  public func fetchAllRecordZones(
    completionHandler: @escaping @Sendable ([CKRecordZone]?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.allRecordZones() }
  }

  /// Fetches a zone.
  public func fetch(
    withRecordZoneID zoneID: CKRecordZone.ID,
    completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.recordZone(for: zoneID) }
  }

  /// Fetches zones; each has a result of its own.
  public func fetch(
    withRecordZoneIDs zoneIDs: [CKRecordZone.ID],
    completionHandler:
      @escaping @Sendable (
        Result<[CKRecordZone.ID: Result<CKRecordZone, any Error>], any Error>
      ) -> Void
  ) {
    start(completionHandler) { try await $0.recordZones(for: zoneIDs) }
  }

  /// Saves a zone.
  public func save(
    _ zone: CKRecordZone,
    completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.save(zone) }
  }

  /// Deletes a zone with all its records.
  public func delete(
    withRecordZoneID zoneID: CKRecordZone.ID,
    completionHandler: @escaping @Sendable (CKRecordZone.ID?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.deleteRecordZone(withID: zoneID) }
  }

  /// Saves and deletes zones; each has a result of its own.
  public func modifyRecordZones(
    saving recordZonesToSave: [CKRecordZone],
    deleting recordZoneIDsToDelete: [CKRecordZone.ID],
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>],
            deleteResults: [CKRecordZone.ID: Result<Void, any Error>]
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.modifyRecordZones(
        saving: recordZonesToSave,
        deleting: recordZoneIDsToDelete
      )
    }
  }

  // MARK: Queries

  /// Runs a query.
  public func fetch(
    withQuery query: CKQuery,
    inZoneWith zoneID: CKRecordZone.ID? = nil,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int = CKQueryOperation.maximumResults,
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
            queryCursor: CKQueryOperation.Cursor?
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.records(
        matching: query,
        inZoneWith: zoneID,
        desiredKeys: desiredKeys,
        resultsLimit: resultsLimit
      )
    }
  }

  /// Continues a query.
  public func fetch(
    withCursor queryCursor: CKQueryOperation.Cursor,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int = CKQueryOperation.maximumResults,
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
            queryCursor: CKQueryOperation.Cursor?
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.records(
        continuingMatchFrom: queryCursor,
        desiredKeys: desiredKeys,
        resultsLimit: resultsLimit
      )
    }
  }

  // MARK: Changes

  /// Fetches which zones changed since a token.
  public func fetchDatabaseChanges(
    since changeToken: CKServerChangeToken?,
    resultsLimit: Int? = nil,
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            modifications: [CKDatabase.DatabaseChange.Modification],
            deletions: [CKDatabase.DatabaseChange.Deletion],
            changeToken: CKServerChangeToken,
            moreComing: Bool
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.databaseChanges(since: changeToken, resultsLimit: resultsLimit)
    }
  }

  /// Fetches which records of a zone changed since a token.
  public func fetchRecordZoneChanges(
    inZoneWith zoneID: CKRecordZone.ID,
    since changeToken: CKServerChangeToken?,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int? = nil,
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            modificationResultsByID: [CKRecord.ID: Result<
              CKDatabase.RecordZoneChange.Modification, any Error
            >],
            deletions: [CKDatabase.RecordZoneChange.Deletion],
            changeToken: CKServerChangeToken,
            moreComing: Bool
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.recordZoneChanges(
        inZoneWith: zoneID,
        since: changeToken,
        desiredKeys: desiredKeys,
        resultsLimit: resultsLimit
      )
    }
  }

  // MARK: Subscriptions

  /// Fetches all subscriptions.
  public func fetchAllSubscriptions(
    completionHandler: @escaping @Sendable ([CKSubscription]?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.allSubscriptions() }
  }

  /// Fetches a subscription.
  public func fetch(
    withSubscriptionID subscriptionID: CKSubscription.ID,
    completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.subscription(for: subscriptionID) }
  }

  /// Fetches subscriptions; each has a result of its own.
  public func fetch(
    withSubscriptionIDs subscriptionIDs: [CKSubscription.ID],
    completionHandler:
      @escaping @Sendable (
        Result<[CKSubscription.ID: Result<CKSubscription, any Error>], any Error>
      ) -> Void
  ) {
    start(completionHandler) { try await $0.subscriptions(for: subscriptionIDs) }
  }

  /// Saves a subscription.
  public func save(
    _ subscription: CKSubscription,
    completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.save(subscription) }
  }

  /// Deletes a subscription.
  public func delete(
    withSubscriptionID subscriptionID: CKSubscription.ID,
    completionHandler: @escaping @Sendable (String?, (any Error)?) -> Void
  ) {
    start(pair: completionHandler) { try await $0.deleteSubscription(withID: subscriptionID) }
  }

  /// Saves and deletes subscriptions; each has a result of its own.
  public func modifySubscriptions(
    saving subscriptionsToSave: [CKSubscription],
    deleting subscriptionIDsToDelete: [CKSubscription.ID],
    completionHandler:
      @escaping @Sendable (
        Result<
          (
            saveResults: [CKSubscription.ID: Result<CKSubscription, any Error>],
            deleteResults: [CKSubscription.ID: Result<Void, any Error>]
          ), any Error
        >
      ) -> Void
  ) {
    start(completionHandler) {
      try await $0.modifySubscriptions(
        saving: subscriptionsToSave,
        deleting: subscriptionIDsToDelete
      )
    }
  }
}
