extension CKSyncEngine {
  /// Something that happened while a database was kept in step.
  public enum Event: Sendable {
    /// The engine's state changed: keep it.
    case stateUpdate(CKSyncEngine.Event.StateUpdate)
    /// The person signed in or out, or another person did.
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
  /// Keep the state beside the records that were fetched before it, and begin the next engine with
  /// it.
  public struct StateUpdate: Sendable {
    /// The state as it is now.
    public let stateSerialization: CKSyncEngine.State.Serialization
  }

  /// The person signed in or out, or another person did.
  ///
  /// With `signOut` and `switchAccounts` the engine has reset its state, pending changes included.
  /// It reports `signOut` only where the app signed the user out, and `switchAccounts` only where the
  /// service confirmed another user. A session that is over or a token that the service refuses is
  /// no event: operations fail with `accountTemporarilyUnavailable`, and the state is kept.
  public struct AccountChange: Sendable {
    /// How an account changes.
    public enum ChangeType: Hashable, Sendable {
      /// A person signed in.
      case signIn(currentUser: CKRecord.ID)
      /// The person signed out.
      case signOut(previousUser: CKRecord.ID)
      /// Another person signed in.
      case switchAccounts(previousUser: CKRecord.ID, currentUser: CKRecord.ID)
    }

    /// How the account changed.
    public let changeType: CKSyncEngine.Event.AccountChange.ChangeType
  }

  /// Zones changed on the service.
  public struct FetchedDatabaseChanges: Sendable {
    /// Zones that were made, or in which something changed.
    public let modifications: [CKDatabase.DatabaseChange.Modification]
    /// Zones that are gone.
    public let deletions: [CKDatabase.DatabaseChange.Deletion]
  }

  /// Records changed on the service.
  public struct FetchedRecordZoneChanges: Sendable {
    /// Records that were made or changed.
    public let modifications: [CKDatabase.RecordZoneChange.Modification]
    /// Records that are gone.
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
      /// The record as it was to be saved.
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
    /// What went wrong, or nothing.
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
