import CloudKitWebServices
import Crypto
import Foundation

extension CloudKitService {
  func modifyRecords(
    _ request: ModifyRecordsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    let user = try context.user()
    try checkCount(request.operations.count)
    try checkOneOperationPerRecord(request)
    let id = try partition(context)
    let call = ModifyCall(
      service: self,
      request: request,
      context: context,
      user: user.userRecordName,
      id: id,
      sequence: context.isExtended ? request.clientSequence : nil
    )
    let outcome = try await write(to: id) { try call.decide() }
    if let sync = outcome.committed {
      announce(
        context,
        zones: sync.zones,
        saved: sync.saved,
        deleted: sync.deleted,
        device: call.device
      )
    }
    return outcome.reply
  }

  private func checkOneOperationPerRecord(
    _ request: ModifyRecordsRequest
  ) throws(ErrorDictionary) {
    var seen: Set<String> = []
    for operation in request.operations {
      guard let name = operation.record.recordName else { continue }
      let zone = operation.record.zoneID ?? request.zoneID ?? .defaultZone
      guard seen.insert("\(zone.zoneName)/\(name)").inserted else {
        throw ErrorDictionary(.badRequest, "more than one operation for the record '\(name)'")
      }
    }
  }
}

/// One `records/modify`: loads, decides, renders.
struct ModifyCall: Sendable {
  let service: CloudKitService
  let request: ModifyRecordsRequest
  let context: RequestContext
  let user: String
  let id: PartitionID
  let sequence: ClientSequence?

  struct Outcome: Sendable {
    var reply: Data
    /// Nil where nothing was written.
    var committed: Committed?
  }

  struct Committed: Sendable {
    var zones: [String]
    var saved: Int
    var deleted: Int
  }

  var device: String? { context.clientID ?? request.clientSequence?.device }

  func decide() throws -> (WriteBatch?, Outcome) {
    if let reply = try storedReply() { return (nil, Outcome(reply: reply)) }
    let (input, zones) = try load()
    let plan = try ModifyPlanner.plan(input)
    let rendering = RecordRendering(
      service: service,
      partition: id,
      zones: zones,
      context: context
    )
    var json = JSONWriter(capacity: 64 + 512 * plan.items.count)
    json.beginObject()
    json.key("records")
    json.beginArray()
    for (item, operation) in zip(plan.items, request.operations) {
      try render(item, operation, rendering, to: &json)
    }
    json.endArray()
    guard var batch = plan.batch else {
      json.endObject()
      return (nil, Outcome(reply: json.data))
    }
    for number in plan.changedZones where number != .defaultZone {
      guard let name = zones.name(of: number), var row = zones.row(named: name),
        let counter = batch.counter
      else { continue }
      row.change = counter
      batch.zones.append(row)
    }
    let names = plan.changedZones.compactMap(zones.name).sorted()
    if context.wantsSyncToken, let counter = batch.counter, let zone = names.first,
      let row = zones.row(named: zone)
    {
      let token = ChangeToken(zone: row.number, id, counter: counter)
      json.member("syncToken", try service.seal(token, context))
    }
    json.endObject()
    let reply = json.data
    keep(reply, in: &batch)
    return (
      batch,
      Outcome(
        reply: reply,
        committed: Committed(zones: names, saved: plan.savedCount, deleted: plan.deletedCount)
      )
    )
  }

  // MARK: Replays

  private func storedReply() throws -> Data? {
    guard let sequence else { return nil }
    let stored = try service.storage.read {
      try $0.reply(in: id, user: user, device: sequence.device, sequence: sequence.sequence)
    }
    guard let stored else { return nil }
    guard stored.body.prefix(Self.markSize) == mark else {
      throw ErrorDictionary(
        .badRequest,
        "the sequence number \(sequence.sequence) was used for another batch",
        extension: ErrorExtension(code: .sequenceReused)
      )
    }
    return Data(stored.body.dropFirst(Self.markSize))
  }

  private func keep(_ reply: Data, in batch: inout WriteBatch) {
    guard let sequence else { return }
    batch.reply = StoredReply(
      user: user,
      device: sequence.device,
      sequence: sequence.sequence,
      body: mark + reply
    )
    batch.acknowledged = WriteBatch.Acknowledgement(
      user: user,
      device: sequence.device,
      sequence: max(sequence.acknowledged, sequence.sequence - Self.keptReplies)
    )
  }

  private static let markSize = 16

  /// Bounds what a device that never acknowledges makes the server keep.
  private static let keptReplies: Int64 = 1000

  /// Tells one batch from another, so that a number used twice is noticed.
  private var mark: Data {
    var hash = SHA256()
    for operation in request.operations {
      let name = operation.record.recordName ?? ""
      hash.update(data: Data("\(operation.operationType.rawValue):\(name)\n".utf8))
    }
    return Data(hash.finalize()).prefix(Self.markSize)
  }

  // MARK: Replies

  private func render(
    _ item: ModifyPlan.Item,
    _ operation: RecordOperation,
    _ rendering: RecordRendering,
    to json: inout JSONWriter
  ) throws {
    let shape = RecordRendering.Shape(
      desiredKeys: operation.desiredKeys ?? request.desiredKeys,
      numbersAsStrings: operation.numbersAsStrings ?? request.numbersAsStrings
    )
    switch item {
    case .saved(let record): try rendering.write(record, shape, to: &json)
    case .deleted(let name): json.record(RecordDictionary(recordName: name, deleted: true))
    case .failed(var error, let current):
      error.recordName = operation.record.recordName
      if context.isExtended, let current {
        let whole = RecordRendering.Shape(
          desiredKeys: nil,
          numbersAsStrings: shape.numbersAsStrings
        )
        error.extension?.serverRecord = try rendering.dictionary(current, whole)
      }
      try rendering.write(error, to: &json)
    }
  }
}
