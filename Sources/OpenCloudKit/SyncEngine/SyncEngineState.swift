import Foundation

/// The state of a sync engine and its transitions; without clock, network or delegate.
package struct SyncEngineState: Sendable {
  /// The record name of the last signed-in user.
  package var user: String?
  /// The token of the database's feed.
  package var databaseToken: String?
  /// The tokens of the zones' feeds.
  package var zoneTokens: [CKRecordZone.ID: String] = [:]
  /// Zones to report as deleted, unless the listing that was started again contains them.
  package private(set) var unconfirmedZones: [CKRecordZone.ID] = []
  /// The zones with changes to fetch, in the order in which the service named them.
  package private(set) var unfetchedZones: [CKRecordZone.ID] = []
  /// The records with a file that could not be downloaded: the delegate lacks their last version.
  package private(set) var parkedRecords: [CKRecord.ID] = []
  /// The zones to save and delete.
  package var databaseChanges = PendingChanges<
    CKRecordZone.ID, CKSyncEngine.PendingDatabaseChange
  >(by: \.zoneID)
  /// The records to save and delete.
  package var recordChanges = PendingChanges<
    CKRecord.ID, CKSyncEngine.PendingRecordZoneChange
  >(by: \.recordID)
  /// The records that the service refused to save, and of which the delegate received no version
  /// from the service: this device may have the only copy.
  package private(set) var refusedRecords: Set<CKRecord.ID> = []
  /// Whether the app has changes that it tracks itself.
  package var hasUntrackedChanges = false
  /// The subscription that was found or created.
  package var subscriptionID: CKSubscription.ID?

  package init() {}

  /// Whether there are changes to send, as far as the engine knows.
  package var hasChangesToSend: Bool {
    hasUntrackedChanges || !databaseChanges.isEmpty || !recordChanges.isEmpty
  }

  // MARK: Accounts

  /// Sets the signed-in user, and returns the account change.
  ///
  /// When a user signs out or is replaced, feed tokens and pending changes are reset. The first
  /// user keeps the changes that the app has added already.
  package mutating func signIn(
    _ current: CKRecord.ID?
  ) -> CKSyncEngine.Event.AccountChange.ChangeType? {
    let previous = user.map { CKRecord.ID(recordName: $0) }
    guard previous?.recordName != current?.recordName else { return nil }
    if previous != nil { self = SyncEngineState() }
    user = current?.recordName
    switch (previous, current) {
    case (nil, let current?): return .signIn(currentUser: current)
    case (let previous?, nil): return .signOut(previousUser: previous)
    case (let previous?, let current?):
      return .switchAccounts(previousUser: previous, currentUser: current)
    case (nil, nil): return nil
    }
  }

  // MARK: Fetching

  /// Records that the delegate received a page of the database's feed.
  package mutating func didFetch(
    changed: [CKRecordZone.ID],
    deleted: [CKRecordZone.ID],
    token: String
  ) {
    databaseToken = token
    if !unconfirmedZones.isEmpty {
      let named = Set(changed + deleted)
      unconfirmedZones.removeAll { named.contains($0) }
    }
    for zoneID in deleted { didDelete(zoneID) }
    for zoneID in changed { noteChanges(in: zoneID) }
  }

  /// Records that a zone has changes to fetch.
  package mutating func noteChanges(in zoneID: CKRecordZone.ID) {
    if !unfetchedZones.contains(zoneID) { unfetchedZones.append(zoneID) }
  }

  /// Records that a zone was not found while its changes were fetched.
  ///
  /// The token stays until the zone is reported as deleted: if the zone is created again before that,
  /// the database's feed reports no deletion, and the token alone shows that it is another zone.
  package mutating func didMiss(_ zoneID: CKRecordZone.ID) {
    unfetchedZones.removeAll { $0 == zoneID }
    unconfirmedZones.removeAll { $0 == zoneID }
    parkedRecords.removeAll { $0.zoneID == zoneID }
  }

  /// Discards the state and the refused records of a zone that was reported as deleted.
  package mutating func didDelete(_ zoneID: CKRecordZone.ID) {
    didMiss(zoneID)
    zoneTokens[zoneID] = nil
    refusedRecords = refusedRecords.filter { $0.zoneID != zoneID }
  }

  /// Records that a zone is to be read from its beginning.
  package mutating func restart(_ zoneID: CKRecordZone.ID) {
    didDelete(zoneID)
    noteChanges(in: zoneID)
  }

  /// Discards the feed tokens, after the service was restored from an older copy of its data or no
  /// longer knows the changes since.
  ///
  /// In the shared database the zones that the next listing does not contain are deleted: they
  /// belong to other users, who keep them. A zone that a private database does not list may exist
  /// on this device only.
  ///
  /// If the service reports for each token why it expired, the zones' tokens are kept: some of them may
  /// still be valid, and with the others the zones are read again together with the deletions, which the
  /// app needs.
  package mutating func restartFeeds(_ scope: CKDatabase.Scope, keepingZones: Bool = false) {
    if scope == .shared {
      unconfirmedZones += Set(zoneTokens.keys).union(unfetchedZones).subtracting(unconfirmedZones)
        .sorted { ($0.ownerName, $0.zoneName) < ($1.ownerName, $1.zoneName) }
    }
    databaseToken = nil
    // The subscription may be newer than the copy.
    subscriptionID = nil
    if !keepingZones { zoneTokens = [:] }
  }

  /// Records that the delegate received a page of a zone's feed.
  package mutating func didFetch(_ zoneID: CKRecordZone.ID, token: String, moreComing: Bool) {
    zoneTokens[zoneID] = token
    if !moreComing { unfetchedZones.removeAll { $0 == zoneID } }
  }

  /// Parks records with a file that could not be downloaded, after removing the fetched and deleted
  /// ones.
  package mutating func park(_ recordIDs: [CKRecord.ID], unparking others: [CKRecord.ID] = []) {
    let others = Set(others)
    if !parkedRecords.isEmpty, !others.isEmpty { parkedRecords.removeAll { others.contains($0) } }
    let known = Set(parkedRecords)
    parkedRecords += recordIDs.filter { !known.contains($0) }
  }

  /// Whether changes of a zone's records are pending.
  package func hasChangesToSend(in zoneID: CKRecordZone.ID) -> Bool {
    recordChanges.changes.contains { $0.recordID.zoneID == zoneID }
  }

  /// Whether a zone has records that the service refused to save.
  package func hasRefusedRecords(in zoneID: CKRecordZone.ID) -> Bool {
    refusedRecords.contains { $0.zoneID == zoneID }
  }

  /// Moves a zone behind the others with changes to fetch: the service may fail at it each time.
  package mutating func postpone(_ zoneID: CKRecordZone.ID) {
    guard let index = unfetchedZones.firstIndex(of: zoneID) else { return }
    unfetchedZones.append(unfetchedZones.remove(at: index))
  }

  /// The next zone to fetch: a prioritized one, or the one that was named first.
  ///
  /// `done` are the zones that this fetch has finished.
  package func nextZone(
    _ options: CKSyncEngine.FetchChangesOptions,
    done: Set<CKRecordZone.ID>
  ) -> CKRecordZone.ID? {
    let zones = unfetchedZones.filter { !done.contains($0) && options.scope.contains($0) }
    return options.prioritizedZoneIDs.first { zones.contains($0) } ?? zones.first
  }

  // MARK: Sending

  /// Adds the app's changes; a record that the app deletes is no longer refused.
  package mutating func add(_ changes: [CKSyncEngine.PendingRecordZoneChange]) {
    recordChanges.add(changes)
    for case .deleteRecord(let recordID) in changes { refusedRecords.remove(recordID) }
  }

  /// Removes the app's changes; a save that the app removes is no longer refused.
  package mutating func remove(_ changes: [CKSyncEngine.PendingRecordZoneChange]) {
    recordChanges.remove(changes)
    for case .saveRecord(let recordID) in changes { refusedRecords.remove(recordID) }
  }

  /// Records the outcome of a change that was sent.
  ///
  /// A change that failed for a transient reason stays pending. A refused save is remembered until
  /// it succeeds, unless the error contained the service's version of the record or the app removed
  /// the change meanwhile.
  package mutating func didSend(
    _ mark: PendingChanges<CKRecord.ID, CKSyncEngine.PendingRecordZoneChange>.Mark,
    _ error: CKError?
  ) {
    if let error, Self.retries(error) {
      // The service may fail at it each time: the next send begins with the others.
      if error.isParkable { recordChanges.moveToEnd(mark) }
      return
    }
    switch mark.change {
    case .saveRecord(let recordID):
      if let error {
        let isDelivered = error.code == .serverRecordChanged
        if !isDelivered, !recordChanges.hasRemoved(mark) { refusedRecords.insert(recordID) }
      } else {
        refusedRecords.remove(recordID)
      }
    case .deleteRecord(let recordID):
      // The app has no copy of it.
      refusedRecords.remove(recordID)
    }
    recordChanges.settle(mark)
  }

  /// Whether the engine handles an error itself: it keeps the change and tries again.
  ///
  /// The list is the one of CloudKit's documentation and, as in its sample, cancellation. A reply that is
  /// not the service's does not show that a change was refused.
  package static func retries(_ error: CKError) -> Bool {
    if error.isInconclusive { return true }
    return switch error.code {
    case .notAuthenticated, .accountTemporarilyUnavailable, .networkFailure,
      .networkUnavailable, .requestRateLimited, .serviceUnavailable, .zoneBusy,
      .operationCancelled:
      true
    default: false
    }
  }
}

