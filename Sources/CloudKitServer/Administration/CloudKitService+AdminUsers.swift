import CloudKitWebServices
import Foundation

/// Admin calls about users.
extension AccountChanges {
  /// The names of the changed properties, for the log.
  fileprivate var names: String {
    [
      password == nil ? nil : "password", givenName == nil ? nil : "given name",
      familyName == nil ? nil : "family name", emailAddress == nil ? nil : "e-mail address",
      phoneNumber == nil ? nil : "telephone number",
      isAdministrator.map { $0 ? "administrator" : "no administrator" },
      isDisabled.map { $0 ? "disabled" : "enabled" },
    ].compactMap(\.self).joined(separator: ", ")
  }
}

extension CloudKitService {
  private struct NamedUser: Decodable {
    var userName: String
  }

  private struct NewUser: Decodable {
    var userName: String
    var password: String
    var givenName: String?
    var familyName: String?
    var emailAddress: String?
    var isAdministrator: Bool?
  }

  private struct DeletedUser: Decodable {
    var userName: String
    var purge: Bool?
  }

  private struct ChangedUser: Decodable {
    var userName: String
    var changes: AccountChanges
  }

  private struct SignedInUser: Decodable {
    /// Nil for the calling administrator.
    var userName: String?
    var container: String
    var device: String?
    /// Whether a token without a device is valid for weeks.
    var isKept: Bool?
  }

  private struct NamedSession: Decodable {
    var userName: String
    var id: String
  }

  private struct NamedDevice: Decodable {
    var id: String
  }

  func administerUsers(
    _ verb: AdminEndpoint.Users,
    _ call: AdminCall
  ) async throws -> AdminReply {
    switch verb {
    case .list: try listUsers(call)
    case .create: try await createUser(call)
    case .update: try await updateUser(call)
    case .delete: try await deleteUser(call)
    case .restore: try await restoreUser(call)
    case .resetPassword: try await resetPassword(call)
    case .signOut: try await signOutUser(call)
    case .removeFactor: try await removeFactor(call)
    case .devices: try listDevices(call)
    case .sessions: try listSessions(call)
    case .endSession: try await endSession(call)
    case .revokeDevice: try await revokeDevice(call)
    case .signIn: try await signInForAdministrator(call)
    }
  }

  // MARK: Accounts

  private func listUsers(_ call: AdminCall) throws -> AdminReply {
    let page: AdminPage = try call.read()
    let trace = auditLog.record("user.list", by: call, about: "")
    return try call.reply(
      ["users": try accounts.descriptions(after: page.after, limit: page.size)],
      trace
    )
  }

  private func createUser(_ call: AdminCall) async throws -> AdminReply {
    let user: NewUser = try call.read()
    try checkEmailAddress(user.emailAddress, isFreeFor: user.userName)
    let id = try await createAccount(
      userName: user.userName,
      password: user.password,
      givenName: user.givenName,
      familyName: user.familyName,
      emailAddress: user.emailAddress,
      isAdministrator: user.isAdministrator ?? false
    )
    return try call.reply(
      ["id": id],
      auditLog.record("user.create", by: call, about: user.userName)
    )
  }

  private func updateUser(_ call: AdminCall) async throws -> AdminReply {
    let user: ChangedUser = try call.read()
    try checkEmailAddress(user.changes.emailAddress, isFreeFor: user.userName)
    try await accounts.change(user.userName, user.changes)
    return call.done(
      auditLog.record("user.update", by: call, about: user.userName, detail: user.changes.names)
    )
  }

  private func deleteUser(_ call: AdminCall) async throws -> AdminReply {
    let user: DeletedUser = try call.read()
    try await accounts.delete(user.userName, purgesNow: user.purge ?? false)
    let action = user.purge == true ? "user.purge" : "user.delete"
    return call.done(auditLog.record(action, by: call, about: user.userName))
  }

  private func restoreUser(_ call: AdminCall) async throws -> AdminReply {
    let user: NamedUser = try call.read()
    try await accounts.restore(user.userName)
    return call.done(auditLog.record("user.restore", by: call, about: user.userName))
  }

  private func resetPassword(_ call: AdminCall) async throws -> AdminReply {
    let user: NamedUser = try call.read()
    let url = try await accounts.passwordResetURL(for: user.userName)
    return try call.reply(
      ["url": url],
      auditLog.record("user.reset-password", by: call, about: user.userName)
    )
  }

