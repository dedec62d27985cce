/// The services that write records, their files and their schema.
struct RecordServices: Sendable {
  let assets: AssetService
  let users: UserService
  let tokens: ChangeTokens
  let renderer: RecordRenderer
  let indexes: QueryIndexes
  let erasing: SchemaErasures
  let schemas: SchemaService
  let records: RecordService

  init(_ base: ServiceFoundation, _ notifications: NotificationServices) {
    assets = AssetService(base)
    users = UserService(
      storage: base.storage,
      writer: base.writer,
      vault: base.vault,
      rates: base.rates,
      discovery: base.configuration.discovery,
      limits: base.limits,
      effects: base.effects
    )
    tokens = ChangeTokens(storage: base.storage, signer: base.signer)
    renderer = RecordRenderer(
      vault: base.vault,
      assets: assets,
      address: base.address,
      logger: base.logger
    )
    indexes = QueryIndexes(storage: base.storage, reads: base.reads)
    let writer = RecordWriter(
      base,
      users: users,
      assets: assets,
      renderer: renderer,
      tokens: tokens,
      delivery: notifications.delivery
    )
    erasing = SchemaErasures(writer: base.writer, records: writer, indexes: indexes)
    schemas = SchemaService(
      storage: base.storage,
      writer: base.writer,
      erasing: erasing,
      effects: base.effects
    )
    records = RecordService(
      writer: writer,
      erasing: erasing,
      reads: base.reads,
      quotas: base.quotas,
      failures: base.failures
    )
  }
}

extension AssetService {
  fileprivate convenience init(_ base: ServiceFoundation) {
    self.init(
      store: base.assetStore,
      storage: base.storage,
      writer: base.writer,
      databases: base.databases,
      quotas: base.quotas,
      throttle: base.rates.throttle,
      reads: base.reads,
      signer: base.signer,
      address: base.address,
      downloadURL: base.configuration.assetURL,
      limits: base.limits,
      effects: base.effects
    )
  }
}

extension RecordWriter {
  fileprivate convenience init(
    _ base: ServiceFoundation,
    users: UserService,
    assets: AssetService,
    renderer: RecordRenderer,
    tokens: ChangeTokens,
    delivery: NotificationDelivery
  ) {
    self.init(
      storage: base.storage,
      writer: base.writer,
      databases: base.databases,
      users: users,
      assets: assets,
      vault: base.vault,
      renderer: renderer,
      tokens: tokens,
      delivery: delivery,
      rates: base.rates,
      limits: base.limits,
      effects: base.effects
    )
  }
}
