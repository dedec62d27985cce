import CloudKitWebServices
import Effects
import Foundation

/// The page `/my-account`: a user's own sessions, password, address and second factor.
extension CloudKitService {
  static let ownPageTitle = "Your account"

  func respondToOwnPage(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    let form = request.method == "POST" ? request.form : [:]
    let sender = SenderAddress(request.clientAddress)
    var page = AccountPage(
      title: Self.ownPageTitle,
      fields: AccountPage.Field.credentials(user: form["user"] ?? ""),
      button: "Sign in",
      otherButton: identityOffer("Sign in")
    )
    if mails.isOn { page.links.append((Route.Section.forgotPassword.path, "Forgotten password")) }
    guard request.method == "POST" else { return page.response(nonce: nonce) }
    if form["with"] == Self.identityButton {
      try rates.checkAnonymous(request)
      return try await beginIdentity(request, to: .ownAccount)
    }
    if form["ticket"] != nil {
      guard let account = try await account(ofTicket: form["ticket"], for: .ownAccount, request)
      else {
        page.message = "This took too long. Please start again."
        return page.response(status: 400, nonce: nonce)
      }
      return try await openOwnPage(of: account, by: .ownPageOfIssuer, from: sender)
    }
    if let token = form["session"] {
      guard let own = try ownAccounts.account(ofToken: token, from: sender), own.isOfOwnPage else {
        page.message = "This took too long. Please sign in again."
        return page.response(status: 401, nonce: nonce)
      }
      return try await act(form, token, own)
    }
    do {
      let account = try await passwords.check(
        userName: form["user"] ?? "",
        password: form["password"] ?? "",
        code: form["code"],
        from: sender
      )
      return try await openOwnPage(of: account, by: .ownPage, from: sender)
    } catch let error as ErrorDictionary {
      page.message = wrongPasswordMessage(error)
      return page.response(status: error.serverErrorCode.httpStatus, nonce: nonce)
        .retrying(after: error)
    }
  }

  /// Asks a user who authenticated at the other service to confirm.
  func openingPage(
    for account: StoredAccount,
    _ attempt: IdentityAttempt
  ) throws -> WebServiceResponse {
    AccountPage(
      title: Self.ownPageTitle,
      message: "You are \(account.userName).",
      fields: [try ticketField(for: account, attempt)],
      action: Route.Section.myAccount.path,
      button: "Open the account"
    ).response(nonce: nonce)
  }

  /// Shows the page with a session for it alone: it gives no access to data, is not renewed and
  /// expires soon.
  private func openOwnPage(
    of account: StoredAccount,
    by page: PageSession,
    from sender: SenderAddress?
  ) async throws -> WebServiceResponse {
    let token = effects.randomness.bytes(32).base64URL
    let session = StoredSession(
      digest: TokenDigest.of(token),
      container: page.rawValue,
      account: account.id,
      userRecordName: "",
      expires: now + Int64(limits.ownPageLifetime * 1000),
      isKept: false
    )
    try await sessions.begin(session, of: account)
    auditLog.record("sign-in.own-page", by: account.userName, about: account.userName, from: sender)
    guard let own = try ownAccounts.account(ofToken: token, from: sender) else {
      throw ErrorDictionary(.authenticationFailed, "the account may not sign in")
    }
    return try ownPage(own, token).response()
  }

  private func ownPage(
    _ own: OwnAccount,
    _ token: String,
    message: String? = nil
  ) throws -> OwnAccountPage {
    OwnAccountPage(
      overview: try ownAccounts.overview(own),
      session: token,
      message: message,
      sendsMail: mails.isOn,
      hasPassword: !own.isProvenElsewhere,
      shortestPassword: limits.passwordRule.shortest,
      daysUntilRemoval: Int((limits.purgeDelay / (24 * 60 * 60)).rounded())
    )
  }

  /// Executes a form's action, and shows the account afterwards.
  private func act(
    _ form: [String: String],
    _ token: String,
    _ own: OwnAccount
  ) async throws -> WebServiceResponse {
    let action = form["do"].flatMap(OwnPageAction.init)
    let result: ActionResult
    do {
      result = try await perform(action, form, own)
    } catch let error as AdministrationError {
      var page = try ownPage(own, token)
      page.refusal = .init(form: action, reason: error.description)
      return page.response(status: 400)
    } catch let error as ErrorDictionary {
      var page = try ownPage(own, token)
      page.refusal = .init(form: action, reason: wrongPasswordMessage(error))
      return page.response(status: error.serverErrorCode.httpStatus).retrying(after: error)
    }
    if let page = result.page { return page }
    // Read again: the address or the name may have changed.
    guard let changed = try ownAccounts.account(ofToken: token, from: own.sender) else {
      return AccountPage(title: Self.ownPageTitle, message: result.message).response(nonce: nonce)
    }
    var page = try ownPage(changed, token, message: result.message)
    page.secret = result.secret
    page.recoveryCodes = result.codes
    page.export = result.export
    return page.response()
  }

  /// What the page shows after an action.
  private struct ActionResult {
    var message: String?
    var secret: SecondFactorOffer?
    var codes: [String]?
    var export: AccountExportLink?
    /// What is shown instead of the page.
    var page: WebServiceResponse?
  }

  /// Executes a form's action.
  private func perform(
    _ action: OwnPageAction?,
    _ form: [String: String],
    _ own: OwnAccount
  ) async throws -> ActionResult {
    let password = form["password"] ?? ""
    let code = form["code"]
    switch action {
    case .device:
      try await ownAccounts.endDevice(form["id"] ?? "", of: own)
      return ActionResult(message: "The device is signed out.")
    case .session:
      try await ownAccounts.endSession(form["id"] ?? "", of: own)
      return ActionResult(message: "The sign-in has ended.")
    case .password:
      try await ownAccounts.changePassword(
        of: own,
        from: password,
        to: form["new"] ?? "",
        code: code
      )
      return ActionResult(
        message: "The password is changed. Every other device has to sign in again."
      )
    case .address:
      try await ownAccounts.changeAddress(
        of: own,
        to: form["email"] ?? "",
        password: password,
        code: code
      )
      let message =
        try storage.read { try accounts.pendingAddress(of: own.account, $0) } == nil
        || !mails.isOn
        ? "The address is saved."
        : "The address takes effect once you have opened the link in the mail that was sent to it."
      return ActionResult(message: message)
    case .verify:
      try await ownAccounts.resendVerification(of: own)
      return ActionResult(message: "A mail with a link was sent to the address.")
    case .begin:
      let secret = try await ownAccounts.beginSecondFactor(
        of: own,
        password: password,
        code: code
      )
      return ActionResult(secret: secret)
    case .confirm:
      let codes = try await secondFactors.confirm(
        of: own.account,
        code: form["code"] ?? "",
        from: own.sender
      )
      return ActionResult(message: "The second factor is on.", codes: codes)
    case .codes:
      let codes = try await ownAccounts.renewRecoveryCodes(
        of: own,
        password: password,
        code: code
      )
      return ActionResult(codes: codes)
    case .remove:
      try await ownAccounts.removeSecondFactor(of: own, password: password, code: code)
      return ActionResult(message: "The second factor is removed.")
    case .export:
      return ActionResult(export: try await exports.begin(of: own, password: password, code: nil))
    case .delete:
      try await ownAccounts.delete(own, password: password)
      let page = AccountPage(
        title: Self.ownPageTitle,
        message: "The account \(own.account.userName) is disabled. \(purgeNotice)"
      )
      return ActionResult(page: page.response(nonce: nonce))
    case nil: throw AdministrationError(description: "The page has no such form.")
    }
  }
}
