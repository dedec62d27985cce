import CloudKitWebServices
import Effects
import Foundation

/// The calls with which users read and change their own account.
final class OwnAccountService: Sendable {
  private let storage: any Storage
  private let accounts: AccountService
  private let sessions: SessionService
  private let passwords: PasswordService
  private let secondFactors: SecondFactorService
  private let mails: AccountMails
  private let auditLog: AuditLog
  private let effects: Effects

  init(
    storage: any Storage,
    accounts: AccountService,
    sessions: SessionService,
    passwords: PasswordService,
    secondFactors: SecondFactorService,
    mails: AccountMails,
    auditLog: AuditLog,
    effects: Effects
  ) {
    self.storage = storage
    self.accounts = accounts
    self.sessions = sessions
    self.passwords = passwords
    self.secondFactors = secondFactors
    self.mails = mails
    self.auditLog = auditLog
    self.effects = effects
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// The account of a user token; nil if it is invalid, or an administrator's session.
  func account(ofToken token: String, from sender: SenderAddress?) throws -> OwnAccount? {
    try storage.read { snapshot in
      guard let session = try snapshot.session(digest: TokenDigest.of(token)),
        session.expires > now, session.audience.opensOwnAccount,
        let account = try snapshot.account(id: session.account),
        try !snapshot.state(of: account.id).0.isDisabled
      else { return nil }
      return OwnAccount(account: account, session: session, sender: sender)
    }
  }

  func overview(_ own: OwnAccount) throws -> AccountOverview {
    let id = own.account.id
    let devices = try sessions.devices(ofAccount: id)
    return try storage.read { snapshot in
      let factor = try snapshot.secondFactor(of: id, now: now)?.0
      let sessions = try sessions.signIns(ofAccount: id, snapshot)
      return AccountOverview(
        userName: own.account.userName,
        emailAddress: own.account.emailAddress,
        hasUnverifiedAddress: try snapshot.state(of: id).0.hasUnverifiedAddress == true,
        pendingAddress: !mails.isOn ? nil : try accounts.pendingAddress(of: own.account, snapshot),
        hasSecondFactor: factor?.isConfirmed == true,
        recoveryCodes: factor?.isConfirmed == true ? factor?.recovery.count ?? 0 : 0,
        devices: devices,
        sessions: sessions.map {
          AccountOverview.Session(
            id: $0.shownID,
            container: $0.container,
            expires: $0.expires,
            isOwn: $0.digest == own.session.digest
          )
        }
      )
    }
  }

  // MARK: Ends of sign-ins

  /// Ends one of the user's own sessions, and the capabilities that it was issued.
  func endSession(_ id: String, of own: OwnAccount) async throws {
    try await sessions.endSignIn(id, ofAccount: own.account.id)
    auditLog.record(
      "sign-out.page",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender
    )
  }

  /// Ends one of the user's own devices; another user's device is treated as unknown.
  func endDevice(_ id: String, of own: OwnAccount) async throws {
    guard try sessions.devices(ofAccount: own.account.id).contains(where: { $0.id == id }) else {
      throw AdministrationError(description: "This device no longer exists.")
    }
    let grant = try await sessions.revokeDevice(id)
    auditLog.record(
      "sign-out.device",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender,
      device: grant.device
    )
  }

  // MARK: Changes

  /// Throws without the account's password: a token alone changes nothing that would outlast it.
  ///
  /// Returns the account that the password was verified for. Hashing takes a while, so that what follows
  /// expects that account: another password may have been set since.
  func prove(
    _ own: OwnAccount,
    _ password: String,
    code: String?
  ) async throws -> StoredAccount {
    let proven = try await passwords.check(
      userName: own.account.userName,
      password: password,
      code: code,
      asksForCode: !own.hasGivenCode,
      from: own.sender
    )
    guard proven.id == own.account.id else {
      throw ErrorDictionary(.authenticationFailed, "wrong user name or password")
    }
    return proven
  }

  /// Sets another password; every other session ends.
  func changePassword(
    of own: OwnAccount,
    from password: String,
    to next: String,
    code: String? = nil
  ) async throws {
    try passwords.checkNew(next, userName: own.account.userName)
    let proven = try await prove(own, password, code: code)
    try await accounts.change(
      own.account.userName,
      AccountChanges(password: next),
      from: own.sender,
      keeping: own.session,
      expecting: proven
    )
    auditLog.record(
      "account.password",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender
    )
  }

  /// Sets another e-mail address; an empty text removes it.
  ///
  /// Other users find the account by it once it is confirmed: by a link in a mail to it or, if the
  /// server sends none, by an administrator. A confirmed address stays the account's until the
  /// other one is confirmed too.
  func changeAddress(
    of own: OwnAccount,
    to address: String,
    password: String,
    code: String? = nil
  ) async throws {
    try accounts.checkEmailAddress(address)
    let proven = try await prove(own, password, code: code)
    let verified =
      !mails.isOn || address.isEmpty
      ? nil : try storage.read { try $0.verifiedAddress(of: own.account) }
    if verified != address {
      if mails.isOn, !address.isEmpty { try mails.count(askedBy: own.account) }
      if verified == nil {
        try await accounts.change(
          own.account.userName,
          AccountChanges(emailAddress: address),
          from: own.sender,
          keeping: own.session,
          expecting: proven
        )
      }
      if !address.isEmpty {
        try await accounts.beginVerification(of: address, for: own.account, expecting: proven)
      }
    }
    auditLog.record(
      "account.address",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender
    )
  }

  /// Sends the link that confirms the account's address again.
  func resendVerification(of own: OwnAccount) async throws {
    guard mails.isOn,
      let address = try storage.read({ try accounts.pendingAddress(of: own.account, $0) })
    else { throw AdministrationError(description: "No address is waiting for confirmation.") }
    try accounts.checkEmailAddress(address)
    try mails.count(askedBy: own.account)
    try await accounts.beginVerification(of: address, for: own.account)
  }

  func delete(_ own: OwnAccount, password: String) async throws {
    let proven =
      own.isProvenElsewhere ? own.account : try await prove(own, password, code: nil)
    try await delete(proven, from: own.sender)
  }

  func beginSecondFactor(
    of own: OwnAccount,
    password: String,
    code: String? = nil
  ) async throws -> SecondFactorOffer {
    try await secondFactors.begin(of: prove(own, password, code: code))
  }

  func removeSecondFactor(of own: OwnAccount, password: String, code: String?) async throws {
    let proven = try await prove(own, password, code: code)
    guard try await secondFactors.remove(of: proven, isProven: true, from: own.sender) else {
      throw AdministrationError(description: "The account has no second factor.")
    }
    auditLog.record(
      "second-factor.remove",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender
    )
  }

  func renewRecoveryCodes(
    of own: OwnAccount,
    password: String,
    code: String?
  ) async throws -> [String] {
    let proven = try await prove(own, password, code: code)
    return try await secondFactors.renewRecoveryCodes(of: proven, from: own.sender)
  }

  /// Deletes an account whose user has just authenticated.
  func delete(_ account: StoredAccount, from sender: SenderAddress?) async throws {
    try await accounts.delete(account.userName, from: sender, expecting: account)
    auditLog.record("account.delete", by: account.userName, about: account.userName, from: sender)
  }
}
