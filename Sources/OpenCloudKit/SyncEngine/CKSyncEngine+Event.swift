extension CKSyncEngine {
  /// An event of a sync engine.
  public enum Event: Sendable {
    /// The engine's state changed: store it.
    case stateUpdate(CKSyncEngine.Event.StateUpdate)
    /// A user signed in, signed out, or was replaced by another user.
    case accountChange(CKSyncEngine.Event.AccountChange)
    /// Zones changed on the service.
    case fetchedDatabaseChanges(CKSyncEngine.Event.FetchedDatabaseChanges)
    /// Records changed on the service.
    case fetchedRecordZoneChanges(CKSyncEngine.Event.FetchedRecordZoneChanges)
    /// Zones were sent.
    case sentDatabaseChanges(CKSyncEngine.Event.SentDatabaseChanges)
    /// Records were sent.
    case sentRecordZoneChanges(CKSyncEngine.Event.SentRecordZoneChanges)
    /// A fetch begins.
    case willFetchChanges(CKSyncEngine.Event.WillFetchChanges)
    /// The fetch of a zone begins.
    case willFetchRecordZoneChanges(CKSyncEngine.Event.WillFetchRecordZoneChanges)
    /// The fetch of a zone ended.
    case didFetchRecordZoneChanges(CKSyncEngine.Event.DidFetchRecordZoneChanges)
    /// A fetch ended.
    case didFetchChanges(CKSyncEngine.Event.DidFetchChanges)
    /// A send begins.
    case willSendChanges(CKSyncEngine.Event.WillSendChanges)
    /// A send ended.
    case didSendChanges(CKSyncEngine.Event.DidSendChanges)
  }
}

extension CKSyncEngine.Event {
  /// The engine's state changed.
  ///
  /// Store the state together with the records that were fetched before it, and create the next
  /// engine with it.
  public struct StateUpdate: Sendable {
    /// The current state.
    public let stateSerialization: CKSyncEngine.State.Serialization
  }

  /// A user signed in, signed out, or was replaced by another user.
  ///
  /// Before `signOut` and `switchAccounts` the engine resets its state, including pending changes.
  /// It reports `signOut` only if the app signed the user out, and `switchAccounts` only if the
  /// service confirmed another user. An expired session, or a token that the service refuses,
  /// causes no event: operations fail with `accountTemporarilyUnavailable`, and the state is kept.
  public struct AccountChange: Sendable {
    /// The kind of an account change.
    public enum ChangeType: Hashable, Sendable {
      /// A user signed in.
      case signIn(currentUser: CKRecord.ID)
      /// The user signed out.
      case signOut(previousUser: CKRecord.ID)
      /// Another user signed in.
      case switchAccounts(previousUser: CKRecord.ID, currentUser: CKRecord.ID)
    }

    /// The kind of the account change.
    public let changeType: CKSyncEngine.Event.AccountChange.ChangeType
  }

  /// Zones changed on the service.
  public struct FetchedDatabaseChanges: Sendable {
    /// Zones that were created, or whose records changed.
    public let modifications: [CKDatabase.DatabaseChange.Modification]
    /// Deleted zones.
    public let deletions: [CKDatabase.DatabaseChange.Deletion]
  }

  /// Records changed on the service.
  public struct FetchedRecordZoneChanges: Sendable {
    /// Records that were created or changed.
    public let modifications: [CKDatabase.RecordZoneChange.Modification]
    /// Deleted records.
    public let deletions: [CKDatabase.RecordZoneChange.Deletion]
  }

  /// Zones were sent.
  public struct SentDatabaseChanges: Sendable {
    /// A zone that could not be saved.
    public struct FailedZoneSave: Sendable {
      /// The zone.
      public let zone: CKRecordZone
      /// Why it could not be saved.
      public let error: CKError
    }

    /// The zones that were saved.
    public let savedZones: [CKRecordZone]
    /// The zones that could not be saved.
    public let failedZoneSaves: [CKSyncEngine.Event.SentDatabaseChanges.FailedZoneSave]
    /// The zones that were deleted.
    public let deletedZoneIDs: [CKRecordZone.ID]
    /// The zones that could not be deleted, and why.
    public let failedZoneDeletes: [CKRecordZone.ID: CKError]
  }

  /// Records were sent.
  public struct SentRecordZoneChanges: Sendable {
    /// A record that could not be saved.
    public struct FailedRecordSave: Sendable {
      /// The record that was sent.
      public let record: CKRecord
      /// Why it could not be saved.
      public let error: CKError
    }

    /// The records that were saved, with their new system fields.
    public let savedRecords: [CKRecord]
    /// The records that could not be saved.
    public let failedRecordSaves: [CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave]
    /// The records that were deleted.
    public let deletedRecordIDs: [CKRecord.ID]
    /// The records that could not be deleted, and why.
    public let failedRecordDeletes: [CKRecord.ID: CKError]
  }

  /// A fetch begins.
  public struct WillFetchChanges: Sendable {
    /// Why and how it runs.
    public let context: CKSyncEngine.FetchChangesContext
  }

  /// The fetch of a zone begins.
  public struct WillFetchRecordZoneChanges: Sendable {
    /// The zone.
    public let zoneID: CKRecordZone.ID
  }

  /// The fetch of a zone ended.
  public struct DidFetchRecordZoneChanges: Sendable {
    /// The zone.
    public let zoneID: CKRecordZone.ID
    /// The error, or nil.
    public let error: CKError?
  }

  /// A fetch ended.
  public struct DidFetchChanges: Sendable {
    /// Why and how it ran.
    public let context: CKSyncEngine.FetchChangesContext
  }

  /// A send begins.
  public struct WillSendChanges: Sendable {
    /// Why and how it runs.
    public let context: CKSyncEngine.SendChangesContext
  }

  /// A send ended.
  public struct DidSendChanges: Sendable {
    /// Why and how it ran.
    public let context: CKSyncEngine.SendChangesContext
  }
}
