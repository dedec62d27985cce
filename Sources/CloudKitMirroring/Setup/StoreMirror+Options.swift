extension StoreMirror {
  /// The configuration of a mirror.
  package struct Options: Sendable {
    package var containerIdentifier: String
    package var subscription: String
    package var zone: String
    package var limits: ExportBatcher.Limits
    package var backoff: RetryBackoff
    package var budget: AssetBudget
    /// The most records in a page of the feed.
    package var pageLimit: Int
    /// Seconds between polls of the feed while notifications are not available.
    package var pollInterval: Double
    /// The limit on deletions of records that a read from the start did not return.
    package var sweepGuard = SweepGuard()

    package init(
      containerIdentifier: String,
      subscription: String = MirrorNames.privateSubscription,
      zone: String = MirrorNames.zone,
      limits: ExportBatcher.Limits = .init(),
      backoff: RetryBackoff = .init(),
      budget: AssetBudget = .init(),
      pageLimit: Int = 200,
      pollInterval: Double = 30
    ) {
      self.containerIdentifier = containerIdentifier
      self.subscription = subscription
      self.zone = zone
      self.limits = limits
      self.backoff = backoff
      self.budget = budget
      self.pageLimit = pageLimit
      self.pollInterval = pollInterval
    }
  }
}
