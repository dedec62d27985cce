import CloudKitWebServices
import Crypto
import Effects
import Foundation

/// One `records/modify`: loads, decides, renders.
struct ModifyCall: Sendable {
  let parts: RecordWriter
  let request: ModifyRecordsRequest
  let context: RequestContext
  let user: String
  let sequence: ClientSequence?
  /// The bytes of the reply about other owners' records.
  var repliedBytes = 0
  /// Bytes of notifications that the caller may cause.
  var notificationBytes = Int.max
  /// The look-ups of users that the request has charged, over all its attempts.
  let lookups = ChargedLookups()
  /// Whether the service itself removes fields that the schema no longer declares.
  var isErasing = false
  /// Whether the limits of a request apply.
  ///
  /// The service's own erasing halves its batches at a limit; a single operation of it has no
  /// limits, since the erasing must complete.
  var hasLimits: Bool { !isErasing || request.operations.count > 1 }
  /// The database of the zones, read again with each attempt: rights may have ended in between.
  var database = TargetDatabase(
    id: PartitionID(rawValue: 0),
    owner: "",
    rows: [],
    access: .shared([:])
  )

  struct Outcome: Sendable {
    var reply: Data
    /// Nil if nothing was written.
    var note: CommitNotification?
    /// The rows that were added besides records.
    var linkedRows = 0
    /// The device whose last batch the commit records, and its time.
    var recordedDevice: (name: String, time: Int64)?
    /// The codes of the operations that were refused.
    var refusals: [ServerErrorCode] = []
  }

  var id: PartitionID { database.id }

  var device: String? { context.clientID ?? request.clientSequence?.device }

  /// The zone of each operation, as the request names it.
  var namedZones: [ZoneID] {
    request.operations.map { $0.record.zoneID ?? request.zoneID ?? .defaultZone }
  }

  /// Whether the batch is written atomically.
  var isAtomic: Bool {
    context.scope != .public && request.atomic != false && namedZones.contains { !$0.isDefault }
  }

  mutating func decide() throws -> (WriteBatch?, Outcome) {
    let loaded = try parts.storage.read { snapshot -> Loaded in
      database = try parts.databases.target(of: namedZones, context, snapshot)
      if let reply = try storedReply(snapshot) { return .answered(reply) }
      let (input, zones) = try load(snapshot)
      return .loaded(input, zones)
    }
    switch loaded {
    case .answered(let reply): return (nil, Outcome(reply: reply))
    case .loaded(let input, let zones): return try decide(on: input, zones)
    }
  }

  /// Whether a batch that was executed has a reply which its repetition gets.
  var mayHaveReply: Bool { sequence != nil || context.caller.signature != nil }

  /// The reply to a batch that was executed before.
  func keptReply(_ snapshot: any StorageSnapshot) throws -> Data? {
    var call = self
    call.database = try parts.databases.target(of: namedZones, context, snapshot)
    return try call.storedReply(snapshot)
  }

  private enum Loaded {
    /// The batch was already executed; with its kept reply.
    case answered(Data)
    case loaded(ModifyInput, ZoneDirectory)
  }

  private func decide(
    on input: ModifyInput,
    _ zones: ZoneDirectory
  ) throws -> (WriteBatch?, Outcome) {
    let plan = try ModifyPlanner.plan(input)
    let rendering = RecordRendering(
      renderer: parts.renderer,
      partition: id,
      zones: zones,
      context: context
    )
    var json = JSONWriter(capacity: 64 + 1024 * plan.items.count)
    json.beginObject()
    json.key("records")
    json.beginArray()
    let common = RecordRendering.Shape(
      desiredKeys: request.desiredKeys,
      numbersAsStrings: request.numbersAsStrings
    )
    for (index, (item, operation)) in zip(plan.items, request.operations).enumerated() {
      let name = input.operations[index].record.recordName
      try render(item, operation, named: name, common, rendering, to: &json)
      guard hasLimits else { continue }
      // Nothing has been written yet, so the client can send fewer operations.
      do throws(ReplyTooLarge) {
        try parts.limits.checkReply(
          repliedBytes + json.count,
          count: plan.items.count + (repliedBytes > 0 ? 1 : 0)
        )
      } catch {
        throw error.dictionary
      }
    }
    json.endArray()
    guard var batch = plan.batch else {
      json.endObject()
      return (nil, Outcome(reply: json.finished(), refusals: plan.refusals))
    }
    if parts.effects.has(.dropTombstone) {
      batch.erasedRecords += batch.records.filter(\.isDeleted).map(\.key)
      batch.records.removeAll(where: \.isDeleted)
    }
    if batch.schema != nil, !isErasing {
      let key = SchemaErasing.key(context.container)
      guard try parts.storage.read({ try $0.entry(key) }) == nil else { throw ErasingUnderway() }
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
      json.member("syncToken", try parts.tokens.seal(token, context))
    }
    json.endObject()
    let reply = json.finished()
    try keep(reply, in: &batch)
    var note = try self.note(of: plan, &batch, input, zones: names)
    try parts.delivery.post(&note, in: &batch, hasSubscribers: !input.subscriptions.owned.isEmpty)
    return (
      batch,
      Outcome(
        reply: reply,
        note: note,
        linkedRows: batch.linkedRowCount + batch.sharedRowCount,
        recordedDevice: batch.reply.flatMap { reply in
          reply.rules.map { (reply.stored.device, $0.now) }
        },
        refusals: plan.refusals
      )
    )
  }

