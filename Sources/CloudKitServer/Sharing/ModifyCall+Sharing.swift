import CloudKitWebServices
import Effects
import Foundation

/// Loads the rows of shares that a batch may change; reads nothing if nothing is shared.
extension ModifyCall {
  func loadSharing(
    _ operations: [KeyedOperation],
    _ records: inout LoadedRecords,
    _ zones: ZoneDirectory,
    _ snapshot: any StorageSnapshot
  ) throws -> SharingInput {
    var input = SharingInput(
      container: context.container,
      environment: context.environment,
      access: database.access
    )
    input.makeID = { [effects = parts.effects] in effects.uuid().uuidString }
    input.makeGUID = { [effects = parts.effects] in
      "0" + effects.randomness.bytes(18).base64URL
    }
    guard context.scope != .public else { return input }
    for zone in Set(operations.compactMap(\.key?.zone)) {
      input.zoneNames[zone] = zones.name(of: zone)
    }
    try loadShares(operations, &records, &input, snapshot)
    try loadSubtrees(operations, records.found, &input, snapshot)
    return input
  }

  // MARK: Shares

  private func loadShares(
    _ operations: [KeyedOperation],
    _ records: inout LoadedRecords,
    _ input: inout SharingInput,
    _ snapshot: any StorageSnapshot
  ) throws {
    var wanted: Set<RecordKey> = []
    var isEdited = false
    var makesGUID = false
    var sharedZones: Set<ZoneNumber> = []
    for operation in operations {
      guard let key = operation.key else { continue }
      if operation.record.createShortGUID == true { makesGUID = true }
      let isShare =
        operation.record.sharedRecordType == ShareDictionary.recordType
        || operation.record.sharing != nil || records.found[key]?.isShare == true
      if isShare, !operation.type.isDelete {
        isEdited = true
        // A zone that is shared as a whole has no other share.
        if records.found[key].map({ $0.isDeleted || !$0.isShare }) ?? true {
          wanted.insert(RecordKey(zone: key.zone, name: ShareDictionary.zoneShareName))
          if key.name == ShareDictionary.zoneShareName { sharedZones.insert(key.zone) }
        }
      }
      if let root = operation.record.sharing?.forRecord {
        wanted.insert(RecordKey(zone: key.zone, name: root.recordName))
      }
    }
    try records.load(wanted)
    // A root has its share's name, a share its root's.
    var linked: Set<RecordKey> = []
    for (key, record) in records.found where record.sharing != nil {
      let sharing = try record.decodedSharing()
      for name in [sharing?.share, sharing?.state?.root].compactMap({ $0 }) {
        linked.insert(RecordKey(zone: key.zone, name: name))
      }
    }
    // The ancestors of a root determine whether it is already shared.
    for key in wanted {
      guard let parent = records.found[key]?.parent else { continue }
      linked.insert(RecordKey(zone: key.zone, name: parent))
    }
    try records.load(linked)
    guard isEdited || makesGUID else { return }
    input.owner = try parts.users.person(named: database.owner, context, snapshot)
    guard isEdited else { return }
    for zone in sharedZones where zone != .defaultZone {
      input.shares[zone] = try snapshot.shareNames(
        in: id,
        zone: zone,
        limit: hasLimits ? operations.count + parts.limits.recordsPerCascade + 1 : .max
      )
    }
    try loadPeople(operations, records.found, &input, snapshot)
  }

  /// Looks up each person who is named in a list of participants once.
  ///
  /// Participants that a share does not have yet count as look-ups of people by the user: the reply
  /// says which of them have an account.
  private func loadPeople(
    _ operations: [KeyedOperation],
    _ existing: [RecordKey: StoredRecord],
    _ input: inout SharingInput,
    _ snapshot: any StorageSnapshot
  ) throws {
    var infos: Set<LookupInfo> = []
    var added: Set<LookupInfo> = []
    for operation in operations {
      guard let key = operation.key, let entries = operation.record.sharing?.participants else {
        continue
      }
      let known = try existing[key]?.decodedSharing()?.state?.participants ?? []
      for entry in entries {
        guard let identity = entry.userIdentity else { continue }
        var info = identity.lookupInfo ?? LookupInfo()
        if let user = identity.userRecordName { info.userRecordName = user }
        infos.insert(info)
        if !known.contains(where: { $0.matches(entry) }) { added.insert(info) }
      }
    }
    if !added.isEmpty {
      try lookups.charge(added.count) { try parts.rates.checkLookups(of: $0, try context.user()) }
    }
    for info in infos { input.people[info] = try parts.users.person(info, context, snapshot) }
  }

  // MARK: Subtrees

