import CloudKitWebServices
import Effects
import Foundation
import Logging

extension AccountService {
  /// Creates an account, and uses an invitation up in the same transaction.
  @discardableResult
  func create(
    userName: String,
    password: String,
    givenName: String? = nil,
    familyName: String? = nil,
    emailAddress: String? = nil,
    isAdministrator: Bool,
    hasUnverifiedAddress: Bool = false,
    identity: ExternalIdentity? = nil,
    using invitation: DirectoryEntry?,
    from sender: SenderAddress?
  ) async throws -> String {
    let userName = StoredAccount.normalized(userName)
    guard !userName.isEmpty, !password.isEmpty else {
      throw AdministrationError(description: "An account needs a user name and a password.")
    }
    if let objection = PersonName.objection(to: userName) {
      throw AdministrationError(description: objection)
    }
    try checkEmailAddress(emailAddress ?? "")
    try passwords.checkNew(password, userName: userName)
    let secret = try await passwords.newSecret(password, from: sender)
    let account = StoredAccount(
      id: effects.uuid().uuidString,
      userName: userName,
      passwordSalt: secret.salt,
      passwordHash: secret.hash,
      passwordRounds: secret.cost.stored,
      givenName: givenName,
      familyName: familyName,
      emailAddress: emailAddress ?? Self.address(in: userName)
    )
    return try await writer.write { [storage] in
      if let identity, try storage.read({ try $0.entry(identity.key) }) != nil {
        throw AdministrationError(description: "The account exists already. Please start again.")
      }
      guard try storage.read({ try $0.account(userName: userName) }) == nil else {
        throw AdministrationError(description: "There is an account \"\(userName)\" already.")
      }
      var batch = WriteBatch()
      batch.accounts = [account]
      var state = AccountState(isAdministrator: isAdministrator)
      if hasUnverifiedAddress, account.emailAddress != nil { state.hasUnverifiedAddress = true }
      if state != AccountState() {
        batch.savedEntries = [try state.entry(account.id, revision: 1)]
      }
      if let identity {
        // Two concurrent first sign-ins create one account.
        batch.expectedEntries[identity.key] = .some(nil)
        batch.savedEntries.append(try identity.entry(for: account.id))
      }
      if let invitation {
        guard try storage.read({ try $0.entry(invitation.key) }) != nil else {
          throw AdministrationError(description: "This invitation was used already.")
        }
        batch.expectedEntries[invitation.key] = .some(invitation.revision)
        batch.removedEntries = [invitation.key]
      }
      return (batch, account.id)
    }
  }

  // MARK: Invitations

  /// Whether the server has an administrator.
  package func hasAdministrator() throws -> Bool {
    try storage.read { try $0.entries(DirectoryRange(.accountState, limit: .max)) }.contains {
      let state = try WireCoding.decode(AccountState.self, from: $0.body)
      return state.isAdministrator && !state.isDisabled
    }
  }

  /// The code of an invitation, valid once.
  package func invite(isAdministrator: Bool = false, by inviter: String = "") async throws -> String
  {
    let code = effects.randomness.bytes(24).base64URL
    let entry = DirectoryEntry(
      Invitation.key(code),
      owner: inviter,
      expires: now + Int64(limits.invitationLifetime * 1000),
      body: try WireCoding.encode(Invitation(isAdministrator: isAdministrator, by: inviter))
    )
    return try await writer.write {
      var batch = WriteBatch()
      batch.savedEntries = [entry]
      return (batch, code)
    }
  }

  /// The URL at which a user creates an account with an invitation.
  package func signUpURL(invitation code: String) -> String {
    address.url + Self.signUpPath(invitation: code)
  }

  package static func signUpPath(invitation code: String) -> String {
    "\(Route.Section.signUp.path)?invitation=\(code)"
  }

  static let notInvited = AdministrationError(
    description: "This server takes new accounts by invitation, and this invitation is not valid."
  )

  /// Whether the policy allows an account with this invitation, so that a form for it makes sense.
  func mayRegister(invitation code: String?) throws -> Bool {
    if registration == .open { return true }
    return try code.flatMap { try invitation($0) } != nil
  }

  /// Creates an account at a user's request, if the policy allows.
  func register(
    userName: String,
    password: String,
    emailAddress: String?,
    invitation code: String?,
    from sender: SenderAddress?
  ) async throws {
    let found = try code.flatMap { try invitation($0) }
    guard found != nil || registration == .open else {
      throw Self.notInvited
    }
    guard !userName.isEmpty, userName.count <= limits.nameLength,
      // A character may have any number of combining marks; a password's check counts bytes too.
      userName.utf8.count <= 4 * limits.nameLength
    else {
      throw AdministrationError(
        description: "A user name has 1 to \(limits.nameLength) characters."
      )
    }
    let id = try await create(
      userName: userName,
      password: password,
      emailAddress: emailAddress,
      isAdministrator: found?.invitation.isAdministrator ?? false,
      hasUnverifiedAddress: true,
      using: found?.entry,
      from: sender
    )
    auditLog.record("account.register", by: userName, about: userName, from: sender)
    guard mails.isOn, let account = try storage.read({ try $0.account(id: id) }),
      let address = account.emailAddress
    else { return }
    // The account was created all the same; its page can send the link again.
    do {
      try await beginVerification(of: address, for: account)
    } catch let error as ErrorDictionary where error.serverErrorCode == .throttled {
      logger.notice(
        "the mail that confirms the address of a new account was not sent",
        metadata: ["account": "\(account.id)", "reason": "\(error.reason ?? "")"]
      )
    }
  }

  /// Throws for a text that is no e-mail address; an empty text removes the address.
  func checkEmailAddress(_ address: String) throws(AdministrationError) {
    guard !address.isEmpty, let objection = EmailAddress.objection(to: address) else { return }
    throw AdministrationError(description: objection)
  }

  /// The address in a user name, if it is one.
  static func address(in userName: String) -> String? {
    EmailAddress.objection(to: userName) == nil ? userName : nil
  }

  /// The invitation of a code, if it is still valid.
  func invitation(_ code: String) throws -> (entry: DirectoryEntry, invitation: Invitation)? {
    guard let entry = try storage.read({ try $0.entry(Invitation.key(code)) }),
      (entry.expires ?? .max) > now
    else { return nil }
    return (entry, try WireCoding.decode(Invitation.self, from: entry.body))
  }
}