  // MARK: Replays

  private func storedReply(_ snapshot: any StorageSnapshot) throws -> Data? {
    if let mark = context.caller.signature { return try snapshot.entry(mark.key)?.body }
    guard let sequence else { return nil }
    let stored = try snapshot.reply(
      in: id,
      user: user,
      device: sequence.device,
      from: sequence.sequence
    )
    guard let stored else { return nil }
    guard stored.sequence == sequence.sequence else {
      // A late repetition would create again what was deleted since.
      throw ErrorDictionary(
        .badRequest,
        "the device has executed a batch after the one with the sequence number "
          + "\(sequence.sequence), whose reply was acknowledged",
        extension: ErrorExtension(code: .sequencePassed)
      )
    }
    let body = try parts.vault.open(stored.body, for: replyPurpose(sequence))
    guard body.prefix(Self.markSize) == mark else {
      throw ErrorDictionary(
        .badRequest,
        "the sequence number \(sequence.sequence) was used for another batch",
        extension: ErrorExtension(code: .sequenceReused)
      )
    }
    return Data(body.dropFirst(Self.markSize))
  }

  private func replyPurpose(_ sequence: ClientSequence) -> String {
    "reply \(id.rawValue) \(user) \(sequence.device) \(sequence.sequence)"
  }

  private func keep(_ reply: Data, in batch: inout WriteBatch) throws {
    if let mark = context.caller.signature {
      // A repeated signature gets this reply, also after a restart.
      batch.expectedEntries[mark.key] = .some(nil)
      batch.savedEntries.append(DirectoryEntry(mark.key, expires: mark.expires, body: reply))
    }
    guard let sequence else { return }
    var write = WriteBatch.ReplyWrite(
      stored: StoredReply(
        user: user,
        device: sequence.device,
        sequence: sequence.sequence,
        body: try parts.vault.seal(mark + reply, for: replyPurpose(sequence))
      ),
      // Numbers are never negative, so the difference cannot overflow.
      acknowledged: max(sequence.acknowledged, max(0, sequence.sequence) - Self.keptReplies)
    )
    let now = parts.now
    let limit = parts.limits.sequenceDevices
    if let finished = sequence.finishedDevice, finished != sequence.device {
      // It may live on in a copy of its store.
      parts.sequenceDevices.forget(id, user, finished)
      write.finishedDevice = WriteBatch.FinishedDevice(
        name: finished,
        sequence: sequence.acknowledged,
        silentSince: now
          - Int64((parts.limits.replyLifetime - parts.limits.finishedReplyLifetime) * 1000)
      )
    }
    if parts.sequenceDevices.isDue(id, user, sequence.device, now: now) {
      write.rules = WriteBatch.ReplyRules(
        now: now,
        oldest: now - Int64(parts.limits.replyLifetime * 1000),
        devices: limit
      )
    }
    batch.reply = write
  }

  private static let markSize = 16

  /// Bounds what a device that never acknowledges makes the server keep.
  private static let keptReplies: Int64 = 16

  /// A digest of the batch, to detect a number that is used twice.
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
    named name: String?,
    _ common: RecordRendering.Shape,
    _ rendering: RecordRendering,
    to json: inout JSONWriter
  ) throws {
    let shape = common.overridden(
      desiredKeys: operation.desiredKeys,
      numbersAsStrings: operation.numbersAsStrings
    )
    switch item {
    case .saved(let record, isReadable: true): try rendering.write(record, shape, to: &json)
    case .saved(let record, isReadable: false):
      let sent = Set((operation.record.fields ?? [:]).keys)
      try rendering.writeReceipt(record, sent, shape, to: &json)
    case .deleted(let name): json.record(RecordDictionary(recordName: name, deleted: true))
    case .failed(var error, let current):
      error.recordName = name
      if context.isExtended, let current {
        let whole = RecordRendering.Shape(
          desiredKeys: nil,
          numbersAsStrings: shape.numbersAsStrings
        )
        // If the record cannot be rendered, the error is sent without it, and the other items keep
        // their results.
        error.extension?.serverRecord = try? rendering.dictionary(current, whole)
      }
      // Differs from CloudKit's document, which lists EXISTS: the live service says CONFLICT, and
      // clients written against it expect that. Our own clients receive the exact code.
      if !context.isExtended, error.serverErrorCode == .exists { error.serverErrorCode = .conflict }
      try rendering.write(error, to: &json)
    }
  }
}
