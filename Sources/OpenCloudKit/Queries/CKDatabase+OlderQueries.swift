import Foundation

extension CKDatabase {
  /// Runs a query and fetches the first page of its results.
  @available(*, deprecated, renamed: "records(matching:inZoneWith:desiredKeys:resultsLimit:)")
  public func perform(
    _ query: CKQuery,
    inZoneWith zoneID: CKRecordZone.ID?
  ) async throws -> [CKRecord] {
    try await records(matching: query, inZoneWith: zoneID).matchResults.map { try $0.1.get() }
  }

  /// Runs a query and fetches the first page of its results.
  @available(
    *,
    deprecated,
    renamed: "fetch(withQuery:inZoneWith:desiredKeys:resultsLimit:completionHandler:)"
  )
  public func perform(
    _ query: CKQuery,
    inZoneWith zoneID: CKRecordZone.ID?,
    completionHandler: @escaping @Sendable ([CKRecord]?, (any Error)?) -> Void
  ) {
    fetch(withQuery: query, inZoneWith: zoneID) { result in
      do {
        completionHandler(try result.get().matchResults.map { try $0.1.get() }, nil)
      } catch {
        completionHandler(nil, error)
      }
    }
  }
}
