import CloudKitWebServices
import Foundation

/// The users' own account actions: pages with forms, and calls of apps.
extension CloudKitService {
  func respondToSignUp(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    let invitation = target.query["invitation"]
    guard configuration.registration != .closed || invitation != nil else {
      return AccountPage(
        title: "Create an account",
        message: "Only this server's administrator creates accounts."
      ).response(status: 403, nonce: nonce)
    }
    let form = request.method == "POST" ? request.form : [:]
    var page = AccountPage(
      title: "Create an account",
      fields: [
        AccountPage.Field(
          name: "user",
          label: "User name",
          value: form["user"] ?? "",
          autocomplete: "username"
        ),
        AccountPage.Field(
          name: "email",
          label: "E-mail address (others find you by it once it is confirmed)",
          type: "email",
          value: form["email"] ?? "",
          autocomplete: "email",
          isRequired: false
        ),
        AccountPage.Field(
          name: "password",
          label: "Password, at least \(limits.passwordRule.shortest) characters",
          type: "password",
          autocomplete: "new-password"
        ),
      ],
      button: "Create the account",
      otherButton: identityOffer("Sign up")
    )
    guard request.method == "POST" else { return page.response(nonce: nonce) }
    try rates.checkAnonymous(request)
    if form["with"] == Self.identityButton {
      return try await beginIdentity(request, to: .register(invitation: invitation))
    }
    do {
      try await accounts.register(
        userName: form["user"] ?? "",
        password: form["password"] ?? "",
        emailAddress: form["email"].flatMap { $0.isEmpty ? nil : $0 },
        invitation: invitation,
        from: SenderAddress(request.clientAddress)
      )
    } catch let error as AdministrationError {
      page.message = error.description
      return page.response(status: 400, nonce: nonce)
    }
    let mailed =
      !mails.isOn ? "" : " Open the link in the mail that was sent to confirm your address."
    return AccountPage(
      title: "Create an account",
      message: "The account \(form["user"] ?? "") was created. You can sign in now.\(mailed)"
    ).response(nonce: nonce)
  }

  func respondToPasswordReset(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    var page = AccountPage(
      title: "Choose a new password",
      fields: [
        AccountPage.Field(
          name: "password",
          label: "Password, at least \(limits.passwordRule.shortest) characters",
          type: "password",
          autocomplete: "new-password"
        )
      ],
      button: "Save"
    )
    guard request.method == "POST" else { return page.response(nonce: nonce) }
    try rates.checkAnonymous(request)
    do {
      try await accounts.resetPassword(
        code: target.query["code"] ?? "",
        password: request.form["password"] ?? "",
        from: SenderAddress(request.clientAddress)
      )
    } catch let error as AdministrationError {
      page.message = error.description
      return page.response(status: 400, nonce: nonce)
    }
    return AccountPage(
      title: "Choose a new password",
      message: "The new password is saved. Every device has to sign in again."
    ).response(nonce: nonce)
  }

  // MARK: Calls of apps

  /// `POST /account/{sign-in|refresh|sign-out|delete}` and those of ``OwnAccountCall``, with bodies
  /// and replies in JSON, and `POST /account/{device|token}`, in OAuth's formats.
  ///
  /// An extension: Apple's apps sign in with the system's account.
  func respondToAccount(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    guard request.method == "POST", target.parts.count == 2 else {
      throw ErrorDictionary.noHandler
    }
    guard let verb = AccountVerb(rawValue: target.parts[1]) else {
      guard let call = OwnAccountCall(rawValue: target.parts[1]) else {
        throw ErrorDictionary.noHandler
      }
      return try await respondToOwnAccount(call, request, target)
    }
    switch verb {
    case .device: return try await beginDeviceAuthorization(request)
    case .token: return try await respondToTokenRequest(request)
    case .signIn:
      let call = try ClientBody.decode(
        SignInCall.self,
        from: request.body,
        within: bodyBounds[nil]
      )
      let apiToken = try apiTokens.token(target.query[WebServiceName.apiToken] ?? "")
      let admission = APITokenAdmission(
        container: .requested(call.container),
        environment: .both,
        origin: .trusted(request.headers["origin"], server: baseURL)
      )
      guard let apiToken, admission.admits(apiToken) else {
        throw ErrorDictionary(.authenticationFailed, "unknown API token")
      }
      guard NameRules.isContainerName(call.container, limits) else {
        throw ErrorDictionary(.badRequest, "invalid container")
      }
      let account = try await passwords.check(
        userName: call.userName,
        password: call.password,
        code: call.code,
        from: SenderAddress(request.clientAddress)
      )
      let device = call.device ?? "a device"
      let credentials = try await sessions.startGrant(
        account: account,
        container: call.container,
        device: device
      )
      auditLog.record(
        "sign-in.device",
        by: account.userName,
        about: account.userName,
        detail: call.container,
        from: SenderAddress(request.clientAddress),
        device: PersonName.device(device, limit: limits.nameLength)
      )
      return try reply(credentials)
    case .refresh:
      let call = try ClientBody.decode(
        RefreshCall.self,
        from: request.body,
        within: bodyBounds[nil]
      )
      return try reply(
        try await sessions.refresh(call.refreshToken, from: SenderAddress(request.clientAddress))
      )
    case .signOut:
      let call = try ClientBody.decode(
        RefreshCall.self,
        from: request.body,
        within: bodyBounds[nil]
      )
      // Any client with a valid token of the device may end its grant.
      _ = try await sessions.refresh(call.refreshToken, from: SenderAddress(request.clientAddress))
      let grant = try await sessions.revokeDevice(String(call.refreshToken.prefix { $0 != "." }))
      auditLog.record(
        "sign-out.device",
        by: try storage.userName(of: grant.account),
        about: try storage.userName(of: grant.account),
        from: SenderAddress(request.clientAddress),
        device: grant.device
      )
      return try reply([String: String]())
    case .delete:
      let call = try ClientBody.decode(
        DeleteCall.self,
        from: request.body,
        within: bodyBounds[nil]
      )
      let account = try await passwords.check(
        userName: call.userName,
        password: call.password,
        code: call.code,
        from: SenderAddress(request.clientAddress)
      )
      try await ownAccounts.delete(account, from: SenderAddress(request.clientAddress))
      return try reply([String: String]())
    }
  }

  private func reply(_ value: some Encodable) throws -> WebServiceResponse {
    WebServiceResponse(
      status: 200,
      headers: ["cache-control": "no-store"],
      body: try WireCoding.encode(value)
    )
  }

  private struct SignInCall: Decodable {
    var userName: String
    var password: String
    /// The code of the second factor, if the account has one.
    var code: String?
    var container: String
    var device: String?
  }

  private struct RefreshCall: Decodable {
    var refreshToken: String
  }

  private struct DeleteCall: Decodable {
    var userName: String
    var password: String
    var code: String?
  }
}
