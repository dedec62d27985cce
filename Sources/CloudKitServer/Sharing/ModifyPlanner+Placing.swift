import CloudKitWebServices
import Foundation

/// Determines the records that are added to a share and those that leave it.
extension ModifyPlanner {
  /// Computes the shares of records after the batch, and refuses operations that would break the
  /// tree.
  ///
  /// Throws if a stored share cannot be read: no decision may depend on it, and the cause is
  /// logged.
  mutating func placeRecords() throws {
    do {
      try endShares()
      for key in saved.keys { try checkPlace(of: key) }
      for key in touchedRoots.keys {
        _ = try place(key)
        guard try shareBeginning(at: key) != nil else { continue }
        try checkRoot(key, input.existing[key]?.parent, indexOfShare(of: key))
      }
      try placeMoved()
    } catch let failure as PlacingError {
      failures[failure.index] = Failure(error: failure.error)
    }
  }

  private struct PlacingError: Error {
    var index: Int
    var error: ErrorDictionary
  }

  // MARK: Ends

  /// Ends the share of a deleted root, and unshares the root of a deleted share.
  private mutating func endShares() throws {
    for (key, root) in deleted where !root.isShare {
      guard let share = try root.decodedSharing()?.share else { continue }
      let shareKey = RecordKey(zone: key.zone, name: share)
      if let found = current(shareKey) { deleted[shareKey] = found }
      saved[shareKey] = nil
    }
    for (key, share) in deleted where share.isShare && saved[key] == nil {
      guard let name = try share.decodedSharing()?.state?.root else { continue }
      let root = RecordKey(zone: key.zone, name: name)
      guard let stored = current(root), var sharing = try sharing(of: root, stored),
        sharing.share == key.name
      else { continue }
      sharing.share = nil
      if saved[root] != nil { saved[root]?.sharing = sharing } else { touchedRoots[root] = sharing }
    }
  }

  // MARK: Places

  private func loadedChild(_ key: RecordKey) -> LoadedChild? { input.sharing.childrenByKey[key] }

  /// The share that begins at a record after the batch.
  private func shareBeginning(at key: RecordKey) throws -> String? {
    guard let stored = current(key) else { return nil }
    guard let share = try sharing(of: key, stored)?.share,
      current(RecordKey(zone: key.zone, name: share)) != nil
    else { return nil }
    return share
  }

  /// The share of a record after the batch.
  ///
  /// Follows parents to the first ancestor whose share is known and records it for all in between.
  /// It is a loop, not a recursion: clients choose the depth of trees, and the stack of a thread is
  /// small.
  private mutating func place(_ key: RecordKey) throws -> String? {
    var path: [RecordKey] = []
    var next: RecordKey? = key
    var share: String?
    while let key = next {
      if let known = placing.places[key] {
        share = known
        break
      }
      // A cycle of parents has no root.
      placing.places[key] = .some(nil)
      path.append(key)
      switch try step(from: key) {
      case .ends(let found):
        share = found
        next = nil
      case .continues(let parent): next = RecordKey(zone: key.zone, name: parent)
      }
    }
    for key in path { placing.places[key] = .some(share) }
    return share
  }

  private enum Step {
    case ends(String?)
    case continues(parent: String)

    init(parent: String?) { self = parent.map { .continues(parent: $0) } ?? .ends(nil) }
  }

  /// The share that the record itself determines; otherwise its parent decides.
  private func step(from key: RecordKey) throws -> Step {
    if let draft = saved[key] {
      if draft.stored.isShare { return .ends(key.name) }
      if let share = try shareBeginning(at: key) { return .ends(share) }
      return Step(parent: draft.stored.parent)
    }
    guard deleted[key] == nil else { return .ends(nil) }
    if touchedRoots[key] != nil {
      if let share = try shareBeginning(at: key) { return .ends(share) }
      return Step(parent: input.existing[key]?.parent)
    }
    if let child = loadedChild(key) {
      if child.isRoot, let share = child.child.membership?.share, !ends(share, key.zone) {
        return .ends(share)
      }
      return .continues(parent: child.child.parent)
    }
    guard let share = current(key)?.membership?.share, !ends(share, key.zone) else {
      return .ends(nil)
    }
    return .ends(share)
  }

  private func ends(_ share: String, _ zone: ZoneNumber) -> Bool {
    let key = RecordKey(zone: zone, name: share)
    return deleted[key] != nil && saved[key] == nil
  }

