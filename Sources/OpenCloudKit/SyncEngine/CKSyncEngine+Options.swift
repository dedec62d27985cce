extension CKSyncEngine {
  /// Why a sync began.
  public enum SyncReason: Hashable, Sendable {
    /// The engine's own schedule.
    case scheduled
    /// The app asked for it.
    case manual
  }

  /// What to fetch, and what first.
  public struct FetchChangesOptions: Sendable {
    /// Which zones' changes are fetched.
    public enum Scope: Hashable, Sendable {
      /// Those of all zones.
      case all
      /// Those of all zones but these.
      case allExcluding([CKRecordZone.ID])
      /// Those of these zones.
      case zoneIDs([CKRecordZone.ID])

      /// Whether a zone's changes are fetched.
      public func contains(_ zoneID: CKRecordZone.ID) -> Bool {
        switch self {
        case .all: true
        case .allExcluding(let zoneIDs): !zoneIDs.contains(zoneID)
        case .zoneIDs(let zoneIDs): zoneIDs.contains(zoneID)
        }
      }
    }

    /// Which zones' changes are fetched.
    public var scope: CKSyncEngine.FetchChangesOptions.Scope
    /// The group of the fetch's requests.
    public var operationGroup: CKOperationGroup
    /// The zones whose changes are fetched before those of others, in this order.
    public var prioritizedZoneIDs: [CKRecordZone.ID]

    /// Creates options; a group is made where none is given.
    public init(
      scope: CKSyncEngine.FetchChangesOptions.Scope = .all,
      operationGroup: CKOperationGroup? = nil
    ) {
      self.scope = scope
      self.operationGroup = operationGroup ?? CKOperationGroup(name: "CKSyncEngine-FetchChanges")
      prioritizedZoneIDs = []
    }
  }

  /// What to send.
  public struct SendChangesOptions: Sendable {
    /// Which changes are sent.
    public enum Scope: Hashable, Sendable {
      /// All.
      case all
      /// All but those in these zones.
      case allExcluding([CKRecordZone.ID])
      /// Those in these zones.
      case zoneIDs([CKRecordZone.ID])
      /// Those of these records.
      case recordIDs([CKRecord.ID])

      /// Whether a record's changes are sent.
      public func contains(_ recordID: CKRecord.ID) -> Bool {
        switch self {
        case .all: true
        case .allExcluding(let zoneIDs): !zoneIDs.contains(recordID.zoneID)
        case .zoneIDs(let zoneIDs): zoneIDs.contains(recordID.zoneID)
        case .recordIDs(let recordIDs): recordIDs.contains(recordID)
        }
      }

      /// Whether a change is sent.
      public func contains(_ pendingChange: CKSyncEngine.PendingRecordZoneChange) -> Bool {
        contains(pendingChange.recordID)
      }

      /// Whether the saves and deletes of a zone itself are sent.
      ///
      /// A record can't be saved before its zone, so a scope of records has their zones with it.
      func contains(_ pendingChange: CKSyncEngine.PendingDatabaseChange) -> Bool {
        switch self {
        case .all: true
        case .allExcluding(let zoneIDs): !zoneIDs.contains(pendingChange.zoneID)
        case .zoneIDs(let zoneIDs): zoneIDs.contains(pendingChange.zoneID)
        case .recordIDs(let recordIDs):
          recordIDs.contains { $0.zoneID == pendingChange.zoneID }
        }
      }
    }

    /// Which changes are sent.
    public var scope: CKSyncEngine.SendChangesOptions.Scope
    /// The group of the requests.
    public var operationGroup: CKOperationGroup

    /// Creates options; a group is made where none is given.
    public init(
      scope: CKSyncEngine.SendChangesOptions.Scope = .all,
      operationGroup: CKOperationGroup? = nil
    ) {
      self.scope = scope
      self.operationGroup = operationGroup ?? CKOperationGroup(name: "CKSyncEngine-SendChanges")
    }
  }

  /// Why and how a fetch runs.
  public struct FetchChangesContext: Sendable {
    /// Why it began.
    public let reason: CKSyncEngine.SyncReason
    /// What it fetches, and what first.
    public let options: CKSyncEngine.FetchChangesOptions
  }

  /// Why and how a send runs.
  public struct SendChangesContext: Sendable {
    /// Why it began.
    public let reason: CKSyncEngine.SyncReason
    /// What it sends.
    public let options: CKSyncEngine.SendChangesOptions
  }
}

extension CKSyncEngine.SyncReason: CustomStringConvertible {
  /// The reason in a word.
  public var description: String {
    switch self {
    case .scheduled: "scheduled"
    case .manual: "manual"
    }
  }
}

extension CKSyncEngine.FetchChangesOptions.Scope: CustomStringConvertible {
  /// The scope in words, for logs.
  public var description: String {
    switch self {
    case .all: "all"
    case .allExcluding(let zoneIDs): "allExcluding(\(SyncEngineText.zones(zoneIDs)))"
    case .zoneIDs(let zoneIDs): "zoneIDs(\(SyncEngineText.zones(zoneIDs)))"
    }
  }
}

extension CKSyncEngine.SendChangesOptions.Scope: CustomStringConvertible {
  /// The scope in words, for logs.
  public var description: String {
    switch self {
    case .all: "all"
    case .allExcluding(let zoneIDs): "allExcluding(\(SyncEngineText.zones(zoneIDs)))"
    case .zoneIDs(let zoneIDs): "zoneIDs(\(SyncEngineText.zones(zoneIDs)))"
    case .recordIDs(let recordIDs): "recordIDs(\(SyncEngineText.records(recordIDs)))"
    }
  }
}

extension CKSyncEngine.FetchChangesOptions: CustomStringConvertible {
  /// The options in words, for logs.
  public var description: String {
    "scope=\(scope), prioritizedZoneIDs=\(SyncEngineText.zones(prioritizedZoneIDs))"
  }
}

extension CKSyncEngine.SendChangesOptions: CustomStringConvertible {
  /// The options in words, for logs.
  public var description: String { "scope=\(scope)" }
}

extension CKSyncEngine.FetchChangesContext: CustomStringConvertible {
  /// The context in words, for logs.
  public var description: String { "reason=\(reason), \(options)" }
}

extension CKSyncEngine.SendChangesContext: CustomStringConvertible {
  /// The context in words, for logs.
  public var description: String { "reason=\(reason), \(options)" }
}
