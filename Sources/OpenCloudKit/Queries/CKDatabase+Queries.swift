import CloudKitWebServices
import Foundation

extension CKDatabase {
  /// Runs a query, in all zones unless one is given, and downloads the assets of its results.
  public func records(
    matching query: CKQuery,
    inZoneWith zoneID: CKRecordZone.ID? = nil,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int = CKQueryOperation.maximumResults
  ) async throws -> (
    matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
    queryCursor: CKQueryOperation.Cursor?
  ) {
    let request = QueryRecordsRequest(
      query: try query.wire(),
      zoneID: zoneID.map(mapping.wire),
      // Without a zone CloudKit searches all of them; the public database has only one.
      zoneWide: zoneID == nil && databaseScope != .public ? true : nil,
      resultsLimit: resultsLimit > 0 ? resultsLimit : nil,
      desiredKeys: desiredKeys
    )
    return try await run(request, zoneID: zoneID ?? .default)
  }

  /// Continues a query.
  public func records(
    continuingMatchFrom queryCursor: CKQueryOperation.Cursor,
    desiredKeys: [CKRecord.FieldKey]? = nil,
    resultsLimit: Int = CKQueryOperation.maximumResults
  ) async throws -> (
    matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
    queryCursor: CKQueryOperation.Cursor?
  ) {
    var request = queryCursor.request
    if let desiredKeys { request.desiredKeys = desiredKeys }
    if resultsLimit > 0 { request.resultsLimit = resultsLimit }
    return try await run(request, zoneID: queryCursor.zoneID)
  }

  private func run(
    _ request: QueryRecordsRequest,
    zoneID: CKRecordZone.ID
  ) async throws -> (
    matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
    queryCursor: CKQueryOperation.Cursor?
  ) {
    let reply = try await container.client().call(
      .queryRecords,
      scope: databaseScope,
      body: request,
      repeatable: true,
      zone: zoneID,
      as: QueryRecordsResponse.self
    )
    var found: [(CKRecord.ID, Result<CKRecord, any Error>)] = []
    var records: [CKRecord] = []
    for item in reply.records {
      let result = result(item, in: zoneID)
      switch result {
      case .success(let record):
        records.append(record)
        found.append((record.recordID, .success(record)))
      case .failure(let error):
        guard let name = item.error?.recordName else { throw error }
        found.append((CKRecord.ID(recordName: name, zoneID: zoneID), .failure(error)))
      }
    }
    let failures = try await (try transfers()).fetch(filesOf: records)
    let results = found.map { recordID, result in
      (recordID, failures[recordID].map { .failure($0) } ?? result)
    }
    var cursor: CKQueryOperation.Cursor?
    if let marker = reply.continuationMarker, !marker.isEmpty {
      var next = request
      next.continuationMarker = marker
      cursor = CKQueryOperation.Cursor(request: next, zoneID: zoneID)
    }
    return (results, cursor)
  }
}
