import CloudKitWebServices
import Crypto
import Foundation

extension CloudKitService {
  func queryRecords(_ request: QueryRecordsRequest, _ context: RequestContext) async throws -> Data
  {
    let id = try partition(context)
    guard let name = request.query.recordType else {
      throw ErrorDictionary(.badRequest, "missing required field 'recordType'")
    }
    let isWide = request.zoneID == nil && request.zoneWide == true && context.scope != .public
    let zoneID = request.zoneID ?? .defaultZone
    // Said before anything about fields and indexes, which is no help in a zone that is not there.
    if !isWide { _ = try ZoneDirectory(storage, id, context, names: [zoneID]).number(of: zoneID) }
    let schema = try schema(container: context.container, environment: context.environment)
    guard let type = schema[recordType: name] else {
      throw ErrorDictionary(.notFound, "Did not find record type: \(name)")
    }
    let plan = try QueryPlan(request.query, type, allowsUnindexed: allowsUnindexed(context))
    let marker = try openMarker(request, context)
    try await activateIndexes(for: plan, id)

    let limit = pageSize(request.resultsLimit)
    return try storage.read { snapshot in
      let rows =
        isWide
        ? try snapshot.livingZones(in: id) : try snapshot.zones(in: id, named: [zoneID.zoneName])
      let zones = try ZoneDirectory(rows, context)
      var scan = QueryScan(type: name)
      scan.zone = isWide ? nil : try zones.number(of: zoneID)
      scan.narrowing = plan.narrowing
      let access = RecordAccess(
        scope: context.scope,
        schema: schema,
        user: context.principal?.userRecordName
      )
      let found = try plan.run(scan, snapshot, id, after: marker?.position, limit: limit) {
        access.allows(.read, type: $0.type, creator: $0.created.userRecordName)
      }
      let rendering = RecordRendering(
        service: self,
        partition: id,
        zones: zones,
        context: context
      )
      let shape = RecordRendering.Shape(
        desiredKeys: request.desiredKeys,
        numbersAsStrings: request.numbersAsStrings
      )
      var json = JSONWriter(capacity: 64 + 512 * found.page.count)
      json.beginObject()
      if found.hasMore, let last = found.page.last {
        let marker = ContinuationMarker(
          query: try mark(of: request, context),
          position: last.position
        )
        json.member("continuationMarker", try signer.seal(marker, for: .continuation))
      }
      json.key("records")
      json.beginArray()
      for match in found.page { try rendering.write(match.record, shape, to: &json) }
      json.endArray()
      json.member(
        "syncToken",
        try currentSyncToken(request.zoneID, id, zones, snapshot, context)
      )
      json.endObject()
      return json.data
    }
  }

  private func allowsUnindexed(_ context: RequestContext) -> Bool {
    context.environment == .development && configuration.allowsUnindexedQueriesInDevelopment
  }

  /// The indexes a query uses are kept from its first run on.
  private func activateIndexes(for plan: QueryPlan, _ id: PartitionID) async throws {
    guard let field = plan.narrowing?.field else { return }
    let type = plan.type.name
    let active = try storage.read { try $0.activeIndexes(in: id, types: [type]) }
    guard active[type]?.contains(field) != true else { return }
    try await writing.run { [storage] in
      try storage.activateIndex(in: id, type: type, field: field) { record in
        record.indexValues(of: field, try record.decodedFields())
      }
    }
  }

  // MARK: Markers

  /// A marker is good for the query it was given out for, and for nothing else.
  private func mark(of request: QueryRecordsRequest, _ context: RequestContext) throws -> String {
    var request = request
    request.continuationMarker = nil
    request.resultsLimit = nil
    var hash = SHA256()
    hash.update(data: try WireCoding.encode(request))
    hash.update(
      data: Data(
        "\(context.container)/\(context.environment)/\(context.scope)/\(context.reader)".utf8
      )
    )
    return Data(hash.finalize()).prefix(12).base64URL
  }

  private func openMarker(
    _ request: QueryRecordsRequest,
    _ context: RequestContext
  ) throws -> ContinuationMarker? {
    guard let text = request.continuationMarker else { return nil }
    guard let marker = signer.open(text, as: ContinuationMarker.self, for: .continuation) else {
      throw ErrorDictionary(.badRequest, "Unknown continuation marker")
    }
    guard marker.query == (try mark(of: request, context)) else {
      throw ErrorDictionary(.badRequest, "the continuation marker belongs to another query")
    }
    return marker
  }
}

/// Where the next page of a query begins.
struct ContinuationMarker: Codable, Hashable, Sendable {
  var query: String
  var position: QueryPosition
}
