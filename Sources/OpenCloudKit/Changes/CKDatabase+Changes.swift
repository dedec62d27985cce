import CloudKitWebServices
import Foundation

extension CKDatabase {
  /// A change in a database.
  public enum DatabaseChange {
    /// A zone that was created, or whose records changed.
    public struct Modification: Hashable, Sendable {
      /// The zone.
      public let zoneID: CKRecordZone.ID
    }

    /// A deleted zone.
    public struct Deletion: Hashable, Sendable {
      /// Why a zone was deleted.
      public enum Reason: Hashable, Sendable {
        /// An app deleted it.
        case deleted
        /// The user deleted the app's data.
        case purged
        /// The user reset their encrypted data.
        case encryptedDataReset
      }

      /// The zone.
      public let zoneID: CKRecordZone.ID
      /// Why it was deleted.
      public let reason: CKDatabase.DatabaseChange.Deletion.Reason
    }
  }

  /// A change in a zone.
  public enum RecordZoneChange {
    /// A record that was created or changed.
    public struct Modification: Sendable {
      /// The record.
      public let record: CKRecord
    }

    /// A deleted record.
    public struct Deletion: Hashable, Sendable {
      /// The record.
      public let recordID: CKRecord.ID
      /// Its type; empty if the service does not send it.
      public let recordType: CKRecord.RecordType
    }
  }

  /// Fetches which zones changed since a token.
  public func databaseChanges(
    since changeToken: CKServerChangeToken?,
    resultsLimit: Int? = nil
  ) async throws -> (
    modifications: [CKDatabase.DatabaseChange.Modification],
    deletions: [CKDatabase.DatabaseChange.Deletion],
    changeToken: CKServerChangeToken,
    moreComing: Bool
  ) {
    let page = try await changedZones(since: changeToken, resultsLimit: resultsLimit)
    return (
      page.changed.map { DatabaseChange.Modification(zoneID: $0) },
      page.deletions,
      page.changeToken, page.moreComing
    )
  }

  /// Fetches which records of a zone changed since a token, with their assets.
  public func recordZoneChanges(
    inZoneWith zoneID: CKRecordZone.ID,
    since changeToken: CKServerChangeToken?,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int? = nil
  ) async throws -> (
    modificationResultsByID: [CKRecord.ID: Result<
      CKDatabase.RecordZoneChange.Modification, any Error
    >],
    deletions: [CKDatabase.RecordZoneChange.Deletion],
    changeToken: CKServerChangeToken,
    moreComing: Bool
  ) {
    let page = try await changes(
      inZone: zoneID,
      since: changeToken,
      desiredKeys: desiredKeys,
      resultsLimit: resultsLimit
    )
    var modifications: [CKRecord.ID: Result<RecordZoneChange.Modification, any Error>] = [:]
    for record in page.records {
      if let error = page.failures[record.recordID] {
        modifications[record.recordID] = .failure(error)
      } else {
        modifications[record.recordID] = .success(RecordZoneChange.Modification(record: record))
      }
    }
    for (recordID, error) in page.failures where modifications[recordID] == nil {
      modifications[recordID] = .failure(error)
    }
    let deletions = page.deletions.map {
      RecordZoneChange.Deletion(recordID: $0.recordID, recordType: $0.recordType ?? "")
    }
    return (modifications, deletions, page.changeToken, page.moreComing)
  }

  // MARK: Pages of the feeds

  /// A page of changed zones, and the token to continue from.
  package struct ChangedZones: Sendable {
    package var changed: [CKRecordZone.ID]
    package var deletions: [DatabaseChange.Deletion]
    package var changeToken: CKServerChangeToken
    package var moreComing: Bool
    /// The error of an item that names no zone: `changeToken` is beyond the change of that zone.
    package var failure: CKError?

    /// The deleted zones, for any reason.
    package var deleted: [CKRecordZone.ID] { deletions.map(\.zoneID) }
  }

  /// A page of a zone's changes, oldest first, and the token to continue from.
  package struct ZoneChangesPage: Sendable {
    /// A deleted record.
    package struct Tombstone: Hashable, Sendable {
      package var recordID: CKRecord.ID
      /// Its type, if the service sends it.
      package var recordType: CKRecord.RecordType?
    }

    package var records: [CKRecord]
    package var deletions: [Tombstone]
    /// Records that are incomplete: either a file could not be downloaded, and the record is among
    /// `records`, or the service returned an error for the record.
    package var failures: [CKRecord.ID: CKError]
    package var changeToken: CKServerChangeToken
    package var moreComing: Bool

    /// Whether a later fetch from the former token may read what this one could not: the connection
    /// broke, the session ended or the service failed, and no file is merely missing.
    var mayBeReadLater: Bool {
      failures.values.contains {
        $0.isTransient || $0.isInconclusive || $0.isServiceFailure
          || [.notAuthenticated, .operationCancelled].contains($0.code)
      }
    }

    /// The failures of the records that are not among `records`, by name.
    var failuresOfMissingRecords: [(CKRecord.ID, CKError)] {
      let known = Set(records.map(\.recordID))
      return failures.filter { !known.contains($0.key) }
        .sorted { $0.key.recordName < $1.key.recordName }
        .map { ($0.key, $0.value) }
    }
  }

