import CloudKitWebServices
import Effects
import Foundation

/// The sign-in page that a client opens after AUTHENTICATION_REQUIRED.
extension CloudKitService {
  /// The contents of a sign-in link; sealed, so that they cannot be changed.
  struct SignInRequest: Codable, Hashable, Sendable {
    var apiToken: String
    var container: String
    /// The origin of the requesting page, which alone receives the token; nil without a page.
    var origin: String?
    /// A value that an app put into the link, and compares with the one at its redirect URL.
    var state: String?
  }

  /// The parameter of a sign-in link that is returned with the token, like OAuth's (RFC 6749,
  /// 10.12): an app that sends one accepts no token of a sign-in that it did not begin.
  private static let stateName = "state"
  /// Its largest size in bytes.
  private static let stateLimit = 512

  /// A sign-in link that the server admits.
  private struct SignInLink {
    var apiToken: StoredAPIToken
    /// The API token as the link has it.
    var text: String
    var container: String
    /// The origin of the requesting page, if the API token allows it.
    var origin: String?
    /// The value that is returned with the token.
    var state: String?
  }

  /// The link to the sign-in page, bound to the requesting page.
  func signInURL(_ request: SignInRequest) throws -> String {
    var items = [(WebServiceName.apiToken, request.apiToken), ("container", request.container)]
    if let origin = request.origin {
      items += [("origin", origin), ("request", try signer.seal(request, for: .signIn))]
    }
    let query = items.map { "\($0.0)=\(WebServicePath.escape($0.1))" }.joined(separator: "&")
    return "\(baseURL)\(Route.Section.signIn.path)?\(query)"
  }

