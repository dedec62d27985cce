import CloudKitWebServices
import Foundation

/// Saving and deleting shares and their roots, and the permissions of participants.
extension ModifyPlanner {
  // MARK: What the caller sees

  private var caller: String { input.stamping.user }

  private func reader(of key: RecordKey) -> Reader { input.sharing.access.reader(of: key.zone) }

  /// The existing record, if the caller may see it.
  func visible(_ key: RecordKey) -> StoredRecord? {
    guard let found = current(key) else { return nil }
    // Saved in this batch: the caller may see what they have just written.
    return saved[key] != nil || reader(of: key).sees(found) ? found : nil
  }

  func checkShareAccess(_ found: StoredRecord, _ key: RecordKey) throws {
    // Only their administrators save shares, and a participant who deletes one leaves it.
    if found.isShare { return }
    guard reader(of: key).mayWrite(found) || saved[key] != nil else { throw Self.denied }
  }

  func checkDeletion(of found: StoredRecord) throws {
    guard input.sharing.access.isShared else { return }
    if try found.decodedSharing()?.share != nil {
      throw ErrorDictionary(.accessDenied, "only its owner can delete the root of a share")
    }
  }

  /// Whether a cascade may delete a record: in a shared database only what the caller may delete by
  /// itself, so neither records that are hidden or only readable, nor shares and their roots.
  func mayDeleteAlong(_ found: StoredRecord) throws -> Bool {
    guard input.sharing.access.isShared else { return true }
    guard !found.isShare, reader(of: found.key).mayWrite(found) else { return false }
    return try found.decodedSharing()?.share == nil
  }

  /// One error for everything that a participant may not write, so that it reveals nothing else.
  static let denied = ErrorDictionary(.accessDenied, "WRITE operation not permitted")

  func checkedParent(
    _ parent: ParentDictionary,
    _ zone: ZoneID,
    _ key: RecordKey
  ) throws -> String {
    if let named = parent.zoneID, named.zoneName != zone.zoneName {
      throw ErrorDictionary(.badRequest, "the parent is in another zone, \(named.zoneName)")
    }
    guard parent.recordName != key.name else {
      throw ErrorDictionary(.badRequest, "a record cannot be its own parent")
    }
    return parent.recordName
  }

  // MARK: Roots

  /// The sharing state of a record that is no share.
  mutating func rootSharing(
    _ operation: KeyedOperation,
    _ key: RecordKey,
    _ found: StoredRecord?,
    movesTo parent: String?
  ) throws -> RecordSharing? {
    let sharing = try found.flatMap { try self.sharing(of: key, $0) }
    if input.sharing.access.isShared {
      if sharing?.share != nil, found?.parent != parent {
        throw ErrorDictionary(.accessDenied, "only its owner can move the root of a share")
      }
      return sharing
    }
    guard operation.record.createShortGUID == true, sharing?.shortGUID == nil else {
      return sharing
    }
    try checkCanShare(key)
    var made = sharing ?? RecordSharing()
    made.shortGUID = input.sharing.makeGUID()
    madeGUIDs[key] = made.shortGUID
    return made
  }

  private func checkCanShare(_ key: RecordKey) throws {
    guard input.scope == .private, key.zone != .defaultZone else {
      throw ErrorDictionary(
        .badRequest,
        "sharing is possible in custom zones of the private database only"
      )
    }
  }

  // MARK: Shares

  /// The fields of a share: the documented ones, and the app's own as in any type.
  func admitShareFields(
    _ fields: [String: FieldValue],
    _ schema: inout SchemaDraft
  ) throws -> [String: FieldValue] {
    let known: [String: FieldSchemaType] = [
      "cloudkit.title": .typed(.string), "cloudkit.type": .typed(.string),
      "cloudkit.thumbnailImageData": .typed(.bytes),
    ]
    var admitted: [String: FieldValue] = [:]
    var others: [String: FieldValue] = [:]
    for (name, value) in fields {
      if let type = known[name] {
        admitted[name] = try SchemaDraft.fit(
          value,
          to: FieldSchema(name: name, type: type),
          type: ShareDictionary.recordType
        )
      } else {
        others[name] = value
      }
    }
    if !others.isEmpty {
      admitted.merge(try schema.admit(others, type: ShareDictionary.recordType)) { $1 }
    }
    return admitted
  }

