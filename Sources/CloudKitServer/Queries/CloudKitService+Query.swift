import CloudKitWebServices
import Foundation
import Logging

extension CloudKitService {
  func queryRecords(_ request: QueryRecordsRequest, _ context: RequestContext) async throws -> Data
  {
    guard let name = request.query.recordType else {
      throw ErrorDictionary(.badRequest, "missing required field 'recordType'")
    }
    let isWide = request.zoneID == nil && request.zoneWide == true && context.scope != .public
    guard context.scope != .shared || request.zoneID != nil else {
      throw ErrorDictionary(.badRequest, "SharedDB does not support Zone Wide queries")
    }
    let zoneID = request.zoneID ?? .defaultZone
    let (id, access) = try storage.read { snapshot in
      let database = try databases.target(of: [zoneID], context, snapshot)
      // Checked first: errors about fields and indexes are no help if the zone does not exist.
      if !isWide { _ = try ZoneDirectory(database, context).number(of: zoneID) }
      return (database.id, try snapshot.access(in: database.id, context))
    }
    let plan = try self.plan(request.query, name, access, context)
    let marker = try openMarker(of: request, context)
    do {
      try await activate(plan.indexes, of: name, id, for: reads.reader(of: context))
    } catch let error as ReadOver {
      throw error.dictionary
    }
    return try await reads.run(for: context) { [self] control in
      try page(of: plan, after: marker, id, isWide, access, request, context, control)
    }
  }

  private func page(
    of plan: QueryPlan,
    after marker: QueryMarker?,
    _ id: PartitionID,
    _ isWide: Bool,
    _ access: RecordAccess,
    _ request: QueryRecordsRequest,
    _ context: RequestContext,
    _ control: ReadControl
  ) throws -> Data {
    let zoneID = request.zoneID ?? .defaultZone
    return try storage.read(control) { snapshot in
      var database = try databases.target(of: [zoneID], context, snapshot)
      if isWide { database.rows = try snapshot.livingZones(in: id) }
      let zones = ZoneDirectory(database, context)
      let rendering = RecordRendering(
        service: self,
        partition: id,
        zones: zones,
        context: context
      )
      var unreadable: [RecordKey: any Error] = [:]
      let run = QueryRun(
        plan: plan,
        snapshot: snapshot,
        id: id,
        zone: isWide ? nil : try zones.number(of: zoneID),
        limit: try pageSize(request.resultsLimit),
        limits: limits,
        weight: { rendering.weight(of: RecordRow($0)) },
        control: control,
        onUnreadable: { unreadable[$0.key] = $1 }
      ) {
        database.sees($0)
          && access.allows(.read, type: $0.type, creator: .of($0))
      }
      let page = try run.page(after: marker)
      let shape = RecordRendering.Shape(
        desiredKeys: request.desiredKeys,
        numbersAsStrings: request.numbersAsStrings
      )
      var json = JSONWriter(capacity: 64 + 1024 * page.records.count)
      json.beginObject()
      if let next = page.marker {
        json.member("continuationMarker", try seal(next, of: request, context))
      }
      json.key("records")
      json.beginArray()
      for record in page.records {
        if let error = unreadable[record.key] {
          try rendering.writeUnreadable(record.key.name, error, to: &json)
        } else {
          try rendering.writeItem(record, shape, to: &json)
        }
      }
      json.endArray()
      json.member(
        "syncToken",
        try currentSyncToken(request.zoneID, database, snapshot, context)
      )
      json.endObject()
      return json.finished()
    }
  }

  private func plan(
    _ query: RecordQuery,
    _ name: String,
    _ access: RecordAccess,
    _ context: RequestContext
  ) throws -> QueryPlan {
    guard name != RecordTypeSchema.users.name else {
      throw ErrorDictionary(.badRequest, "Can't query system types")
    }
    guard let type = access.schema[recordType: name] else {
      throw ErrorDictionary(.notFound, "Did not find record type: \(name)")
    }
    let isDevelopment = context.environment == .development
    var plan: QueryPlan
    do {
      plan = try QueryPlan(
        query,
        type,
        container: context.container,
        user: context.principal?.userRecordName,
        limits: limits,
        allowsUnindexed: isDevelopment && configuration.allowsUnindexedQueriesInDevelopment
      )
    } catch {
      if let remedy = error.extension?.remedy {
        logger.notice("\(error.reason ?? "")", metadata: ["remedy": "\(remedy)"])
      }
      throw error
    }
    switch access.readers(of: type) {
    case .everyone: break
    case .creator(let user): plan.restrict(toCreator: user)
    case .noUser:
      _ = try context.user()
      throw ErrorDictionary(.accessDenied, "READ operation not permitted")
    }
    return plan
  }

  /// Creates the indexes that a query uses, at its first run; they are kept.
  func activate(
    _ indexes: Set<RecordIndex>,
    of type: String,
    _ id: PartitionID,
    for reader: String = "server"
  ) async throws {
    for index in indexes.sorted(by: { $0.name < $1.name }) {
      try await makeIndex(of: index.name, type: type, in: id, for: reader) { record in
        // Only the system fields of an unreadable record are indexed: the query that finds it
        // reports the error and still returns the other records.
        index.keys(of: record, (try? record.decodedFields()) ?? [:])
      }
    }
  }
}
