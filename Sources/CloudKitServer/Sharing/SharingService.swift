import CloudKitWebServices
import Effects
import Foundation

/// `records/resolve`, `records/accept` and `records/request-access`.
final class SharingService: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  let delivery: NotificationDelivery
  let signer: Signer
  let address: ServerAddress
  let limits: ServiceLimits
  let effects: Effects
  private let users: UserService
  let reads: BoundedReads
  let rates: RequestRates
  private let renderer: RecordRenderer

  init(
    storage: any Storage,
    writer: StorageWriter,
    users: UserService,
    reads: BoundedReads,
    rates: RequestRates,
    delivery: NotificationDelivery,
    renderer: RecordRenderer,
    signer: Signer,
    address: ServerAddress,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.users = users
    self.reads = reads
    self.rates = rates
    self.delivery = delivery
    self.renderer = renderer
    self.signer = signer
    self.address = address
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  func resolve(_ request: ShortGUIDsRequest, _ context: RequestContext) async throws -> Data {
    try check(request, context)
    return try await reads.run(for: context) { [self] control in
      var reply = ShareReply()
      for (index, guid) in request.shortGUIDs.enumerated() {
        reply.append(try metadata(guid, context, control))
        do throws(ReplyTooLarge) {
          try limits.checkReply(reply.count, count: index + 1)
        } catch {
          throw error.dictionary
        }
      }
      return reply.finished()
    }
  }

  func accept(_ request: ShortGUIDsRequest, _ context: RequestContext) async throws -> Data {
    _ = try context.user()
    try check(request, context)
    var reply = ShareReply()
    /// The outcome for each short ID: one that is named again is not joined again.
    var outcomes: [String: Result<Void, ErrorDictionary>] = [:]
    rates.countRequests(request.shortGUIDs.count - 1, context)
    for guid in request.shortGUIDs {
      do {
        // A share without room in the reply is not joined; the client names it again.
        guard reply.count <= limits.bytesPerReply else {
          throw ReplyTooLarge(limit: limits.bytesPerReply).dictionary
        }
        if outcomes[guid.value] == nil {
          outcomes[guid.value] = try await outcome { try await self.accept(guid, context) }
        }
        try outcomes[guid.value]?.get()
      } catch let error as ErrorDictionary {
        reply.append(try encoded(.failure(failed(error, guid, context))))
        continue
      }
      reply.append(
        try await reads.run(for: context) { [self] control in try metadata(guid, context, control) }
      )
    }
    return reply.finished()
  }

  private func outcome(
    of body: () async throws -> Void
  ) async throws -> Result<Void, ErrorDictionary> {
    do {
      return .success(try await body())
    } catch let error as ErrorDictionary {
      return .failure(error)
    }
  }

  /// A reply of `records/resolve` or `records/accept`; each item is encoded at once, so that no
  /// more than one of them is in memory as values.
  private struct ShareReply {
    private var items = Data()

    var count: Int { items.count }

    mutating func append(_ item: Data) {
      if !items.isEmpty { items.append(UInt8(ascii: ",")) }
      items.append(item)
    }

    func finished() -> Data { Data(#"{"results":["#.utf8) + items + Data("]}".utf8) }
  }

  func check(
    _ request: ShortGUIDsRequest,
    _ context: RequestContext
  ) throws(ErrorDictionary) {
    try limits.checkCount(request.shortGUIDs.count)
    guard context.scope == .public else {
      throw ErrorDictionary(
        .badRequest,
        "endpoint not applicable in the database type '\(context.scope.rawValue)db'"
      )
    }
  }

  // MARK: Finding

  /// Finds a share for the caller; one that the caller may not see is treated as missing.
  ///
  /// A caller without a user is asked to sign in for both: the user may be invited.
  func locate(
    _ guid: ShortGUID,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> LocatedShare {
    let located = try find(guid, context, snapshot)
    guard let located, located.participant != nil || located.state.publicPermission.canRead else {
      throw context.principal == nil ? signInFirst(context) : ShareState.notFound
    }
    return located
  }

  /// Finds a share, regardless of the caller, who must not be informed of it by that alone.
  func find(
    _ guid: ShortGUID,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> LocatedShare? {
    guard let found = try snapshot.shortGUID(guid.value), found.container == context.container,
      found.environment == context.environment,
      let row = try snapshot.zones(in: found.partition, named: [found.zoneName]).first,
      row.number == found.zone, row.ending == nil
    else { return nil }
    let key = RecordKey(zone: found.zone, name: found.recordName)
    var records = try snapshot.records(in: found.partition, keys: [key])
    guard let record = records[key], !record.isDeleted else { return nil }
    var root: StoredRecord?
    var share = record
    if !record.isShare {
      guard let name = try record.decodedSharing()?.share else { return nil }
      let shareKey = RecordKey(zone: found.zone, name: name)
      records = try snapshot.records(in: found.partition, keys: [shareKey])
      guard let linked = records[shareKey], !linked.isDeleted else { return nil }
      root = record
      share = linked
    }
    guard let state = try share.decodedSharing()?.state else { return nil }
    var located = LocatedShare(
      guid: found,
      row: row,
      counter: try snapshot.database(found.partition).counter,
      share: share,
      state: state,
      root: root
    )
    if let principal = context.principal {
      located.person = try users.person(named: principal.userRecordName, context, snapshot)
    }
    return located
  }

  private func signInFirst(_ context: RequestContext) -> ErrorDictionary {
    ErrorDictionary(
      .authenticationRequired,
      "request needs authorization",
      redirectURL: context.caller.signInURL
    )
  }

  // MARK: Accepting

  func accept(_ guid: ShortGUID, _ context: RequestContext) async throws {
    let user = try context.user().userRecordName
    guard let partition = try await unjoined(guid, context) else { return }
    let note = try await writer.write(to: partition) {
      [self] () -> (WriteBatch?, CommitNotification?) in
      let located = try storage.read { try locate(guid, context, $0) }
      guard let person = located.person, user != located.guid.owner else { return (nil, nil) }
      var state = located.state
      let change = located.counter.next
      state.forgetParticipations(before: located.row.horizon)
      let isNew = try state.accept(
        person,
        at: change,
        participantID: effects.uuid().uuidString,
        limit: limits.participantsPerShare,
        participationLimits: ShareState.ParticipationLimits(
          perUser: limits.participationsPerUser,
          inAll: limits.participationsPerShare
        )
      )
      try checkLinks(of: user, adding: located, context)
      guard isNew else {
        var batch = WriteBatch(partition: located.guid.partition)
        batch.shareLinks = [link(of: user, to: located, context)]
        return (batch, nil)
      }
      return try self.change(located, to: state, by: user, stamped: user, context)
    }
    if let note { delivery.announce(note) }
  }

  /// The database of a share, or nil if the caller has joined it, or owns it: nothing is written
  /// then, and no turn of the writers is taken.
  private func unjoined(
    _ guid: ShortGUID,
    _ context: RequestContext
  ) async throws -> PartitionID? {
    let user = try context.user().userRecordName
    return try await reads.run(for: context) { [self] control in
      try storage.read(control) { snapshot in
        let located = try locate(guid, context, snapshot)
        guard located.person != nil, user != located.guid.owner else { return nil }
        guard located.participant?.status == .accepted,
          try snapshot.hasShareLink(link(of: user, to: located, context))
        else { return located.guid.partition }
        return nil
      }
    }
  }

  /// Refuses a share beyond those that one user may have joined; those that ended are kept, since a
  /// device that was away learns of the end by them.
  private func checkLinks(
    of user: String,
    adding located: LocatedShare,
    _ context: RequestContext
  ) throws {
    guard try !hasPlace(forLinkOf: user, to: located, context) else { return }
    throw ErrorDictionary(
      .badRequest,
      "a user joins at most \(limits.joinedSharesPerUser) shares",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  /// Whether a user has fewer links than shares that one may have joined, or has this one.
  func hasPlace(
    forLinkOf user: String,
    to located: LocatedShare,
    _ context: RequestContext
  ) throws -> Bool {
    try storage.read { snapshot in
      let count = try snapshot.shareLinkCount(
        container: context.container,
        environment: context.environment,
        user: user
      )
      guard count >= limits.joinedSharesPerUser else { return true }
      return try snapshot.hasShareLink(link(of: user, to: located, context))
    }
  }

  /// The user's own list of shares, to find them; the rights are in the share.
  private func link(
    of user: String,
    to located: LocatedShare,
    _ context: RequestContext
  ) -> StoredShareLink {
    StoredShareLink(
      container: context.container,
      environment: context.environment,
      user: user,
      partition: located.guid.partition,
      owner: located.guid.owner,
      zone: located.guid.zone,
      zoneName: located.guid.zoneName,
      share: located.share.key.name
    )
  }

  /// Writes a change of a share by a user who may not save it: joining, or requesting access.
  func change(
    _ located: LocatedShare,
    to state: ShareState,
    by user: String,
    stamped author: String?,
    _ context: RequestContext
  ) throws -> (WriteBatch?, CommitNotification?) {
    let change = located.counter.next
    let stamping = RecordStamping(
      now: now,
      user: author ?? "",
      device: context.clientID,
      randomness: effects.randomness
    )
    var sharing = try located.share.decodedSharing() ?? RecordSharing()
    sharing.state = state
    try sharing.checkSize(limits, before: located.share.sharing?.count)
    var record = located.share
    record.change = change
    record.tag = stamping.tag()
    if author != nil { record.modified = stamping.stamp }
    record.sharing = try WireCoding.encode(sharing)
    record.membership?.seen = change
    var row = located.row
    row.change = change
    var batch = WriteBatch(partition: located.guid.partition)
    batch.shareLinks = [link(of: user, to: located, context)]
    batch.expectedCounter = located.counter
    batch.counter = change
    batch.records = [record]
    try storage.read { snapshot in
      try snapshot.reindex(located.share, as: record, in: located.guid.partition, &batch)
    }
    batch.zones = [row]
    var note = delivery.note(
      context,
      partition: located.guid.partition,
      owner: located.guid.owner,
      device: nil
    )
    note.scope = .private
    note.zones = [row.name]
    note.shares = [
      CommitNotification.TouchedShare(
        zone: row.number,
        zoneName: row.name,
        share: located.share.key.name
      )
    ]
    note.savedCount = 1
    try delivery.post(&note, in: &batch)
    return (batch, note)
  }

  // MARK: Replies

  /// The encoded item of a short ID.
  private func metadata(
    _ guid: ShortGUID,
    _ context: RequestContext,
    _ control: ReadControl
  ) throws -> Data {
    try control.check()
    return try storage.read(control) { snapshot in
      do {
        let located = try locate(guid, context, snapshot)
        return try encoded(.success(try metadata(of: located, guid, context)))
      } catch let error as ErrorDictionary {
        return try encoded(.failure(failed(error, guid, context)))
      }
    }
  }

  private func encoded(_ item: ItemResult<ShareMetadata>) throws -> Data {
    try WireCoding.encode(item)
  }

  /// The error with its subject.
  private func failed(
    _ error: ErrorDictionary,
    _ guid: ShortGUID,
    _ context: RequestContext
  ) -> ErrorDictionary {
    var error = context.stripped(error)
    error.shortGUID = guid
    return error
  }

  private func metadata(
    of located: LocatedShare,
    _ guid: ShortGUID,
    _ context: RequestContext
  ) throws -> ShareMetadata {
    let state = located.state
    let isOwner = context.reader == .user(located.guid.owner)
    // As the caller will read it: in the shared database, or in their own.
    var reading = context
    reading.scope = isOwner ? .private : .shared
    var rendering = RecordRendering(
      renderer: renderer,
      partition: located.guid.partition,
      zones: ZoneDirectory([located.row], reading, owner: located.guid.owner),
      context: reading
    )
    let participant = located.participant
    rendering.invitation = participant?.status == .invited ? participant?.id : nil
    let isPublic = state.publicPermission.canRead
    var root: RecordDictionary?
    if guid.shouldFetchRootRecord == true, let record = located.root {
      let shape = RecordRendering.Shape(
        desiredKeys: guid.rootRecordDesiredKeys,
        numbersAsStrings: nil
      )
      root = try rendering.dictionary(record, shape)
    }
    let all = RecordRendering.Shape(desiredKeys: nil, numbersAsStrings: nil)
    var share = try rendering.dictionary(located.share, all)
    share.sharing = state.dictionary(for: context.reader, as: located.person, host: address.host)
    return ShareMetadata(
      shortGUID: guid,
      containerIdentifier: context.container,
      environment: context.environment.rawValue,
      databaseScope: isOwner ? "PRIVATE" : "SHARED",
      zoneID: rendering.zones.id(named: located.row.name),
      rootRecordName: located.root?.key.name ?? located.share.key.name,
      rootRecord: root,
      share: share,
      ownerIdentity: state.owner?.dictionary(showsContact: isOwner).userIdentity ?? UserIdentity(),
      participantType: participant?.type ?? .publicUser,
      participantStatus: participant?.status ?? .invited,
      participantPermission: participant.map {
        $0.type == .publicUser ? state.publicPermission : $0.permission
      } ?? state.publicPermission,
      potentialMatchList: potentialMatches(located),
      webpageURL: shareURL(state.shortGUID),
      anonymousPublicAccess: try publicAccess(to: located, context),
      requireAppleLogin: !isPublic
    )
  }

  /// Invitations by address that the caller has not accepted.
  private func potentialMatches(_ located: LocatedShare) -> [PotentialMatch]? {
    guard let participant = located.participant, participant.status == .invited,
      let info = participant.lookupInfo
    else { return nil }
    return [PotentialMatch(participantId: participant.id, contactInformation: info)]
  }

  func shareURL(_ guid: String) -> String {
    "\(address.url)\(Route.Section.share.path)/\(WebServicePath.escape(guid))"
  }
}