  /// The state of a share after a save.
  mutating func share(
    _ operation: KeyedOperation,
    _ key: RecordKey,
    _ found: StoredRecord?
  ) throws -> RecordSharing {
    let request = operation.record.sharing ?? ShareDictionary()
    var sharing: RecordSharing
    if let found {
      let known = try saved[key]?.sharing ?? found.decodedSharing()
      guard let known, known.state?.mayInvite(caller) == true else { throw Self.denied }
      sharing = known
    } else {
      guard !input.sharing.access.isShared else { throw Self.denied }
      try checkCanShare(key)
      sharing = RecordSharing(state: try newShare(request, key))
    }
    let people = input.sharing.people
    try sharing.state?.apply(
      request,
      ShareState.Edit(
        participantLimit: input.limits.participantsPerShare,
        blockedLimit: input.limits.blockedPerShare,
        textLimit: input.limits.nameLength,
        newID: input.sharing.makeID,
        person: { people[$0] }
      )
    )
    try sharing.checkSize(input.limits, before: found?.sharing?.count)
    return sharing
  }

  private mutating func newShare(_ request: ShareDictionary, _ key: RecordKey) throws -> ShareState
  {
    guard let owner = input.sharing.owner else { throw Self.denied }
    let root: RecordKey?
    var guid: String?
    if key.name == ShareDictionary.zoneShareName {
      guard request.forRecord == nil else {
        throw ErrorDictionary(.badRequest, "the share of a zone has no 'forRecord'")
      }
      guard !hasShares(in: key.zone) else {
        throw ErrorDictionary(.badRequest, "records of the zone are shared already, one by one")
      }
      root = nil
    } else {
      let ofZone = RecordKey(zone: key.zone, name: ShareDictionary.zoneShareName)
      guard current(ofZone)?.isShare != true else {
        throw ErrorDictionary(.badRequest, "the zone is shared already, as a whole")
      }
      guard let forRecord = request.forRecord else {
        throw ErrorDictionary(.badRequest, "missing required field 'forRecord'")
      }
      let shared = RecordKey(zone: key.zone, name: forRecord.recordName)
      guid = try checkRoot(shared, forRecord)
      root = shared
    }
    let shortGUID = guid ?? input.sharing.makeGUID()
    // Again if the root already has one: the short ID's target is written with the share.
    madeGUIDs[root ?? key] = shortGUID
    if let root { try begin(key.name, at: root, shortGUID) }
    var state = ShareState(
      root: root?.name,
      shortGUID: shortGUID,
      owner: owner,
      participantID: input.sharing.makeID()
    )
    // An ended share of this name still has its former participations.
    state.participations = try input.existing[key]?.decodedSharing()?.state?.participations ?? []
    return state
  }

  /// Whether records of a zone that is to be shared as a whole are shared.
  private func hasShares(in zone: ZoneNumber) -> Bool {
    let isStored = (input.sharing.shares[zone] ?? []).contains {
      deleted[RecordKey(zone: zone, name: $0)] == nil
    }
    return isStored || saved.values.contains { $0.stored.isShare && $0.stored.key.zone == zone }
  }

  /// Checks the record that is to be shared and returns its short ID, if it has one.
  private func checkRoot(
    _ key: RecordKey,
    _ forRecord: SharedRootDictionary
  ) throws -> String? {
    guard let root = current(key), !root.isShare else {
      if isOfFailedBatch(key) { throw Self.batchFailed }
      throw ErrorDictionary(.notFound, "Cannot share - no such record exists to share")
    }
    // If the record is saved in the same batch, the caller cannot know its new tag.
    if let tag = forRecord.recordChangeTag, let stored = input.existing[key], !stored.isDeleted,
      stored.tag != tag
    {
      throw FailureError(failure: conflict(stored))
    }
    let sharing = try sharing(of: key, root)
    if let share = sharing?.share, current(RecordKey(zone: key.zone, name: share)) != nil {
      throw ErrorDictionary(.badRequest, "the record '\(key.name)' is shared already")
    }
    return sharing?.shortGUID
  }

  func sharing(of key: RecordKey, _ stored: StoredRecord) throws -> RecordSharing? {
    try touchedRoots[key] ?? (saved[key].map { $0.sharing } ?? stored.decodedSharing())
  }

  private mutating func begin(_ share: String, at root: RecordKey, _ guid: String) throws {
    var sharing = try current(root).flatMap { try self.sharing(of: root, $0) } ?? RecordSharing()
    sharing.share = share
    sharing.shortGUID = guid
    if saved[root] != nil { saved[root]?.sharing = sharing } else { touchedRoots[root] = sharing }
  }

  /// Ends the participation of a participant who deletes the share.
  mutating func leave(_ found: StoredRecord, _ index: Int) throws {
    var sharing = try found.decodedSharing() ?? RecordSharing()
    sharing.state?.leave(caller, at: ShareState.thisCommit)
    var record = found
    record.modified = input.stamping.stamp
    saved[found.key] = Draft(
      stored: record,
      fields: try found.decodedFields(),
      contents: found.contents,
      sharing: sharing
    )
    savedBy[found.key] = index
  }
}
