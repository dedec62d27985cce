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
  ) async throws -> Data {
    switch verb {
    case .list:
      let page: AdminPage = try call.read()
      auditLog.record("user.list", by: call, about: "")
      return try call.write(
        ["users": try accounts.descriptions(after: page.after, limit: page.size)]
      )
    case .create:
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
      auditLog.record("user.create", by: call, about: user.userName)
      return try call.write(["id": id])
    case .update:
      let user: ChangedUser = try call.read()
      try checkEmailAddress(user.changes.emailAddress, isFreeFor: user.userName)
      try await accounts.change(user.userName, user.changes)
      auditLog.record("user.update", by: call, about: user.userName, detail: user.changes.names)
      return AdminCall.done
    case .delete:
      let user: DeletedUser = try call.read()
      try await accounts.delete(user.userName, purgesNow: user.purge ?? false)
      auditLog.record(
        user.purge == true ? "user.purge" : "user.delete",
        by: call,
        about: user.userName
      )
      return AdminCall.done
    case .restore:
      let user: NamedUser = try call.read()
      try await accounts.restore(user.userName)
      auditLog.record("user.restore", by: call, about: user.userName)
      return AdminCall.done
    case .resetPassword:
      let user: NamedUser = try call.read()
      let url = try await accounts.passwordResetURL(for: user.userName)
      auditLog.record("user.reset-password", by: call, about: user.userName)
      return try call.write(["url": url])
    case .signOut:
      let user: NamedUser = try call.read()
      try await sessions.signOutEverywhere(user.userName)
      auditLog.record("user.sign-out", by: call, about: user.userName)
      return AdminCall.done
    case .removeFactor:
      let user: NamedUser = try call.read()
      guard try await secondFactors.remove(of: storage.account(named: user.userName), from: nil)
      else {
        throw AdministrationError(
          description: "The account \"\(user.userName)\" has no second factor."
        )
      }
      auditLog.record("second-factor.remove", by: call, about: user.userName)
      return AdminCall.done
    case .devices:
      let user: NamedUser = try call.read()
      let devices = try sessions.devices(of: user.userName)
      auditLog.record("user.devices", by: call, about: user.userName)
      return try call.write(["devices": devices])
    case .sessions:
      let user: NamedUser = try call.read()
      let found = try sessions.signIns(of: user.userName)
      auditLog.record("user.sessions", by: call, about: user.userName)
      return try call.write(["sessions": found])
    case .endSession:
      let session: NamedSession = try call.read()
      let account = try storage.account(named: session.userName)
      try await sessions.endSignIn(session.id, ofAccount: account.id)
      auditLog.record("user.end-session", by: call, about: account.userName)
      return AdminCall.done
    case .revokeDevice:
      let device: NamedDevice = try call.read()
      let grant = try await sessions.revokeDevice(device.id)
      auditLog.record(
        "device.revoke",
        by: call,
        about: try storage.userName(of: grant.account),
        device: grant.device
      )
      return AdminCall.done
    case .signIn: return try await signInForAdministrator(call)
    }
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
  private func signInForAdministrator(_ call: AdminCall) async throws -> Data {
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
    auditLog.record(
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
      return try call.write(
        SignedIn(
          webAuthToken: token,
          expires: session?.expires,
          userRecordName: session?.userRecordName
        )
      )
    }
    return try call.write(
      try await sessions.startGrant(account: account, container: user.container, device: device)
    )
  }

  private struct NewInvitation: Decodable {
    var isAdministrator: Bool?
  }

  func createInvitation(_ call: AdminCall) async throws -> Data {
    let invitation: NewInvitation = try call.read()
    let code = try await accounts.invite(
      isAdministrator: invitation.isAdministrator ?? false,
      by: call.by
    )
    auditLog.record("invitation.create", by: call, about: "")
    return try call.write(["url": accounts.signUpURL(invitation: code)])
  }
}