  /// Fetches a page of the database's feed; throws if an item names no zone.
  package func changedZones(
    since changeToken: CKServerChangeToken?,
    resultsLimit: Int? = nil
  ) async throws(CKError) -> ChangedZones {
    let page = try await changedZonesPage(since: changeToken, resultsLimit: resultsLimit)
    if let failure = page.failure { throw failure }
    return page
  }

  /// Fetches a page of the database's feed, of which an item may name no zone.
  func changedZonesPage(
    since changeToken: CKServerChangeToken?,
    resultsLimit: Int? = nil
  ) async throws(CKError) -> ChangedZones {
    let reply = try await container.client().call(
      .databaseChanges,
      scope: databaseScope,
      body: DatabaseChangesRequest(
        syncToken: changeToken?.syncToken,
        resultsLimit: resultsLimit
      ),
      repeatable: true,
      as: DatabaseChangesResponse.self
    )
    guard let token = reply.syncToken ?? reply.metaSyncToken else {
      throw CKError(inconclusive: "The service sent changes without a token.")
    }
    var page = ChangedZones(
      changed: [],
      deletions: [],
      changeToken: CKServerChangeToken(syncToken: token),
      moreComing: reply.moreComing ?? false
    )
    for item in reply.zones {
      switch item {
      case .success(let zone):
        let zoneID = mapping.zoneID(zone.zoneID)
        guard zone.deleted == true else {
          page.changed.append(zoneID)
          continue
        }
        let reason = DatabaseChange.Deletion.Reason(zone.extension?.code)
        page.deletions.append(DatabaseChange.Deletion(zoneID: zoneID, reason: reason))
      case .failure(let error):
        // The token moves past the zone's change: a fetch of the zone shows what is wrong with it.
        guard let zone = error.zoneID else {
          page.failure = CKError(error, mapping: mapping, zone: .default)
          continue
        }
        page.changed.append(mapping.zoneID(zone))
      }
    }
    return page
  }

  /// Fetches a page of a zone's feed; `fetchesFiles` says whether the files of its records are
  /// downloaded.
  ///
  /// A page without a token lacks deletions, unless `includesDeleted` asks for them: Watershed's
  /// service keeps tombstones for a time.
  package func changes(
    inZone zoneID: CKRecordZone.ID,
    since changeToken: CKServerChangeToken?,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int? = nil,
    includesDeleted: Bool = false,
    fetchesFiles: Bool = true
  ) async throws(CKError) -> ZoneChangesPage {
    let reply = try await container.client().call(
      .zoneChanges,
      scope: databaseScope,
      body: ZoneChangesRequest(
        zones: [
          ZoneChangesOptions(
            zoneID: mapping.wire(zoneID),
            syncToken: changeToken?.syncToken,
            feed: FeedOptions(
              desiredKeys: desiredKeys,
              resultsLimit: resultsLimit,
              includesDeleted: includesDeleted ? true : nil
            )
          )
        ]
      ),
      repeatable: true,
      zone: zoneID,
      as: ZoneChangesResponse.self
    )
    guard let item = reply.zones.first else {
      throw CKError(inconclusive: "The service did not answer for the zone \(zoneID.zoneName).")
    }
    switch item {
    case .failure(let error):
      throw CKError(error, mapping: mapping, zone: zoneID)
    case .success(let changes):
      var page = try self.page(changes, of: zoneID)
      if fetchesFiles {
        let missing = try await (try transfers()).fetch(filesOf: page.records)
        page.failures.merge(missing) { first, _ in first }
      }
      return page
    }
  }

  /// Downloads the files of records that were fetched without them.
  package func fetchFiles(of records: [CKRecord]) async throws(CKError) -> [CKRecord.ID: CKError] {
    try await (try transfers()).fetch(filesOf: records)
  }

  private func page(
    _ changes: ZoneChanges,
    of zoneID: CKRecordZone.ID
  ) throws(CKError) -> ZoneChangesPage {
    guard let token = changes.syncToken else {
      throw CKError(inconclusive: "The service sent changes without a token.")
    }
    var page = ZoneChangesPage(
      records: [],
      deletions: [],
      failures: [:],
      changeToken: CKServerChangeToken(syncToken: token),
      moreComing: changes.moreComing ?? false
    )
    for item in changes.records {
      switch item {
      case .failure(let error):
        let failure = CKError(error, mapping: mapping, zone: zoneID)
        // An error of one record does not fail the page.
        guard let name = error.recordName else { throw failure }
        page.failures[CKRecord.ID(recordName: name, zoneID: zoneID)] = failure
      case .success(let record) where record.deleted == true:
        guard let recordID = mapping.recordID(record, in: zoneID) else { continue }
        page.deletions.append(
          ZoneChangesPage.Tombstone(recordID: recordID, recordType: record.recordType)
        )
      case .success(let record):
        do throws(CKError) {
          page.records.append(try mapping.record(record, in: zoneID))
        } catch {
          guard let recordID = mapping.recordID(record, in: zoneID) else { throw error }
          page.failures[recordID] = error
        }
      }
    }
    return page
  }
}

extension CKDatabase.DatabaseChange.Deletion.Reason {
  /// The reason for a deletion, which Watershed's service sends; other services send none.
  fileprivate init(_ code: ErrorExtensionCode?) {
    switch code {
    case .zonePurged?, .userDeletedZone?: self = .purged
    case .encryptedDataReset?: self = .encryptedDataReset
    default: self = .deleted
    }
  }
}
