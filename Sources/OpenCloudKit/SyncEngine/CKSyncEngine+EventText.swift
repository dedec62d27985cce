extension CKSyncEngine.Event: CustomStringConvertible {
  /// The event in words, for logs: names and numbers, not contents of records.
  public var description: String {
    switch self {
    case .stateUpdate(let event): "stateUpdate(\(event))"
    case .accountChange(let event): "accountChange(\(event))"
    case .fetchedDatabaseChanges(let event): "fetchedDatabaseChanges(\(event))"
    case .fetchedRecordZoneChanges(let event): "fetchedRecordZoneChanges(\(event))"
    case .sentDatabaseChanges(let event): "sentDatabaseChanges(\(event))"
    case .sentRecordZoneChanges(let event): "sentRecordZoneChanges(\(event))"
    case .willFetchChanges(let event): "willFetchChanges(\(event))"
    case .willFetchRecordZoneChanges(let event): "willFetchRecordZoneChanges(\(event))"
    case .didFetchRecordZoneChanges(let event): "didFetchRecordZoneChanges(\(event))"
    case .didFetchChanges(let event): "didFetchChanges(\(event))"
    case .willSendChanges(let event): "willSendChanges(\(event))"
    case .didSendChanges(let event): "didSendChanges(\(event))"
    }
  }
}

extension CKSyncEngine.Event.StateUpdate: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "stateSerialization=present" }
}

extension CKSyncEngine.Event.AccountChange: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "changeType=\(changeType)" }
}

extension CKSyncEngine.Event.AccountChange.ChangeType: CustomStringConvertible {
  /// The change in words, for logs.
  public var description: String {
    switch self {
    case .signIn(let current): "signIn(currentUser: \(current.recordName))"
    case .signOut(let previous): "signOut(previousUser: \(previous.recordName))"
    case .switchAccounts(let previous, let current):
      "switchAccounts(previousUser: \(previous.recordName), currentUser: \(current.recordName))"
    }
  }
}

extension CKSyncEngine.Event.FetchedDatabaseChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String {
    "modifications=\(SyncEngineText.zones(modifications.map(\.zoneID))), "
      + "deletions=\(SyncEngineText.zones(deletions.map(\.zoneID)))"
  }
}

extension CKSyncEngine.Event.FetchedRecordZoneChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String {
    "modifications=\(SyncEngineText.records(modifications.map(\.record.recordID))), "
      + "deletions=\(SyncEngineText.records(deletions.map(\.recordID)))"
  }
}

extension CKSyncEngine.Event.SentDatabaseChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String {
    "savedZones=\(SyncEngineText.zones(savedZones.map(\.zoneID))), "
      + "failedZoneSaves=\(SyncEngineText.zones(failedZoneSaves.map(\.zone.zoneID))), "
      + "deletedZoneIDs=\(SyncEngineText.zones(deletedZoneIDs)), "
      + "failedZoneDeletes=\(SyncEngineText.zones(Array(failedZoneDeletes.keys)))"
  }
}

extension CKSyncEngine.Event.SentRecordZoneChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String {
    "savedRecords=\(SyncEngineText.records(savedRecords.map(\.recordID))), "
      + "failedRecordSaves=\(SyncEngineText.records(failedRecordSaves.map(\.record.recordID))), "
      + "deletedRecordIDs=\(SyncEngineText.records(deletedRecordIDs)), "
      + "failedRecordDeletes=\(SyncEngineText.records(Array(failedRecordDeletes.keys)))"
  }
}

extension CKSyncEngine.Event.SentDatabaseChanges.FailedZoneSave: CustomStringConvertible {
  /// The failure in words, for logs.
  public var description: String { "\(SyncEngineText.zone(zone.zoneID)): \(error)" }
}

extension CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave: CustomStringConvertible {
  /// The failure in words, for logs.
  public var description: String { "\(SyncEngineText.record(record.recordID)): \(error)" }
}

extension CKSyncEngine.Event.WillFetchChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "\(context)" }
}

extension CKSyncEngine.Event.WillFetchRecordZoneChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "zoneID=\(SyncEngineText.zone(zoneID))" }
}

extension CKSyncEngine.Event.DidFetchRecordZoneChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String {
    "zoneID=\(SyncEngineText.zone(zoneID))" + (error.map { ", error=\($0)" } ?? "")
  }
}

extension CKSyncEngine.Event.DidFetchChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "\(context)" }
}

extension CKSyncEngine.Event.WillSendChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "\(context)" }
}

extension CKSyncEngine.Event.DidSendChanges: CustomStringConvertible {
  /// The event in words, for logs.
  public var description: String { "\(context)" }
}
