import CloudKitWebServices
import Foundation

/// A user who reads or changes their own account, and their session.
struct OwnAccount: Sendable {
  var account: StoredAccount
  var session: StoredSession
  var sender: SenderAddress?
  /// Whether the session belongs to the account page, and began moments ago.
  var isOfOwnPage: Bool { PageSession.ownPages.contains(session.container) }
  /// Whether the session began with password and code.
  ///
  /// A change requires the password again, but no second code. An authentication at another service
  /// is no code of this account.
  var hasGivenCode: Bool { session.container == PageSession.ownPage.rawValue }
  /// Whether the page was opened by an authentication at another service: the user may have no
  /// password here.
  var isProvenElsewhere: Bool { session.container == PageSession.ownPageOfIssuer.rawValue }
}

/// Calls with a user token about the user's own account: `POST /account/…`.
package enum OwnAccountCall: String, CaseIterable, Sendable {
  case overview
  case endSession = "end-session"
  case endDevice = "end-device"
  case changePassword = "change-password"
  case changeAddress = "change-address"
  case sendVerification = "send-verification"
  case beginSecondFactor = "begin-second-factor"
  case confirmSecondFactor = "confirm-second-factor"
  case removeSecondFactor = "remove-second-factor"
  case renewRecoveryCodes = "renew-recovery-codes"
  case exportData = "export-data"
  /// Whether others find the person in the container of the session.
  case discoverability
}

/// A user's own account, as shown to them.
package struct AccountOverview: Codable, Hashable, Sendable {
  /// A session of a page, which expires; a device's sessions are listed with the device.
  package struct Session: Codable, Hashable, Sendable {
    /// Half of a digest: it identifies the session and grants nothing.
    package var id: String
    package var container: String
    /// Milliseconds since 1970.
    package var expires: Int64
    /// Whether it is the caller's.
    package var isOwn: Bool
  }

  package var userName: String
  package var emailAddress: String?
  package var hasUnverifiedAddress: Bool
  /// The address that is waiting for its confirmation; nil if there is none.
  package var pendingAddress: String?
  package var hasSecondFactor: Bool
  /// The number of unused recovery codes.
  package var recoveryCodes: Int
  package var devices: [CloudKitService.DeviceDescription]
  package var sessions: [Session]
}

extension CloudKitService {
  /// The account of a user token; nil if it is invalid, or an administrator's session.
  func ownAccount(_ token: String, from sender: SenderAddress?) throws -> OwnAccount? {
    try storage.read { snapshot in
      guard let session = try snapshot.session(digest: Self.digest(token)), session.expires > now,
        PageSession.ownPages.contains(session.container) || !session.container.hasPrefix("/"),
        let account = try snapshot.account(id: session.account),
        try !snapshot.state(of: account.id).0.isDisabled
      else { return nil }
      return OwnAccount(account: account, session: session, sender: sender)
    }
  }

  func overview(_ own: OwnAccount) throws -> AccountOverview {
    let id = own.account.id
    let devices = try devices(ofAccount: id)
    return try storage.read { snapshot in
      let factor = try snapshot.secondFactor(of: id, now: now)?.0
      let grants = try snapshot.entries(DirectoryRange(.refreshToken, owner: id, limit: .max))
      let ofDevices = Set(
        try grants.flatMap { try WireCoding.decode(RefreshGrant.self, from: $0.body).sessions }
      )
      let sessions = try snapshot.sessions(account: id).filter {
        $0.expires > now
          && !(PageSession.ownPages + [PageSession.share.rawValue]).contains($0.container)
          && !ofDevices.contains($0.digest)
      }
      return AccountOverview(
        userName: own.account.userName,
        emailAddress: own.account.emailAddress,
        hasUnverifiedAddress: try snapshot.state(of: id).0.hasUnverifiedAddress == true,
        pendingAddress: !mails.isOn ? nil : try pendingAddress(of: own.account, snapshot),
        hasSecondFactor: factor?.isConfirmed == true,
        recoveryCodes: factor?.isConfirmed == true ? factor?.recovery.count ?? 0 : 0,
        devices: devices,
        sessions: sessions.map {
          AccountOverview.Session(
            id: Self.shownID($0),
            container: $0.container,
            expires: $0.expires,
            isOwn: $0.digest == own.session.digest
          )
        }
      )
    }
  }