// MARK: - Archives

extension SyncEngineState: Codable {
  private enum CodingKeys: String, CodingKey {
    case version, user, databaseToken, zones, unfetched, databaseChanges, recordChanges
    case hasUntrackedChanges, subscriptionID, parked, unconfirmed, refused
  }

  /// The version of the archive's format; a reader refuses an unknown one.
  private static let version = 1

  private struct Zone: Codable {
    var name: String
    var owner: String
    var token: String?

    init(_ zoneID: CKRecordZone.ID, token: String? = nil) {
      name = zoneID.zoneName
      owner = zoneID.ownerName
      self.token = token
    }

    func zoneID() throws -> CKRecordZone.ID {
      guard !name.isEmpty else { throw SyncEngineState.damage("a zone without a name") }
      return CKRecordZone.ID(zoneName: name, ownerName: owner)
    }
  }

  private struct Record: Codable {
    var zone: Zone
    var name: String

    init(_ recordID: CKRecord.ID) {
      zone = Zone(recordID.zoneID)
      name = recordID.recordName
    }

    func recordID() throws -> CKRecord.ID {
      guard !name.isEmpty else { throw SyncEngineState.damage("a record without a name") }
      return CKRecord.ID(recordName: name, zoneID: try zone.zoneID())
    }
  }

