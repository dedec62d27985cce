/// The services that read a database, change its zones and share it.
struct DatabaseServices: Sendable {
  let queries: QueryService
  let feeds: ChangeFeedService
  let zones: ZoneService
  let removals: ZoneRemovals
  let sharing: SharingService

  init(
    _ base: ServiceFoundation,
    _ notifications: NotificationServices,
    _ records: RecordServices
  ) {
    queries = QueryService(base, records)
    feeds = ChangeFeedService(
      storage: base.storage,
      databases: base.databases,
      reads: base.reads,
      tokens: records.tokens,
      renderer: records.renderer,
      limits: base.limits
    )
    zones = ZoneService(
      storage: base.storage,
      writer: base.writer,
      databases: base.databases,
      reads: base.reads,
      quotas: base.quotas,
      delivery: notifications.delivery,
      tokens: records.tokens,
      limits: base.limits
    )
    removals = ZoneRemovals(
      storage: base.storage,
      writer: base.writer,
      limits: base.limits,
      effects: base.effects
    )
    sharing = SharingService(base, notifications, records)
  }
}

extension QueryService {
  fileprivate convenience init(_ base: ServiceFoundation, _ records: RecordServices) {
    self.init(
      storage: base.storage,
      databases: base.databases,
      reads: base.reads,
      indexes: records.indexes,
      renderer: records.renderer,
      tokens: records.tokens,
      signer: base.signer,
      limits: base.limits,
      allowsUnindexedInDevelopment: base.configuration.allowsUnindexedQueriesInDevelopment,
      logger: base.logger
    )
  }
}

extension SharingService {
  fileprivate convenience init(
    _ base: ServiceFoundation,
    _ notifications: NotificationServices,
    _ records: RecordServices
  ) {
    self.init(
      storage: base.storage,
      writer: base.writer,
      users: records.users,
      reads: base.reads,
      rates: base.rates,
      delivery: notifications.delivery,
      renderer: records.renderer,
      signer: base.signer,
      address: base.address,
      limits: base.limits,
      effects: base.effects
    )
  }
}