  private static func shownID(_ session: StoredSession) -> String {
    String(session.digest.prefix(32))
  }

  // MARK: Ends of sign-ins

  /// Ends one of the user's own sessions, and the capabilities that it was issued.
  func endSession(_ id: String, of own: OwnAccount) async throws {
    let account = own.account.id
    try await write { [storage] in
      try storage.read { snapshot in
        let sessions = try snapshot.sessions(account: account)
        guard let session = sessions.first(where: { Self.shownID($0) == id }) else {
          throw AdministrationError(description: "This sign-in no longer exists.")
        }
        var batch = WriteBatch()
        batch.endedSessions = [session.digest]
        try self.devices.endDevices(of: account, snapshot, in: &batch) {
          $0.session == session.digest
        }
        return (batch, ())
      }
    }
    credentialsEnded()
    auditLog.record(
      "sign-out.page",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender
    )
  }

  /// Ends one of the user's own devices; another user's device is treated as unknown.
  func endDevice(_ id: String, of own: OwnAccount) async throws {
    guard try devices(ofAccount: own.account.id).contains(where: { $0.id == id }) else {
      throw AdministrationError(description: "This device no longer exists.")
    }
    let grant = try await revokeDevice(id)
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
  func prove(_ own: OwnAccount, _ password: String, code: String?) async throws {
    let proven = try await checkPassword(
      userName: own.account.userName,
      password: password,
      code: code,
      asksForCode: !own.hasGivenCode,
      from: own.sender
    )
    guard proven.id == own.account.id else {
      throw ErrorDictionary(.authenticationFailed, "wrong user name or password")
    }
  }

  /// Sets another password; every other session ends.
  func changePassword(
    of own: OwnAccount,
    from password: String,
    to next: String,
    code: String? = nil
  ) async throws {
    try checkNew(next, userName: own.account.userName)
    try await prove(own, password, code: code)
    try await changeAccount(
      own.account.userName,
      AccountChanges(password: next),
      from: own.sender,
      keeping: own.session
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
    try checkAddress(address)
    try await prove(own, password, code: code)
    let verified =
      !mails.isOn || address.isEmpty
      ? nil : try storage.read { try $0.verifiedAddress(of: own.account) }
    if verified != address {
      if mails.isOn, !address.isEmpty { try mails.count(askedBy: own.account) }
      if verified == nil {
        try await changeAccount(
          own.account.userName,
          AccountChanges(emailAddress: address),
          from: own.sender,
          keeping: own.session
        )
      }
      if !address.isEmpty { try await beginVerification(of: address, for: own.account) }
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
      let address = try storage.read({ try pendingAddress(of: own.account, $0) })
    else { throw AdministrationError(description: "No address is waiting for confirmation.") }
    try checkAddress(address)
    try mails.count(askedBy: own.account)
    try await beginVerification(of: address, for: own.account)
  }

  func delete(_ own: OwnAccount, password: String) async throws {
    if !own.isProvenElsewhere { try await prove(own, password, code: nil) }
    try await deleteOwnAccount(own.account, from: own.sender)
  }

  func beginSecondFactor(
    of own: OwnAccount,
    password: String,
    code: String? = nil
  ) async throws -> SecondFactorOffer {
    try await prove(own, password, code: code)
    return try await beginSecondFactor(of: own.account)
  }

  func removeSecondFactor(of own: OwnAccount, password: String, code: String?) async throws {
    try await prove(own, password, code: code)
    guard try await removeSecondFactor(of: own.account, from: own.sender) else {
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
    try await prove(own, password, code: code)
    return try await renewRecoveryCodes(of: own.account, from: own.sender)
  }
}
