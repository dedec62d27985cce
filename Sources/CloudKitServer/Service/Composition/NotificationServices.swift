/// The services that notify devices of changes.
struct NotificationServices: Sendable {
  let delivery: NotificationDelivery
  let devices: DeviceService
  let subscriptions: SubscriptionService

  init(_ base: ServiceFoundation) throws {
    let hub = NotificationHub(
      effects: base.effects,
      timeout: base.limits.longPollTimeout,
      listenerLimit: base.limits.listenersPerDevice
    )
    delivery = try NotificationDelivery(
      storage: base.storage,
      hub: hub,
      effects: base.effects,
      eventLifetime: base.limits.eventLifetime,
      onCommit: base.configuration.onCommit
    )
    devices = DeviceService(
      storage: base.storage,
      writer: base.writer,
      hub: hub,
      signer: base.signer,
      address: base.address,
      shutdownFlag: base.shutdownFlag,
      limits: base.limits,
      effects: base.effects,
      logger: base.logger
    )
    subscriptions = SubscriptionService(
      storage: base.storage,
      writer: base.writer,
      databases: base.databases,
      limits: base.limits,
      effects: base.effects
    )
  }
}
