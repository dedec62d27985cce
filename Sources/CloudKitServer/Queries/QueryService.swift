import CloudKitWebServices
import Foundation
import Logging

/// `records/query`.
final class QueryService: Sendable {
  private let storage: any Storage
  private let databases: DatabaseLookup
  private let reads: BoundedReads
  private let indexes: QueryIndexes
  private let renderer: RecordRenderer
  private let tokens: ChangeTokens
  private let signer: Signer
  private let limits: ServiceLimits
  private let allowsUnindexedInDevelopment: Bool
  private let logger: Logger

  init(
    storage: any Storage,
    databases: DatabaseLookup,
    reads: BoundedReads,
    indexes: QueryIndexes,
    renderer: RecordRenderer,
    tokens: ChangeTokens,
    signer: Signer,
    limits: ServiceLimits,
    allowsUnindexedInDevelopment: Bool,
    logger: Logger
  ) {
    self.storage = storage
    self.databases = databases
    self.reads = reads
    self.indexes = indexes
    self.renderer = renderer
    self.tokens = tokens
    self.signer = signer
    self.limits = limits
    self.allowsUnindexedInDevelopment = allowsUnindexedInDevelopment
    self.logger = logger
  }

  func query(_ request: QueryRecordsRequest, _ context: RequestContext) async throws -> Data {
    let request = request.placed
    guard let name = request.query.recordType else {
      throw ErrorDictionary(.badRequest, "missing required field 'recordType'")
    }
    let isWide = request.zoneID == nil && request.zoneWide == true && context.scope != .public
    guard context.scope != .shared || request.zoneID != nil else {
      throw ErrorDictionary(.badRequest, "SharedDB does not support Zone Wide queries")
    }
    let zoneID = request.zoneID ?? .defaultZone
    // Beside the pool, as all that takes time in proportion to the filters.
    let (id, access, plan, marker) = try await reads.run(for: context) { [self] control in
      let (id, access) = try storage.read(control) { snapshot in
        let database = try databases.target(of: [zoneID], context, snapshot)
        // Checked first: errors about fields and indexes are no help if the zone does not exist.
        if !isWide { _ = try ZoneDirectory(database, context).number(of: zoneID) }
        return (database.id, try snapshot.access(in: database.id, context))
      }
      let plan = try self.plan(request.query, name, access, context)
      return (id, access, plan, try SealedMarker.open(request, context, signer))
    }
    try await indexes.activate(plan.indexes, of: name, id, for: context)
    return try await reads.run(.scan, for: context) { [self] control in
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
        renderer: renderer,
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
        limit: try limits.pageSize(request.resultsLimit),
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
        json.member("continuationMarker", try SealedMarker.seal(next, of: request, context, signer))
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
        try tokens.newest(of: request.zoneID, database, snapshot, context)
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
        allowsUnindexed: isDevelopment && allowsUnindexedInDevelopment
      )
    } catch {
      if let remedy = error.extension?.remedy {
        // In development the default level shows it.
        logger.log(
          level: isDevelopment ? .warning : .notice,
          "\(error.reason ?? "")",
          metadata: ["remedy": "\(remedy)"]
        )
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
}