  func respondToSignIn(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    if target.path == Self.identityReturn {
      return try await respondToIdentityReturn(request, target)
    }
    let isPost = request.method == "POST"
    guard isPost || request.method == "GET" else {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    let container = target.query["container"] ?? ""
    let text = target.query[WebServiceName.apiToken] ?? ""
    let known = try apiTokens.token(text)
    let state = target.query[Self.stateName]
    let admission = APITokenAdmission(
      container: .requested(container),
      environment: .both,
      origin: .ofHandover
    )
    guard let apiToken = known, NameRules.isContainerName(container, limits),
      admission.admits(apiToken), (state?.utf8.count ?? 0) <= Self.stateLimit
    else {
      return AccountPage(title: "Sign in", message: "This sign-in link is not valid.")
        .response(status: 401, nonce: nonce)
    }
    if !isPost, let origin = refusedOrigin(target, apiToken) {
      return refusal(of: origin, container: container)
    }
    guard isPost else { return signInPage(container: container).response(nonce: nonce) }
    let link = SignInLink(
      apiToken: apiToken,
      text: text,
      container: container,
      origin: boundOrigin(target, apiToken),
      state: state
    )
    return try await submitSignIn(request, link)
  }

  /// The form for a user's name and password.
  private func signInPage(container: String, user: String = "") -> AccountPage {
    var page = AccountPage(
      title: "Sign in",
      subject: container,
      fields: AccountPage.Field.credentials(user: user),
      button: "Sign in",
      otherButton: identityOffer("Sign in"),
      offersToStaySignedIn: true
    )
    if configuration.registration == .open {
      page.links.append((Route.Section.signUp.path, "Create an account"))
    }
    if mails.isOn { page.links.append((Route.Section.forgotPassword.path, "Forgotten password")) }
    return page
  }

  /// Signs a user in with the form's password, or begins a sign-in at the other service.
  private func submitSignIn(
    _ request: WebServiceRequest,
    _ link: SignInLink
  ) async throws -> WebServiceResponse {
    let form = request.form
    if form["with"] == Self.identityButton {
      return try await beginIdentity(
        request,
        to: .signIn(
          SignInRequest(
            apiToken: link.text,
            container: link.container,
            origin: link.origin,
            state: link.state
          ),
          isKept: form["keep"] != nil
        )
      )
    }
    do {
      let account = try await passwords.check(
        userName: form["user"] ?? "",
        password: form["password"] ?? "",
        code: form["code"],
        from: SenderAddress(request.clientAddress)
      )
      let token = try await sessions.start(
        account: account,
        container: link.container,
        isKept: form["keep"] != nil
      )
      auditLog.record(
        "sign-in.page",
        by: account.userName,
        about: account.userName,
        detail: link.container,
        from: SenderAddress(request.clientAddress)
      )
      return tokenTransfer(
        token,
        link.apiToken,
        to: link.origin,
        container: link.container,
        state: link.state
      )
    } catch let error as ErrorDictionary {
      var page = signInPage(container: link.container, user: form["user"] ?? "")
      page.message = wrongPasswordMessage(error)
      return page.response(status: error.serverErrorCode.httpStatus, nonce: nonce)
        .retrying(after: error)
    }
  }

  var nonce: String { effects.randomness.bytes(16).hexadecimal }

  /// The origin for which the link was made, if the API token still allows it.
  private func boundOrigin(_ target: RequestTarget, _ apiToken: StoredAPIToken) -> String? {
    askingOrigin(target, apiToken).flatMap { apiToken.allows($0, server: baseURL) ? $0 : nil }
  }

  /// The origin of the requesting page, if the API token does not allow it: a sign-in there would
  /// fail.
  private func refusedOrigin(_ target: RequestTarget, _ apiToken: StoredAPIToken) -> String? {
    guard apiToken.redirectURL == nil else { return nil }
    return askingOrigin(target, apiToken).flatMap {
      apiToken.allows($0, server: baseURL) ? nil : $0
    }
  }

  /// The origin for which the link was made.
  private func askingOrigin(_ target: RequestTarget, _ apiToken: StoredAPIToken) -> String? {
    guard let text = target.query["request"],
      let bound = signer.open(text, as: SignInRequest.self, for: .signIn),
      TokenDigest.of(bound.apiToken) == apiToken.digest,
      bound.container == target.query["container"]
    else { return nil }
    return bound.origin
  }

  /// Before a password is typed, shows that the requesting page may not have a token, and posts the
  /// error to that page.
  ///
  /// The origin comes from a request: it is text of an element, which the script reads, and no part of the script's
  /// own element.
  private func refusal(of origin: String, container: String) -> WebServiceResponse {
    let nonce = nonce
    let shown = HTMLPage.escape(origin)
    var page = CardPage.page(
      heading: "Sign in",
      """
      <p class="quiet">to use <strong>\(HTMLPage.escape(container))</strong></p>
      <p class="message" role="alert">Pages of <span id="origin">\(shown)</span> may not sign users in \
      with this app's API token. The app's developer creates a token that names this origin.</p>
      <script nonce="\(nonce)">
      const origin = document.getElementById("origin").textContent;
      if (window.opener) {
        window.opener.postMessage(
          {errorMessage: "The API token is not for pages of " + origin + "."}, origin);
      }
      </script>
      """
    )
    page.nonce = nonce
    return page.response(status: 403)
  }

  /// Sends the token to the requesting page, or to the redirect URL of the API token.
  func tokenTransfer(
    _ token: String,
    _ apiToken: StoredAPIToken,
    to origin: String?,
    container: String,
    state: String?
  ) -> WebServiceResponse {
    if let address = apiToken.redirectURL {
      let separator = address.contains("?") ? "&" : "?"
      let value = WebServicePath.escape(token)
      let echo = state.map { "&\(Self.stateName)=\(WebServicePath.escape($0))" } ?? ""
      return WebServiceResponse(
        status: 303,
        headers: [
          "location": "\(address)\(separator)ckWebAuthToken=\(value)&ckSession=\(value)\(echo)",
          "cache-control": "no-store",
          "referrer-policy": "no-referrer",
          WebServiceName.contentType: "text/plain; charset=UTF-8",
        ]
      )
    }
    guard let origin else {
      return AccountPage(
        title: "You are signed in",
        subject: container,
        message: "No page requested the result, so none received it. You can close this window."
      ).response(nonce: nonce)
    }
    return AccountPage(
      title: "You are signed in",
      subject: container,
      message: "Let \(origin) use your data in this container?",
      tokenTransfer: AccountPage.TokenTransfer(token: token, origin: origin)
    ).response(nonce: nonce)
  }
}

extension WebServiceResponse {
  /// Adds the time after which to retry, if the error has one.
  func retrying(after error: ErrorDictionary) -> WebServiceResponse {
    guard let seconds = error.retryAfter else { return self }
    var response = self
    response.headers[WebServiceName.retryAfter] = String(Int(seconds.rounded(.up)))
    return response
  }
}

extension WebServiceRequest {
  /// The body as an HTML form, decoded.
  var form: [String: String] {
    RequestTarget.form(String(decoding: body, as: UTF8.self), plusIsSpace: true)
  }
}
