/// The services of the tokens and keys that sign requests.
struct SessionServices: Sendable {
  let sessions: SessionService
  let apiTokens: APITokenService
  let serverKeys: ServerKeyService

  init(
    _ base: ServiceFoundation,
    _ notifications: NotificationServices,
    _ records: RecordServices
  ) {
    sessions = SessionService(
      storage: base.storage,
      writer: base.writer,
      users: records.users,
      devices: notifications.devices,
      auditLog: base.auditLog,
      limits: base.limits,
      effects: base.effects
    )
    apiTokens = APITokenService(
      storage: base.storage,
      writer: base.writer,
      vault: base.vault,
      sessions: sessions,
      effects: base.effects
    )
    serverKeys = ServerKeyService(
      storage: base.storage,
      writer: base.writer,
      users: records.users,
      failures: base.failures,
      limits: base.limits,
      effects: base.effects
    )
  }
}
