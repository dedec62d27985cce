import CloudKitWebServices
import Effects
import Foundation

/// `records/modify` and `records/lookup`.
final class RecordService: Sendable {
  let storage: any Storage
  let databases: DatabaseLookup
  let reads: BoundedReads
  let renderer: RecordRenderer
  let tokens: ChangeTokens
  let limits: ServiceLimits
  let effects: Effects
  let failures: RequestFailures
  let writer: RecordWriter
  private let quotas: DatabaseQuotas
  private let erasing: SchemaErasures
  private let rates: RequestRates
  private let delivery: NotificationDelivery

  init(
    writer: RecordWriter,
    erasing: SchemaErasures,
    reads: BoundedReads,
    quotas: DatabaseQuotas,
    failures: RequestFailures
  ) {
    storage = writer.storage
    databases = writer.databases
    renderer = writer.renderer
    tokens = writer.tokens
    limits = writer.limits
    effects = writer.effects
    rates = writer.rates
    delivery = writer.delivery
    self.writer = writer
    self.erasing = erasing
    self.reads = reads
    self.quotas = quotas
    self.failures = failures
  }

  func modify(
    _ request: ModifyRecordsRequest,
    _ context: RequestContext,
    bodySize: Int
  ) async throws -> Data {
    _ = try context.user()
    try limits.checkCount(request.operations.count)
    try checkOneOperationPerRecord(request, context)
    if let parts = operationsByOwner(request, context) {
      return try await modify(of: parts, request, context, bodySize: bodySize)
    }
    return try await modifyOfOneOwner(request, context, bodySize: bodySize)
  }

  /// Modifies the zones of one owner; the whole reply has `bytes` bytes already.
  func modifyOfOneOwner(
    _ request: ModifyRecordsRequest,
    _ context: RequestContext,
    bodySize: Int,
    replied bytes: Int = 0
  ) async throws -> Data {
    let user = try context.user()
    let call = ModifyCall(
      parts: writer,
      request: request,
      context: context,
      user: user.userRecordName,
      sequence: context.isExtended ? request.clientSequence : nil,
      repliedBytes: bytes,
      notificationBytes: rates.notificationBytes(context)
    )
    let zones = call.namedZones
    let (id, hasZones) =
      context.scope == .shared
      ? try await sharedDatabase(of: zones, context) : (try databases.partition(context), true)
    let isSaving = request.operations.contains { !$0.operationType.isDelete }
    if isSaving {
      // Only users who may see a zone of another user's database learn whether it is full.
      if hasZones {
        do {
          try await quotas.check(context, id, adding: Int64(bodySize))
        } catch let full as ErrorDictionary {
          // A batch that was executed may be what has filled the database: its repetition gets its
          // reply.
          guard call.mayHaveReply, let reply = try await keptReply(of: call) else { throw full }
          return reply
        }
      }
      try rates.checkLinkedRows(context)
    }
    let outcome = try await erasing.after(context.container) {
      try await writer.commit(call, to: id)
    }
    RequestSubject.current?.note(refused: outcome.refusals)
    if let note = outcome.note {
      // A batch that was refused takes no room.
      if isSaving { quotas.add(Int64(bodySize), in: id) }
      if note.deletedCount > 0 { quotas.noteDeletion(context, id) }
      // Notifications are rows of the outbox, a hundred bytes each.
      rates.countLinkedRows(outcome.linkedRows + note.notificationBytes / 100, context)
      rates.countNotifications(bytes: note.notificationBytes, context)
      delivery.announce(note)
    }
    return outcome.reply
  }

  private func keptReply(of call: ModifyCall) async throws -> Data? {
    try await reads.run(for: call.context) { [storage] control in
      try storage.read(control) { try call.keptReply($0) }
    }
  }

  /// The database of zones that others share with the caller, and whether one of them is open to
  /// the caller; its shares are not decoded on a thread of the pool.
  private func sharedDatabase(
    of zones: [ZoneID],
    _ context: RequestContext
  ) async throws -> (id: PartitionID, hasZones: Bool) {
    try await reads.run(for: context) { [self] control in
      try storage.read(control) { snapshot in
        let target = try databases.target(of: zones, context, snapshot)
        return (target.id, !target.rows.isEmpty)
      }
    }
  }

  private func checkOneOperationPerRecord(
    _ request: ModifyRecordsRequest,
    _ context: RequestContext
  ) throws(ErrorDictionary) {
    struct Place: Hashable {
      var owner: String
      var zone: String
      var name: String
    }
    var seen = Set<Place>(minimumCapacity: request.operations.count)
    for operation in request.operations {
      guard let name = operation.record.recordName else { continue }
      let zone = operation.record.zoneID ?? request.zoneID ?? .defaultZone
      let owner = context.scope == .shared ? zone.ownerRecordName ?? "" : ""
      guard seen.insert(Place(owner: owner, zone: zone.zoneName, name: name)).inserted else {
        throw ErrorDictionary(.badRequest, "more than one operation for the record '\(name)'")
      }
    }
  }
}
