import CloudKitWebServices
import Foundation

/// Resets a forgotten password, with a link in a mail to the account's confirmed address.
extension AccountService {
  /// The accounts of one address that get a mail for one request.
  private static let accountsPerRequest = 3

  /// Accepts a request for a link; neither the reply nor its time reveals whether there is an
  /// account, since the look-up is made after the reply.
  func requestPasswordReset(for name: String, from sender: SenderAddress?) throws {
    guard let queue = mails.queue else { return }
    guard name.utf8.count <= 4 * limits.nameLength else { return }
    guard queue.add({ [self] in try await resetMails(for: name, from: sender) }) else {
      throw ErrorDictionary(
        .throttled,
        "the queue of mails is full, try again later",
        retryAfter: 60
      )
    }
  }

  /// The mails for a user name or an address.
  private func resetMails(
    for name: String,
    from sender: SenderAddress?
  ) async throws -> [MailMessage] {
    let found = try storage.read { snapshot in
      // A user name may equal another user's address; that user gets a mail too.
      var accounts = try snapshot.accounts(emailAddress: name)
      if let named = try snapshot.account(userName: name) { accounts.insert(named, at: 0) }
      var seen: Set<String> = []
      return try accounts.compactMap { account -> (StoredAccount, String)? in
        guard seen.insert(account.id).inserted, try !snapshot.state(of: account.id).0.isDisabled,
          let address = try snapshot.verifiedAddress(of: account)
        else { return nil }
        return (account, address)
      }
    }
    var messages: [MailMessage] = []
    for (account, address) in found.prefix(Self.accountsPerRequest)
    where mails.maySend(to: address, for: .reset) {
      messages.append(try await resetMail(for: account, at: address, from: sender))
    }
    return messages
  }

  private func resetMail(
    for account: StoredAccount,
    at address: String,
    from sender: SenderAddress?
  ) async throws -> MailMessage {
    let answer = try storage.read { snapshot in
      try mayReset(byMail: account.id, snapshot.state(of: account.id).0, snapshot)
    }
    switch answer {
    case .link: break
    case .signInAtIssuer:
      let name = issuerName ?? "another service"
      return mails.message(.signInAtIssuer(service: name), to: address, of: account)
    case .askOperator: return mails.message(.askOperator, to: address, of: account)
    }
    let link = try await passwordResetURL(for: account.userName, mailedTo: address)
    auditLog.record(
      "account.reset-link",
      by: "",
      about: account.userName,
      detail: "by mail",
      from: sender
    )
    let lifetime = limits.passwordResetLifetime
    return mails.message(
      .resetPassword(link: link, minutes: Int((lifetime / 60).rounded())),
      to: address,
      of: account,
      lifetime: lifetime
    )
  }
}
