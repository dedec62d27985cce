extension CKSyncEngine {
  /// What a sync engine needs to begin.
  public struct Configuration: Sendable {
    /// The database to keep in step with: the private or the shared one.
    public var database: CKDatabase
    /// The state that the engine told of last, or nothing for a first start.
    public var stateSerialization: CKSyncEngine.State.Serialization?
    /// Who keeps the records; the engine itself holds it weakly.
    public var delegate: any CKSyncEngineDelegate
    /// Whether the engine syncs by itself: yes, unless a test wants to say when.
    public var automaticallySync: Bool
    /// The database subscription that tells of changes, or nothing for the engine's choice: one
    /// that is there already, or a new one.
    public var subscriptionID: CKSubscription.ID?

    /// Creates a configuration of an engine that syncs by itself.
    public init(
      database: CKDatabase,
      stateSerialization: CKSyncEngine.State.Serialization?,
      delegate: any CKSyncEngineDelegate
    ) {
      self.database = database
      self.stateSerialization = stateSerialization
      self.delegate = delegate
      automaticallySync = true
      subscriptionID = nil
    }
  }
}

extension CKSyncEngine.Configuration: CustomStringConvertible {
  /// The configuration in words, for logs.
  public var description: String {
    "CKSyncEngine.Configuration(database: \(database), automaticallySync: \(automaticallySync), "
      + "subscriptionID: \(subscriptionID ?? "nil"), "
      + "stateSerialization: \(stateSerialization == nil ? "nil" : "present"))"
  }
}