  private mutating func checkPlace(of key: RecordKey) throws {
    guard let draft = saved[key], let index = savedBy[key] else { return }
    // No parent, not shared, and in the caller's own database: the common case.
    if draft.stored.parent == nil, draft.sharing == nil, !draft.stored.isShare,
      !input.sharing.access.isShared, touchedRoots.isEmpty
    {
      return
    }
    let share = try place(key)
    if try shareBeginning(at: key) != nil { try checkRoot(key, draft.stored.parent, index) }
    if isItsOwnAncestor(key) {
      throw PlacingError(
        index: index,
        error: ErrorDictionary(.badRequest, "the record '\(key.name)' would be its own ancestor")
      )
    }
    guard case .participant(let view) = input.sharing.access.reader(of: key.zone),
      !draft.stored.isShare
    else { return }
    // A name that an invisible record has is refused like any record that is not in the caller's
    // share.
    let hidden = input.existing[key].map { !$0.isDeleted && !view.sees($0) } ?? false
    guard view.permission(inShare: share).canWrite, !hidden else {
      throw PlacingError(index: index, error: Self.denied)
    }
  }

  /// Checks that a root has no other share above it.
  private mutating func checkRoot(_ key: RecordKey, _ parent: String?, _ index: Int) throws {
    guard let parent, try place(RecordKey(zone: key.zone, name: parent)) != nil else { return }
    throw PlacingError(
      index: index,
      error: ErrorDictionary(
        .badRequest,
        "the record '\(key.name)' belongs to a share already; it can be in one only"
      )
    )
  }

  /// The index of the operation that created a root's share.
  private func indexOfShare(of root: RecordKey) -> Int {
    let share = touchedRoots[root]?.share ?? ""
    return savedBy[RecordKey(zone: root.zone, name: share)] ?? 0
  }

  /// Whether the parents of a record lead back to it, in the batch and the storage.
  private mutating func isItsOwnAncestor(_ key: RecordKey) -> Bool {
    var seen: Set<RecordKey> = []
    var next = parent(of: key)
    while let parent = next {
      if parent == key { return true }
      if placing.checkedAncestors.contains(parent) { return false }
      guard seen.insert(parent).inserted else { return false }
      next = self.parent(of: parent)
    }
    // The parents lead to a root: a record below it is in no cycle.
    placing.checkedAncestors.formUnion(seen)
    return false
  }

  /// Computes the shares of records that move with a root, a parent or an ended share.
  private mutating func placeMoved() throws {
    var seen: Set<RecordKey> = []
    let children = input.sharing.childrenByKey.values.map(\.child)
      .sorted { $0.key.name < $1.key.name }
    for child in children {
      try move(child.key, child.type, child.membership, &seen)
      if loadedChild(child.key)?.isRoot == true, saved[child.key] == nil,
        let share = child.membership?.share, !ends(share, child.key.zone),
        try place(RecordKey(zone: child.key.zone, name: child.parent)) != nil
      {
        throw PlacingError(
          index: indexOfMover(above: child.key),
          error: ErrorDictionary(
            .badRequest,
            "below it the record '\(child.key.name)' is shared already; it can be in one share only"
          )
        )
      }
    }
    for (share, members) in input.sharing.members where ends(share.name, share.zone) {
      for member in members {
        let old = Membership(share: share.name, entered: member.entered, seen: member.entered)
        try move(member.key, member.type, old, &seen)
      }
    }
  }

  private mutating func move(
    _ key: RecordKey,
    _ type: String,
    _ old: Membership?,
    _ seen: inout Set<RecordKey>
  ) throws {
    guard saved[key] == nil, deleted[key] == nil, touchedRoots[key] == nil,
      seen.insert(key).inserted
    else { return }
    // A member of an ended share, of which nothing else is loaded, is in no share.
    let isKnown = loadedChild(key) != nil || input.existing[key] != nil
    let share = isKnown ? try place(key) : nil
    guard share != old?.share else { return }
    placing.moves.append(Placing.Move(key: key, type: type, old: old, share: share))
  }

  private func indexOfMover(above key: RecordKey) -> Int {
    var name = loadedChild(key)?.child.parent
    var steps = 0
    while let parent = name, steps < 10_000 {
      let key = RecordKey(zone: key.zone, name: parent)
      if let index = savedBy[key] { return index }
      name = loadedChild(key)?.child.parent
      steps += 1
    }
    // The operation that created the share.
    return savedBy.first { saved[$0.key]?.stored.isShare == true }?.value ?? 0
  }

