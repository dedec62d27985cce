import CloudKitWebServices
import Effects
import Foundation
import Logging

/// Signing in at another service: to its page with a sealed attempt, and back with a code.
extension CloudKitService {
  /// The purpose of a sign-in; it is sent sealed, so that the server stores nothing for attempts
  /// that are never finished.
  struct IdentityAttempt: Codable, Hashable, Sendable {
    enum Purpose: Codable, Hashable, Sendable {
      case signIn(SignInRequest, isKept: Bool)
      case register(invitation: String?)
      /// Allows the program that shows this code.
      case activate(code: String)
      case deleteAccount
      /// Opens the user's account page.
      case ownAccount

      /// Whether the other service must authenticate again, and an account must exist.
      var isOfOwnAccount: Bool { self == .deleteAccount || self == .ownAccount }
    }

    var purpose: Purpose
    var challenge: IdentityChallenge
    /// The digest of a cookie in the browser that began: no other browser can finish.
    var browser: String
    /// Milliseconds since 1970.
    var expires: Int64
  }

  /// The value of the button that leads to the other service.
  static let identityButton = "identity"

  /// The label of that button, if there is another service.
  func identityOffer(_ verb: String) -> String? {
    configuration.identityProvider.map { "\(verb) with \($0.name)" }
  }

  /// Sends a browser to the other service.
  func beginIdentity(
    _ request: WebServiceRequest,
    to purpose: IdentityAttempt.Purpose
  ) async throws -> WebServiceResponse {
    guard let provider = configuration.identityProvider else {
      throw ErrorDictionary.noHandler
    }
    // One cookie serves all windows of a browser.
    let browser = cookie(request) ?? effects.randomness.bytes(32).base64URL
    let attempt = IdentityAttempt(
      purpose: purpose,
      challenge: IdentityChallenge(
        nonce: effects.randomness.bytes(16).hexadecimal,
        verifier: effects.randomness.bytes(32).base64URL,
        redirectURL: "\(baseURL)\(Self.identityReturn)",
        requiresAuthenticationSince: purpose.isOfOwnAccount ? now : nil
      ),
      browser: TokenDigest.of(browser),
      expires: now + Self.attemptLifetime
    )
    let address: String
    do {
      address = try await provider.signInAddress(
        attempt.challenge,
        state: try signer.seal(attempt, for: .identity)
      )
    } catch let failure as IdentityFailure {
      return try identityPage(failure, provider, attempt)
    }
    let security = baseURL.hasPrefix("https:") ? "; Secure" : ""
    return WebServiceResponse(
      status: 303,
      headers: [
        "location": address,
        "set-cookie":
          "\(cookieName)=\(browser); Path=/; Max-Age=\(Self.attemptLifetime / 1000); HttpOnly; "
          + "SameSite=Lax\(security)",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        WebServiceName.contentType: "text/plain; charset=UTF-8",
      ]
    )
  }

  /// The path to which the other service sends browsers back.
  static let identityReturn = Route.Section.signIn.path + "/return"
  /// Milliseconds between the start and the return.
  private static let attemptLifetime: Int64 = 10 * 60 * 1000

  /// Over HTTPS the name's prefix prevents other hosts from setting the cookie.
  private var cookieName: String {
    baseURL.hasPrefix("https:") ? "__Host-watershed-sign-in" : "watershed-sign-in"
  }

  private func cookie(_ request: WebServiceRequest) -> String? {
    let cookies = (request.headers["cookie"] ?? "").split(ascii: ";")
      .flatMap { $0.split(ascii: ",") }
      .map { $0.trimmingCharacters(in: .whitespaces) }
    let prefix = "\(cookieName)="
    let value = cookies.first { $0.hasPrefix(prefix) }?.dropFirst(prefix.count)
    return value.map(String.init).flatMap { $0.count == 43 ? $0 : nil }
  }

  // MARK: Return

