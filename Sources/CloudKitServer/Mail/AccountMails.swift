import CloudKitWebServices
import Effects
import Foundation
import Logging

/// Mails to the users of accounts: their texts, their recipients and their limits.
final class AccountMails: Sendable {
  /// Nil: the server sends none.
  let queue: MailQueue?
  private let storage: any Storage
  private let throttle: RequestThrottle
  private let address: ServerAddress
  private let limits: ServiceLimits
  private let effects: Effects
  private let logger: Logger

  init(
    sender: (any MailSender)?,
    storage: any Storage,
    throttle: RequestThrottle,
    address: ServerAddress,
    limits: ServiceLimits,
    effects: Effects,
    logger: Logger
  ) {
    queue = sender.map { sender in
      MailQueue(
        sender,
        MailQueue.Bounds(
          waiting: limits.waitingMails,
          waitingNotices: limits.waitingNotices,
          lifetime: limits.mailLifetime
        ),
        effects: effects,
        logger: logger
      )
    }
    self.storage = storage
    self.throttle = throttle
    self.address = address
    self.limits = limits
    self.effects = effects
    self.logger = logger
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// Whether the server sends mail.
  var isOn: Bool { queue != nil }

  /// A mail about an account; `lifetime` is the time in seconds for which its link is valid.
  func message(
    _ content: AccountMail,
    to address: String,
    of account: StoredAccount,
    lifetime: Double? = nil
  ) -> MailMessage {
    let words = content.words(userName: account.userName, host: self.address.host)
    var message = MailMessage(
      to: address,
      subject: words.subject,
      text: words.text,
      id: effects.randomness.bytes(16).hexadecimal,
      date: effects.now
    )
    message.validUntil = lifetime.map { effects.now + $0 }
    return message
  }

  /// The purpose of a requested mail; each purpose is counted separately.
  enum Purpose: String, Sendable {
    case confirmation
    case reset
  }

  /// Whether an address may receive another mail that a request asked for.
  ///
  /// Anyone can request mails to any address, so each address has a limit per hour, and so has the
  /// server. Requests to confirm an address do not use up the limit of password resets.
  func maySend(to address: String, for purpose: Purpose) -> Bool {
    let digest = TokenDigest.of("mail\0\(EmailAddress.folded(address))")
    let kind = "mail \(purpose.rawValue)"
    for (name, count) in [
      ("\(kind) \(digest)", limits.mailsPerAddress), (kind, limits.mailsPerHour),
    ] {
      let delay = throttle.delay(
        for: name,
        rate: Double(count) / 3600,
        burst: Double(count),
        now: now
      )
      guard delay == nil else {
        logger.notice(
          "a mail was not sent: the limit of mails in an hour is reached",
          metadata: [
            "purpose": "\(purpose.rawValue)", "limit": name == kind ? "server" : "address",
          ]
        )
        return false
      }
    }
    return true
  }

  /// Throws for an account that asked for as many mails in an hour as it may, regardless of their
  /// addresses.
  func count(askedBy account: StoredAccount) throws {
    let count = Double(limits.mailsPerAddress)
    let delay = throttle.delay(
      for: "mail asked \(account.id)",
      rate: count / 3600,
      burst: count,
      now: now
    )
    if let delay {
      throw ErrorDictionary(.throttled, "too many mails were requested", retryAfter: delay)
    }
  }

  /// The notices of one kind that an account gets without delay, and the seconds until one more may
  /// be sent.
  private static let noticesAtOnce = 5
  private static let noticePause = 300.0

  /// Sends a notice of a change of an account to its confirmed address.
  ///
  /// After several of a kind the next ones are omitted for minutes: one account must not fill the
  /// queue.
  func notify(
    _ account: StoredAccount,
    at address: String?,
    of notice: AccountNotice,
    from sender: SenderAddress?
  ) {
    guard let queue, let address else { return }
    let delay = throttle.delay(
      for: "notice \(notice) \(account.id)",
      rate: 1 / Self.noticePause,
      burst: Double(Self.noticesAtOnce),
      now: now
    )
    guard delay == nil else {
      logger.notice(
        "a notice was not sent: the account has received several of its kind within minutes",
        metadata: ["account": "\(account.id)", "notice": "\(notice)"]
      )
      return
    }
    let message = message(
      .notice(
        notice,
        time: effects.now,
        address: sender?.shown,
        resetLink: self.address.url + Route.Section.forgotPassword.path
      ),
      to: address,
      of: account
    )
    if !queue.add(notice: message) {
      logger.error(
        "a notice was not sent: the queue of mails is full",
        metadata: ["mail": "\(message.id)"]
      )
    }
  }

  /// Queues a notice to the account's present address.
  func notify(_ account: StoredAccount, of notice: AccountNotice, from sender: SenderAddress?) {
    guard isOn else { return }
    // A notice that cannot be addressed must not undo the change that it reports.
    let address = try? storage.read { try $0.verifiedAddress(of: account) }
    notify(account, at: address, of: notice, from: sender)
  }
}

extension StorageSnapshot {
  /// The address of an account, if it is verified.
  func verifiedAddress(of account: StoredAccount) throws -> String? {
    guard let address = account.emailAddress, !address.isEmpty,
      try state(of: account.id).0.hasUnverifiedAddress != true,
      EmailAddress.objection(to: address) == nil
    else { return nil }
    return address
  }
}
