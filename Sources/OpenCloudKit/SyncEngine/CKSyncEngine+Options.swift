extension CKSyncEngine {
  /// The reason for a sync.
  public enum SyncReason: Hashable, Sendable {
    /// The engine's own schedule.
    case scheduled
    /// A call of the app.
    case manual
  }

  /// The zones to fetch, and their priority.
  public struct FetchChangesOptions: Sendable {
    /// The zones whose changes are fetched.
    public enum Scope: Hashable, Sendable {
      /// All zones.
      case all
      /// All zones except these.
      case allExcluding([CKRecordZone.ID])
      /// These zones.
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

    /// The zones whose changes are fetched.
    public var scope: CKSyncEngine.FetchChangesOptions.Scope
    /// The group of the fetch's requests.
    public var operationGroup: CKOperationGroup
    /// The zones whose changes are fetched before those of others, in this order.
    public var prioritizedZoneIDs: [CKRecordZone.ID]

    /// Creates options; without a group a new one is created.
    public init(
      scope: CKSyncEngine.FetchChangesOptions.Scope = .all,
      operationGroup: CKOperationGroup? = nil
    ) {
      self.scope = scope
      self.operationGroup = operationGroup ?? CKOperationGroup(name: "CKSyncEngine-FetchChanges")
      prioritizedZoneIDs = []
    }
  }

  /// The changes to send.
  public struct SendChangesOptions: Sendable {
    /// The changes that are sent.
    public enum Scope: Hashable, Sendable {
      /// All changes.
      case all
      /// All changes except those in these zones.
      case allExcluding([CKRecordZone.ID])
      /// The changes in these zones.
      case zoneIDs([CKRecordZone.ID])
      /// The changes of these records.
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
      /// A record can't be saved before its zone, so a scope of records includes their zones.
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

    /// The changes that are sent.
    public var scope: CKSyncEngine.SendChangesOptions.Scope
    /// The group of the requests.
    public var operationGroup: CKOperationGroup

    /// Creates options; without a group a new one is created.
    public init(
      scope: CKSyncEngine.SendChangesOptions.Scope = .all,
      operationGroup: CKOperationGroup? = nil
    ) {
      self.scope = scope
      self.operationGroup = operationGroup ?? CKOperationGroup(name: "CKSyncEngine-SendChanges")
    }
  }

  /// The reason for a fetch, and its options.
  public struct FetchChangesContext: Sendable {
    /// The reason for the fetch.
    public let reason: CKSyncEngine.SyncReason
    /// The zones to fetch, and their priority.
    public let options: CKSyncEngine.FetchChangesOptions
  }

  /// The reason for a send, and its options.
  public struct SendChangesContext: Sendable {
    /// The reason for the send.
    public let reason: CKSyncEngine.SyncReason
    /// The changes to send.
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