  func respondToIdentityReturn(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    guard let provider = configuration.identityProvider else {
      throw ErrorDictionary.noHandler
    }
    guard request.method == "GET" else {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    let state = target.query["state"] ?? ""
    guard let attempt = signer.open(state, as: IdentityAttempt.self, for: .identity),
      attempt.expires > now, let browser = cookie(request),
      TokenDigest.of(browser) == attempt.browser
    else {
      return AccountPage(
        title: "Sign in",
        message: "This sign-in took too long or was started in another browser. Please start again."
      ).response(status: 400, nonce: nonce)
    }
    do {
      try await useUp(state, until: attempt.expires)
      if let code = target.query["error"] {
        throw IdentityFailure(.refused, "the issuer answered \(Self.word(code))")
      }
      guard let code = target.query["code"], !code.isEmpty else {
        throw IdentityFailure(.refused, "the issuer's redirect has no code")
      }
      let identity = try await provider.identity(code: code, attempt.challenge)
      let account = try await account(of: identity, provider, attempt)
      return try await welcome(account, attempt, from: SenderAddress(request.clientAddress))
    } catch let failure as IdentityFailure {
      return try identityPage(failure, provider, attempt)
    } catch let error as AdministrationError {
      return try identityPage(error.description, status: 403, attempt)
    }
  }

  /// The letters of an error code, which is part of a URL that anyone could have written.
  private static func word(_ text: String) -> String {
    String(text.prefix(64).filter { $0.isASCII && ($0.isLetter || $0 == "_") })
  }

  /// Records that an attempt or a ticket was used: each is valid once, on all servers together.
  private func useUp(_ text: String, until expires: Int64) async throws {
    let key = DirectoryEntry.Key(.identityAttempt, TokenDigest.of(text))
    try await write { [storage] in
      guard try storage.read({ try $0.entry(key) }) == nil else {
        throw AdministrationError(description: "This sign-in was used already. Please start again.")
      }
      var batch = WriteBatch()
      batch.expectedEntries[key] = .some(nil)
      batch.savedEntries = [DirectoryEntry(key, expires: expires)]
      return (batch, ())
    }
  }

  private func welcome(
    _ account: StoredAccount,
    _ attempt: IdentityAttempt,
    from sender: SenderAddress?
  ) async throws -> WebServiceResponse {
    let (signIn, isKept): (SignInRequest, Bool)
    switch attempt.purpose {
    case .signIn(let request, let flag): (signIn, isKept) = (request, flag)
    case .register:
      return AccountPage(
        title: "Create an account",
        message: "The account \(account.userName) was created. You can sign in now."
      ).response(nonce: nonce)
    case .activate(let code): return try activationPage(code, for: account, attempt)
    case .deleteAccount: return try deletionPage(for: account, attempt)
    case .ownAccount: return try openingPage(for: account, attempt)
    }
    let known = try apiTokens.token(signIn.apiToken)
    let admission = APITokenAdmission(
      container: .requested(signIn.container),
      environment: .both,
      origin: .ofHandover
    )
    guard let apiToken = known, admission.admits(apiToken)
    else { throw AdministrationError(description: "This sign-in link is no longer valid.") }
    let token = try await sessions.start(
      account: account,
      container: signIn.container,
      isKept: isKept
    )
    auditLog.record(
      "sign-in.issuer",
      by: account.userName,
      about: account.userName,
      detail: signIn.container,
      from: sender
    )
    let origin = signIn.origin.flatMap { apiToken.allows($0, server: baseURL) ? $0 : nil }
    return tokenTransfer(
      token,
      apiToken,
      to: origin,
      container: signIn.container,
      state: signIn.state
    )
  }

  // MARK: Tickets

  /// An action that a user who has returned authenticated can confirm with one click: a foreign
  /// site can send a browser to the other service and back, but it cannot press a button on our
  /// page.
  private struct IdentityTicket: Codable, Hashable, Sendable {
    var account: String
    /// A digest of the account's hash when the user returned: a new password ends what this permits.
    var password: String
    var purpose: IdentityAttempt.Purpose
    var browser: String
    /// Milliseconds since 1970.
    var expires: Int64
  }

  /// The hidden field of a form that identifies the returned user.
  func ticketField(
    for account: StoredAccount,
    _ attempt: IdentityAttempt
  ) throws -> AccountPage.Field {
    let ticket = IdentityTicket(
      account: account.id,
      password: TokenDigest.of(account.passwordHash.hexadecimal),
      purpose: attempt.purpose,
      browser: attempt.browser,
      expires: attempt.expires
    )
    return AccountPage.Field(
      name: "ticket",
      label: "",
      type: "hidden",
      value: try signer.seal(ticket, for: .identityTicket)
    )
  }

  /// The account of a form's ticket for a purpose, which is then used up; nil if it has no valid
  /// one.
  ///
  /// A server without an issuer has issued none.
  func account(
    ofTicket text: String?,
    for purpose: IdentityAttempt.Purpose,
    _ request: WebServiceRequest
  ) async throws -> StoredAccount? {
    guard configuration.identityProvider != nil, let text, let browser = cookie(request),
      let ticket = signer.open(text, as: IdentityTicket.self, for: .identityTicket),
      ticket.purpose == purpose, ticket.expires > now, ticket.browser == TokenDigest.of(browser)
    else { return nil }
    let account = try storage.read { snapshot -> StoredAccount? in
      guard try !snapshot.state(of: ticket.account).0.isDisabled else { return nil }
      return try snapshot.account(id: ticket.account)
    }
    guard let account, TokenDigest.of(account.passwordHash.hexadecimal) == ticket.password else {
      return nil
    }
    do {
      try await useUp(text, until: ticket.expires)
    } catch is AdministrationError {
      return nil
    }
    return account
  }

  // MARK: Pages

  private func identityPage(
    _ failure: IdentityFailure,
    _ provider: any IdentityProvider,
    _ attempt: IdentityAttempt
  ) throws -> WebServiceResponse {
    logger.warning(
      "sign-in with another service failed",
      metadata: ["service": "\(provider.name)", "reason": "\(failure)"]
    )
    return switch failure.kind {
    case .unavailable:
      try identityPage(
        "\(provider.name) cannot be reached right now. Please try again in a moment.",
        status: 503,
        attempt
      )
    case .refused:
      try identityPage("\(provider.name) did not sign you in.", status: 401, attempt)
    }
  }

  private func identityPage(
    _ message: String,
    status: Int,
    _ attempt: IdentityAttempt
  ) throws -> WebServiceResponse {
    var page = AccountPage(title: "Create an account", message: message)
    switch attempt.purpose {
    case .signIn(let signIn, _):
      page.title = "Sign in"
      page.subject = signIn.container
      page.links = [(try signInURL(signIn), "Back to the sign-in")]
    case .register: break
    case .activate(let code):
      page.title = Self.activationTitle
      page.links = [
        (
          "\(Route.Section.activate.path)?user_code=\(DeviceAuthorization.shown(code))",
          "Back to the code"
        )
      ]
    case .deleteAccount: page.title = Self.deletionTitle
    case .ownAccount: page.title = Self.ownPageTitle
    }
    return page.response(status: status, nonce: nonce)
  }
}
