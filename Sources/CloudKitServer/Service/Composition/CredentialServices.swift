/// The services that check the credentials of accounts, and the mails about them.
struct CredentialServices: Sendable {
  let mails: AccountMails
  let attempts: SignInLimiter
  let secondFactors: SecondFactorService
  let passwords: PasswordService

  init(_ base: ServiceFoundation) {
    mails = AccountMails(
      sender: base.configuration.mailSender,
      storage: base.storage,
      throttle: base.rates.throttle,
      address: base.address,
      limits: base.limits,
      effects: base.effects,
      logger: base.logger
    )
    attempts = SignInLimiter(
      storage: base.storage,
      writer: base.writer,
      auditLog: base.auditLog,
      limits: base.limits,
      effects: base.effects,
      sendsMail: mails.isOn
    )
    secondFactors = SecondFactorService(
      storage: base.storage,
      writer: base.writer,
      vault: base.vault,
      attempts: attempts,
      auditLog: base.auditLog,
      mails: mails,
      address: base.address,
      limits: base.limits,
      effects: base.effects
    )
    passwords = PasswordService(
      storage: base.storage,
      writer: base.writer,
      vault: base.vault,
      hashing: HashingQueue(base.effects.lane("server passwords")),
      attempts: attempts,
      secondFactors: secondFactors,
      auditLog: base.auditLog,
      mails: mails,
      limits: base.limits,
      effects: base.effects
    )
  }
}