  // MARK: Writing

  func encodedSharing(_ sharing: RecordSharing?, at change: ChangeNumber) throws -> Data? {
    guard var sharing, !sharing.isEmpty else { return nil }
    sharing.state?.settle(at: change)
    return try WireCoding.encode(sharing)
  }

  /// The tombstone of an ended share records its participants and when their participation ended.
  func endedSharing(of found: StoredRecord, at change: ChangeNumber) throws -> Data? {
    guard found.isShare, var sharing = try found.decodedSharing() else { return nil }
    sharing.state?.endAll(at: change)
    return try WireCoding.encode(sharing)
  }

  /// Records a saved record's share, and the one that it left.
  func place(_ record: inout StoredRecord, in batch: inout WriteBatch) {
    let stored = input.existing[record.key].flatMap { $0.isDeleted ? nil : $0 }
    let old = stored?.membership
    let share = placing.places[record.key] ?? nil
    record.membership = share.map {
      Membership(
        share: $0,
        entered: $0 == old?.share ? old?.entered ?? record.change : record.change,
        seen: record.change
      )
    }
    if let stored { depart(stored, from: share, at: record.change, in: &batch) }
  }

  /// Records that a stored record left its share, unless it is still in it.
  func depart(
    _ stored: StoredRecord,
    from share: String?,
    at change: ChangeNumber,
    in batch: inout WriteBatch
  ) {
    guard let old = stored.membership, old.share != share else { return }
    batch.departures.append(
      departure(stored.key, stored.type, old, at: change)
    )
  }

  private func departure(
    _ key: RecordKey,
    _ type: String,
    _ old: Membership,
    at change: ChangeNumber
  ) -> StoredDeparture {
    StoredDeparture(
      key: key,
      type: type,
      share: old.share,
      entered: old.entered,
      exited: change,
      time: input.stamping.now
    )
  }

  /// Writes roots that become shared or unshared to the feed, with their unchanged tag.
  func writeRoots(in batch: inout WriteBatch, _ counter: inout ChangeNumber) throws {
    for (key, sharing) in touchedRoots.sorted(by: { $0.key.name < $1.key.name })
    where deleted[key] == nil && saved[key] == nil {
      guard var record = input.existing[key], !record.isDeleted else { continue }
      record.change = nextChange(&counter)
      record.sharing = try encodedSharing(sharing, at: record.change)
      place(&record, in: &batch)
      batch.records.append(record)
      // The share is one of the system fields.
      if input.activeIndexes[record.type] != nil {
        try index(record, try record.decodedFields(), in: &batch)
      }
    }
    for (key, guid) in madeGUIDs.sorted(by: { $0.key.name < $1.key.name }) {
      guard let owner = input.sharing.owner, let zone = input.sharing.zoneNames[key.zone],
        saved[key] != nil || touchedRoots[key] != nil
      else { continue }
      batch.shortGUIDs.append(
        StoredShortGUID(
          guid: guid,
          container: input.sharing.container,
          environment: input.sharing.environment,
          partition: input.partition,
          owner: owner.user,
          zone: key.zone,
          zoneName: zone,
          recordName: key.name
        )
      )
    }
  }

  func writeMoves(in batch: inout WriteBatch, _ counter: inout ChangeNumber) {
    for move in placing.moves {
      let change = nextChange(&counter)
      batch.memberships.append(
        WriteBatch.MembershipWrite(
          key: move.key,
          membership: move.share.map { Membership(share: $0, entered: change, seen: change) }
        )
      )
      guard let old = move.old else { continue }
      batch.departures.append(departure(move.key, move.type, old, at: change))
    }
  }

  /// The shares with changes that participants can see.
  func touchedShares(_ batch: WriteBatch) -> Set<RecordKey> {
    var shares: Set<RecordKey> = []
    func note(_ share: String?, _ zone: ZoneNumber) {
      if let share { shares.insert(RecordKey(zone: zone, name: share)) }
    }
    for record in batch.records { note(record.membership?.share, record.key.zone) }
    for zone in Set(batch.records.map(\.key.zone)) {
      let zoneShare = RecordKey(zone: zone, name: ShareDictionary.zoneShareName)
      if input.existing[zoneShare]?.isDeleted == false || saved[zoneShare] != nil {
        shares.insert(zoneShare)
      }
    }
    for write in batch.memberships { note(write.membership?.share, write.key.zone) }
    for departure in batch.departures { note(departure.share, departure.key.zone) }
    return shares
  }
}