  private func removeFactor(_ call: AdminCall) async throws -> AdminReply {
    let user: NamedUser = try call.read()
    guard try await secondFactors.remove(of: storage.account(named: user.userName), from: nil)
    else {
      throw AdministrationError(
        description: "The account \"\(user.userName)\" has no second factor."
      )
    }
    return call.done(auditLog.record("second-factor.remove", by: call, about: user.userName))
  }

  // MARK: Sessions and devices

  private func signOutUser(_ call: AdminCall) async throws -> AdminReply {
    let user: NamedUser = try call.read()
    try await sessions.signOutEverywhere(user.userName)
    return call.done(auditLog.record("user.sign-out", by: call, about: user.userName))
  }

  private func listDevices(_ call: AdminCall) throws -> AdminReply {
    let user: NamedUser = try call.read()
    let devices = try sessions.devices(of: user.userName)
    return try call.reply(
      ["devices": devices],
      auditLog.record("user.devices", by: call, about: user.userName)
    )
  }

  private func listSessions(_ call: AdminCall) throws -> AdminReply {
    let user: NamedUser = try call.read()
    let found = try sessions.signIns(of: user.userName)
    return try call.reply(
      ["sessions": found],
      auditLog.record("user.sessions", by: call, about: user.userName)
    )
  }

  private func endSession(_ call: AdminCall) async throws -> AdminReply {
    let session: NamedSession = try call.read()
    let account = try storage.account(named: session.userName)
    try await sessions.endSignIn(session.id, ofAccount: account.id)
    return call.done(auditLog.record("user.end-session", by: call, about: account.userName))
  }

  private func revokeDevice(_ call: AdminCall) async throws -> AdminReply {
    let device: NamedDevice = try call.read()
    let grant = try await sessions.revokeDevice(device.id)
    let trace = auditLog.record(
      "device.revoke",
      by: call,
      about: try storage.userName(of: grant.account),
      device: grant.device
    )
    return call.done(trace)
  }

  /// Throws if another account has the address: users are found by it.
  ///
  /// An address that its holder only typed does not block its owner: an administrator can verify
  /// it.
  private func checkEmailAddress(_ address: String?, isFreeFor userName: String) throws {
    guard let address, !address.isEmpty else { return }
    let other = try storage.read { snapshot in
      try snapshot.accounts(emailAddress: address).first { account in
        try StoredAccount.folded(account.userName) != StoredAccount.folded(userName)
          && snapshot.state(of: account.id).0.hasUnverifiedAddress != true
      }
    }
    guard let other else { return }
    throw AdministrationError(
      description: "\(other.userName) has the e-mail address \(address) already."
    )
  }

  private struct SignedIn: Encodable {
    var webAuthToken: String
    /// Milliseconds since 1970.
    var expires: Int64?
    var userRecordName: String?
  }

  /// Acting as another user is recorded in the audit log.
  private func signInForAdministrator(_ call: AdminCall) async throws -> AdminReply {
    let user: SignedInUser = try call.read()
    guard NameRules.isContainerName(user.container, limits) else {
      throw AdministrationError(description: "Name the container to sign in to.")
    }
    guard let name = user.userName ?? (call.isOperator ? nil : call.by) else {
      throw ErrorDictionary(
        .authenticationRequired,
        "the operator's token belongs to no user; name one to act as"
      )
    }
    let trace = auditLog.record(
      "user.act-as",
      by: call,
      about: name,
      detail: user.container,
      device: user.device
    )
    let account = try storage.account(named: name)
    guard let device = user.device else {
      let token = try await signIn(
        userName: name,
        container: user.container,
        isKept: user.isKept ?? false
      )
      let session = try storage.read { try $0.session(digest: TokenDigest.of(token)) }
      return try call.reply(
        SignedIn(
          webAuthToken: token,
          expires: session?.expires,
          userRecordName: session?.userRecordName
        ),
        trace
      )
    }
    return try call.reply(
      try await sessions.startGrant(account: account, container: user.container, device: device),
      trace
    )
  }

  private struct NewInvitation: Decodable {
    var isAdministrator: Bool?
  }

  func createInvitation(_ call: AdminCall) async throws -> AdminReply {
    let invitation: NewInvitation = try call.read()
    let code = try await accounts.invite(
      isAdministrator: invitation.isAdministrator ?? false,
      by: call.by
    )
    return try call.reply(
      ["url": accounts.signUpURL(invitation: code)],
      auditLog.record("invitation.create", by: call, about: "")
    )
  }
}
