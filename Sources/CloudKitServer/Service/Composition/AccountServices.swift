/// The services that create, change, export and delete accounts, and delete containers.
struct AccountServices: Sendable {
  let purges: AccountPurges
  let containerErasures: ContainerErasures
  let accounts: AccountService
  let ownAccounts: OwnAccountService
  let exports: AccountExports

  init(
    _ base: ServiceFoundation,
    _ notifications: NotificationServices,
    _ records: RecordServices,
    _ databases: DatabaseServices,
    _ credentials: CredentialServices,
    _ sessions: SessionService
  ) {
    purges = AccountPurges(
      storage: base.storage,
      writer: base.writer,
      zones: databases.zones,
      sessions: sessions,
      delivery: notifications.delivery,
      limits: base.limits,
      effects: base.effects
    )
    containerErasures = ContainerErasures(
      storage: base.storage,
      writer: base.writer,
      assets: records.assets,
      quotas: base.quotas,
      sessions: sessions,
      limits: base.limits,
      effects: base.effects
    )
    accounts = AccountService(base, credentials, sessions, purges)
    ownAccounts = OwnAccountService(
      storage: base.storage,
      accounts: accounts,
      sessions: sessions,
      passwords: credentials.passwords,
      secondFactors: credentials.secondFactors,
      mails: credentials.mails,
      auditLog: base.auditLog,
      effects: base.effects
    )
    exports = AccountExports(
      storage: base.storage,
      writer: base.writer,
      ownAccounts: ownAccounts,
      reads: base.reads,
      renderer: records.renderer,
      assets: records.assets,
      signer: base.signer,
      auditLog: base.auditLog,
      address: base.address,
      limits: base.limits,
      effects: base.effects,
      logger: base.logger
    )
  }
}

extension AccountService {
  fileprivate convenience init(
    _ base: ServiceFoundation,
    _ credentials: CredentialServices,
    _ sessions: SessionService,
    _ purges: AccountPurges
  ) {
    self.init(
      storage: base.storage,
      writer: base.writer,
      sessions: sessions,
      passwords: credentials.passwords,
      attempts: credentials.attempts,
      purges: purges,
      mails: credentials.mails,
      auditLog: base.auditLog,
      address: base.address,
      registration: base.configuration.registration,
      issuerName: base.configuration.identityProvider?.name,
      limits: base.limits,
      effects: base.effects,
      logger: base.logger
    )
  }
}