  private struct Change: Codable {
    var zone: Zone
    var recordName: String?
    var isDelete: Bool

    func recordID() throws -> CKRecord.ID {
      guard let recordName, !recordName.isEmpty else {
        throw SyncEngineState.damage("a record without a name")
      }
      return CKRecord.ID(recordName: recordName, zoneID: try zone.zoneID())
    }
  }

  private static func damage(_ what: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: "A sync engine's state has \(what)."))
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard try container.decode(Int.self, forKey: .version) == Self.version else {
      throw Self.damage("a form that this version does not know")
    }
    self.init()
    user = try container.decodeIfPresent(String.self, forKey: .user)
    databaseToken = try container.decodeIfPresent(String.self, forKey: .databaseToken)
    for zone in try container.decode([Zone].self, forKey: .zones) {
      zoneTokens[try zone.zoneID()] = zone.token
    }
    unfetchedZones = try container.decode([Zone].self, forKey: .unfetched).map { try $0.zoneID() }
    unconfirmedZones =
      try container.decodeIfPresent([Zone].self, forKey: .unconfirmed)?.map { try $0.zoneID() }
      ?? []
    // Archives of earlier versions have no such member.
    let parked = try container.decodeIfPresent([Record].self, forKey: .parked) ?? []
    parkedRecords = try parked.map { try $0.recordID() }
    let refused = try container.decodeIfPresent([Record].self, forKey: .refused) ?? []
    refusedRecords = Set(try refused.map { try $0.recordID() })
    databaseChanges.add(
      try container.decode([Change].self, forKey: .databaseChanges).map { change in
        let zoneID = try change.zone.zoneID()
        return change.isDelete ? .deleteZone(zoneID) : .saveZone(CKRecordZone(zoneID: zoneID))
      }
    )
    recordChanges.add(
      try container.decode([Change].self, forKey: .recordChanges).map { change in
        let recordID = try change.recordID()
        return change.isDelete ? .deleteRecord(recordID) : .saveRecord(recordID)
      }
    )
    hasUntrackedChanges = try container.decode(Bool.self, forKey: .hasUntrackedChanges)
    subscriptionID = try container.decodeIfPresent(String.self, forKey: .subscriptionID)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(Self.version, forKey: .version)
    try container.encodeIfPresent(user, forKey: .user)
    try container.encodeIfPresent(databaseToken, forKey: .databaseToken)
    let zones = zoneTokens.map { Zone($0.key, token: $0.value) }
      .sorted { ($0.owner, $0.name) < ($1.owner, $1.name) }
    try container.encode(zones, forKey: .zones)
    try container.encode(unfetchedZones.map { Zone($0) }, forKey: .unfetched)
    if !unconfirmedZones.isEmpty {
      try container.encode(unconfirmedZones.map { Zone($0) }, forKey: .unconfirmed)
    }
    if !parkedRecords.isEmpty {
      try container.encode(parkedRecords.map { Record($0) }, forKey: .parked)
    }
    if !refusedRecords.isEmpty {
      let refused = refusedRecords.map { Record($0) }
        .sorted { ($0.zone.owner, $0.zone.name, $0.name) < ($1.zone.owner, $1.zone.name, $1.name) }
      try container.encode(refused, forKey: .refused)
    }
    try container.encode(
      databaseChanges.changes.map { change in
        switch change {
        case .saveZone(let zone): Change(zone: Zone(zone.zoneID), isDelete: false)
        case .deleteZone(let zoneID): Change(zone: Zone(zoneID), isDelete: true)
        }
      },
      forKey: .databaseChanges
    )
    try container.encode(
      recordChanges.changes.map { change in
        let recordID = change.recordID
        let isDelete = change == .deleteRecord(recordID)
        return Change(
          zone: Zone(recordID.zoneID),
          recordName: recordID.recordName,
          isDelete: isDelete
        )
      },
      forKey: .recordChanges
    )
    try container.encode(hasUntrackedChanges, forKey: .hasUntrackedChanges)
    try container.encodeIfPresent(subscriptionID, forKey: .subscriptionID)
  }
}