  /// Follows parents down from records that may be added to a share, leave one, or change shares.
  private func loadSubtrees(
    _ operations: [KeyedOperation],
    _ existing: [RecordKey: StoredRecord],
    _ input: inout SharingInput,
    _ snapshot: any StorageSnapshot
  ) throws {
    var movers = try ended(operations, existing, &input, snapshot)
    // Only for a new parent the saved records are searched.
    let saved =
      operations.contains { $0.record.parent != nil }
      ? Set(operations.filter { !$0.type.isDelete }.compactMap(\.key)) : []
    for operation in operations {
      guard let key = operation.key else { continue }
      let stored = existing[key].flatMap { $0.isDeleted ? nil : $0 }
      if let root = operation.record.sharing?.forRecord {
        movers.insert(RecordKey(zone: key.zone, name: root.recordName))
      }
      guard let stored else {
        // Children of a deleted parent are below it again if it is saved later.
        if !operation.type.isDelete, let parent = newParent(of: operation, nil),
          mayBeShared(parent, key, existing, saved)
        {
          movers.insert(key)
        }
        continue
      }
      if operation.type.isDelete {
        if stored.membership != nil { movers.insert(key) }
        continue
      }
      let parent = newParent(of: operation, stored)
      guard parent != stored.parent else { continue }
      if stored.membership != nil || parent.map({ mayBeShared($0, key, existing, saved) }) == true {
        movers.insert(key)
      }
    }
    // Records that a cascade deletes may have had children in a share.
    if operations.contains(where: { $0.type.isDelete }) {
      let exemptFromCascades = self.exemptFromCascades(operations)
      for (key, record) in existing
      where record.membership != nil && !record.isDeleted && !exemptFromCascades.contains(key) {
        movers.insert(key)
      }
    }
    try descend(from: movers, existing, &input, snapshot)
  }

  /// The records that the batch saves: no cascade deletes them.
  ///
  /// Only for an atomic batch these are all of them. In others, a cascade may delete a record whose
  /// save failed.
  private func exemptFromCascades(_ operations: [KeyedOperation]) -> Set<RecordKey> {
    guard isAtomic else { return [] }
    let deleted = Set(operations.filter(\.type.isDelete).compactMap(\.key))
    return Set(operations.compactMap(\.key)).subtracting(deleted)
  }

  private func newParent(of operation: KeyedOperation, _ stored: StoredRecord?) -> String? {
    if let parent = operation.record.parent { return parent.recordName }
    return operation.record.removesParent ? nil : stored?.parent
  }

  private func mayBeShared(
    _ parent: String,
    _ key: RecordKey,
    _ existing: [RecordKey: StoredRecord],
    _ saved: Set<RecordKey>
  ) -> Bool {
    let parentKey = RecordKey(zone: key.zone, name: parent)
    return saved.contains(parentKey) || existing[parentKey]?.membership != nil
  }

  /// Shares that end: deleted by their owner, or with their root.
  private func ended(
    _ operations: [KeyedOperation],
    _ existing: [RecordKey: StoredRecord],
    _ input: inout SharingInput,
    _ snapshot: any StorageSnapshot
  ) throws -> Set<RecordKey> {
    guard !database.access.isShared, operations.contains(where: { $0.type.isDelete }) else {
      return []
    }
    var roots: Set<RecordKey> = []
    let exemptFromCascades = exemptFromCascades(operations)
    let deleted = Set(operations.filter(\.type.isDelete).compactMap(\.key))
    for (key, record) in existing where record.isShare && !record.isDeleted {
      guard let root = try record.decodedSharing()?.state?.root else { continue }
      // The share continues with a root that is saved, so its members need not be read.
      let rootKey = RecordKey(zone: key.zone, name: root)
      guard deleted.contains(key) || !exemptFromCascades.contains(rootKey) else { continue }
      let members = try snapshot.present(
        in: id,
        at: ChangeNumber(.max),
        ShareRange(
          zone: key.zone,
          share: key.name,
          after: .zero,
          limit: hasLimits ? movesLimit + 1 : .max
        )
      )
      try check(members.count)
      input.members[key] = members
      roots.insert(RecordKey(zone: key.zone, name: root))
    }
    return roots
  }

  private func descend(
    from movers: Set<RecordKey>,
    _ existing: [RecordKey: StoredRecord],
    _ input: inout SharingInput,
    _ snapshot: any StorageSnapshot
  ) throws {
    var level = movers
    /// The share of each record before the batch; the search below a record in another share begins
    /// there.
    var shares: [RecordKey: String] = [:]
    for key in movers { shares[key] = existing[key]?.membership?.share }
    var depth = 0
    while !level.isEmpty {
      depth += 1
      guard !hasLimits || depth <= parts.limits.parentDepth + 1 else {
        throw ErrorDictionary(
          .badRequest,
          "below a record are more than \(parts.limits.parentDepth) levels",
          extension: ErrorExtension(code: .limitExceeded)
        )
      }
      var next: Set<RecordKey> = []
      let children = try snapshot.children(
        in: id,
        of: level.sorted { $0.name < $1.name },
        // A record may be found a second time, below another level.
        limit: hasLimits ? movesLimit + 1 : .max
      )
      try check(children.count)
      for child in children where input.childrenByKey[child.key] == nil {
        let above = shares[RecordKey(zone: child.key.zone, name: child.parent)]
        let isRoot = child.membership != nil && child.membership?.share != above
        input.childrenByKey[child.key] = LoadedChild(child: child, isRoot: isRoot)
        shares[child.key] = child.membership?.share
        // Nothing below another share's root moves.
        if !isRoot, !movers.contains(child.key) { next.insert(child.key) }
      }
      try check(input.childrenByKey.count)
      level = next
    }
  }

  /// The most records that come into shares or leave them with this batch.
  ///
  /// A batch that only deletes has a higher limit: a share that has grown must end, and its root must be
  /// deleted.
  private var movesLimit: Int {
    request.operations.allSatisfy(\.operationType.isDelete)
      ? parts.limits.recordsPerShareEnding : parts.limits.recordsPerShareChange
  }

  private func check(_ count: Int) throws(ErrorDictionary) {
    guard !hasLimits || count <= movesLimit else {
      throw ErrorDictionary(
        .badRequest,
        "more than \(movesLimit) records would come into a share or "
          + "leave it at once",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }
}
