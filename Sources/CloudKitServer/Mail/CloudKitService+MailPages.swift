import CloudKitWebServices
import Foundation

/// The pages that lead to a mail, and those that a mail leads to.
extension CloudKitService {
  static let forgottenPasswordPath = "/forgot-password"
  static let verificationPath = "/verify-address"

  private static let forgottenTitle = "Forgotten password"

  /// `/forgot-password`: asks for a link to a new password.
  func respondToForgottenPassword(_ request: WebServiceRequest) throws -> WebServiceResponse {
    guard mail != nil else {
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
    try throttleStrangers(request)
    try requestPasswordReset(
      for: (form["user"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines),
      from: SenderAddress(request.clientAddress)
    )
    let minutes = Int((limits.passwordResetLifetime / 60).rounded())
    return AccountPage(
      title: Self.forgottenTitle,
      message:
        "If there is an account with a confirmed address, a mail is on its way to it. The link "
        + "in it is good once, for \(minutes) minutes."
    ).response(nonce: nonce)
  }

  /// `/verify-address`: confirms an address by the link of a mail.
  ///
  /// Opening the page confirms nothing: programs that look for dangers open the links of mails.
  func respondToVerification(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    var page = AccountPage(
      title: "Confirm your address",
      message: "Press the button to confirm that the address is yours.",
      button: "Confirm"
    )
    page.hasForm = true
    guard request.method == "POST" else { return page.response(nonce: nonce) }
    try throttleStrangers(request)
    do {
      try await confirmAddress(
        code: target.query["code"] ?? "",
        from: SenderAddress(request.clientAddress)
      )
    } catch let error as AdministrationError {
      page.message = error.description
      page.hasForm = false
      return page.response(status: 400, nonce: nonce)
    }
    return AccountPage(
      title: "Confirm your address",
      message: "The address is confirmed. You may close this window."
    ).response(nonce: nonce)
  }
}
