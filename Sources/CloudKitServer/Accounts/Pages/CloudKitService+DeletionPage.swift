import CloudKitWebServices
import Foundation

/// The page on which users delete their account: with its password or, if none is known, after a
/// new authentication at the other service.
extension CloudKitService {
  static let deletionTitle = "Delete an account"

  func respondToDeletion(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    let form = request.method == "POST" ? request.form : [:]
    var page = AccountPage(
      title: Self.deletionTitle,
      message: "The account is disabled at once on every device. \(purgeNotice)",
      fields: AccountPage.Field.credentials(user: form["user"] ?? ""),
      button: "Delete the account",
      otherButton: identityOffer("Continue")
    )
    guard request.method == "POST" else { return page.response(nonce: nonce) }
    try rates.checkAnonymous(request)
    if form["with"] == Self.identityButton {
      return try await beginIdentity(request, to: .deleteAccount)
    }
    if let account = try await account(ofTicket: form["ticket"], for: .deleteAccount, request) {
      return try await delete(account, request)
    }
    guard form["ticket"] == nil else {
      page.message = "This took too long. Please start again."
      return page.response(status: 400, nonce: nonce)
    }
    do {
      return try await delete(
        passwords.check(
          userName: form["user"] ?? "",
          password: form["password"] ?? "",
          code: form["code"],
          from: SenderAddress(request.clientAddress)
        ),
        request
      )
    } catch let error as ErrorDictionary {
      page.message = wrongPasswordMessage(error)
      return page.response(status: error.serverErrorCode.httpStatus, nonce: nonce)
        .retrying(after: error)
    }
  }

  /// Asks a user who authenticated at the other service to confirm.
  func deletionPage(
    for account: StoredAccount,
    _ attempt: IdentityAttempt
  ) throws -> WebServiceResponse {
    AccountPage(
      title: Self.deletionTitle,
      message: "This is the account \(account.userName). It is disabled at once on every device. "
        + purgeNotice,
      fields: [try ticketField(for: account, attempt)],
      action: Route.Section.deleteAccount.path,
      button: "Delete the account"
    ).response(nonce: nonce)
  }

  private func delete(
    _ account: StoredAccount,
    _ request: WebServiceRequest
  ) async throws -> WebServiceResponse {
    try await ownAccounts.delete(account, from: SenderAddress(request.clientAddress))
    return AccountPage(
      title: Self.deletionTitle,
      message: "The account \(account.userName) is disabled. \(purgeNotice)"
    ).response(nonce: nonce)
  }

  var purgeNotice: String {
    let days = Int((limits.purgeDelay / (24 * 60 * 60)).rounded())
    return """
      Its data is deleted after \(days) days; until then the server's operator can restore \
      the account.
      """
  }

  /// The message of a form for a wrong password.
  func wrongPasswordMessage(_ error: ErrorDictionary) -> String {
    if error.serverErrorCode == .throttled {
      return "Too many attempts. Please wait a few minutes, then try again."
    }
    if error.serverErrorCode == .tryAgainLater { return "Please try again in a moment." }
    return SecondFactorService.isCodeNeeded(error)
      ? "This account has a second factor. Please give its code too."
      : "The user name, the password or the code is wrong."
  }
}
