import CloudKitWebServices
import Foundation

/// The users' own account actions: pages with forms.
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
    if request.method == "POST" { try rates.checkAnonymous(request) }
    // Before anything is typed into a form that cannot succeed.
    guard try accounts.mayRegister(invitation: invitation) else {
      return AccountPage(
        title: "Create an account",
        message: AccountService.notInvited.description
      ).response(status: 400, nonce: nonce)
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
    let code = target.query["code"] ?? ""
    if request.method == "POST" { try rates.checkAnonymous(request) }
    guard try accounts.resetLink(code) != nil else {
      return AccountPage(
        title: "Choose a new password",
        message: AccountService.usedLink.description
      ).response(status: 400, nonce: nonce)
    }
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
    do {
      try await accounts.resetPassword(
        code: code,
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
}
