extension CKSyncEngine {
  /// The configuration of a sync engine.
  public struct Configuration: Sendable {
    /// The database to synchronize with: the private or the shared one.
    public var database: CKDatabase
    /// The state that the engine last reported, or nil for the first launch.
    public var stateSerialization: CKSyncEngine.State.Serialization?
    /// The delegate, which stores the records; the engine holds it weakly.
    public var delegate: any CKSyncEngineDelegate
    /// Whether the engine syncs automatically; false for tests that call it explicitly.
    public var automaticallySync: Bool
    /// The database subscription that notifies the engine of changes; nil lets the engine use an
    /// existing one or create one.
    public var subscriptionID: CKSubscription.ID?

    /// Creates a configuration of an engine that syncs automatically.
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
