import CloudKitWebServices
import Foundation

/// The pages that request a mail, and those that a mail's link opens.
extension CloudKitService {
  private static let forgottenTitle = "Forgotten password"

  /// `/forgot-password`: requests a link to a new password.
  func respondToForgottenPassword(_ request: WebServiceRequest) throws -> WebServiceResponse {
    guard mails.isOn else {
      return AccountPage(
        title: Self.forgottenTitle,
        message: "This server sends no mail. Its operator can give you a link to a new password."
      ).response(status: 404, nonce: nonce)
    }
    let form = request.method == "POST" ? request.form : [:]
    guard request.method == "POST" else {
      return AccountPage(
        title: Self.forgottenTitle,
        message: "A link to choose a new password is sent to the account's confirmed address.",
        fields: [
          AccountPage.Field(
            name: "user",
            label: "User name or e-mail address",
            autocomplete: "username"
          )
        ],
        button: "Send the link"
      ).response(nonce: nonce)
    }
    try rates.checkAnonymous(request)
    try accounts.requestPasswordReset(
      for: (form["user"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines),
      from: SenderAddress(request.clientAddress)
    )
    let minutes = Int((limits.passwordResetLifetime / 60).rounded())
    return AccountPage(
      title: Self.forgottenTitle,
      message:
        "If there is an account with a confirmed address, a mail was sent to it. The link "
        + "in it works once, within \(minutes) minutes."
    ).response(nonce: nonce)
  }

  /// `/verify-address`: confirms an address with the link of a mail and the account's password.
  ///
  /// Opening the page confirms nothing, because security scanners open the links of mails. The link
  /// proves access to the address's mail, the password access to the account: without it, the owner
  /// of an address could confirm it for an attacker's account.
  func respondToVerification(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    let title = "Confirm your address"
    let code = target.query["code"] ?? ""
    let sender = SenderAddress(request.clientAddress)
    let isPost = request.method == "POST"
    do {
      if isPost { try rates.checkAnonymous(request) }
      let (owner, address) = try accounts.addressToConfirm(code: code)
      var page = AccountPage(
        title: title,
        message: "\(address) becomes the address of the account \(owner.userName). If this is your "
          + "account, give its password. If it is not, close this window: nothing changes then.",
        fields: AccountPage.Field.credentials(user: "").filter { $0.name != "user" },
        button: "Confirm"
      )
      guard isPost else { return page.response(nonce: nonce) }
      let form = request.form
      let account: StoredAccount
      do {
        account = try await passwords.check(
          userName: owner.userName,
          password: form["password"] ?? "",
          code: form["code"],
          from: sender
        )
      } catch let error as ErrorDictionary {
        page.message = wrongPasswordMessage(error)
        return page.response(status: error.serverErrorCode.httpStatus, nonce: nonce)
          .retrying(after: error)
      }
      try await accounts.confirmAddress(code: code, of: account, from: sender)
    } catch let error as AdministrationError {
      return AccountPage(title: title, message: error.description)
        .response(status: 400, nonce: nonce)
    }
    return AccountPage(
      title: title,
      message: "The address is confirmed. You may close this window."
    ).response(nonce: nonce)
  }
}
