import CloudKitWebServices
import Foundation

/// The sign-in page that a client opens after AUTHENTICATION_REQUIRED.
extension CloudKitService {
  /// What a sign-in link was made for; signed, so that nobody can put in another page.
  struct SignInRequest: Codable, Hashable, Sendable {
    var apiToken: String
    var container: String
    /// The page that asked, and the only one that gets the answer; nil where none did.
    var origin: String?
  }

  /// The link to the sign-in page, bound to the page that asked.
  func signInURL(_ request: SignInRequest) throws -> String {
    var items = [(WebServiceName.apiToken, request.apiToken), ("container", request.container)]
    if let origin = request.origin {
      items += [("origin", origin), ("request", try signer.seal(request, for: .signIn))]
    }
    let query = items.map { "\($0.0)=\(WebServicePath.escape($0.1))" }.joined(separator: "&")
    return "\(baseURL)/sign-in?\(query)"
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
    let known = try storage.read {
      try $0.apiToken(target.query[WebServiceName.apiToken] ?? "")
    }
    guard let apiToken = known, !container.isEmpty,
      apiToken.container == nil || apiToken.container == container
    else {
      return AccountPage(title: "Sign in", message: "This sign-in link is not valid.")
        .response(status: 401, nonce: nonce)
    }
    let form = isPost ? request.form : [:]
    var page = AccountPage(
      title: "Sign in",
      subject: container,
      fields: AccountPage.Field.credentials(user: form["user"] ?? ""),
      button: "Sign in",
      otherButton: identityOffer("Sign in"),
      offersToKeep: true
    )
    if configuration.registration == .open {
      page.link = ("/sign-up", "Make an account")
    }
    guard isPost else { return page.response(nonce: nonce) }
    if form["with"] == Self.identityButton {
      return try await beginIdentity(
        request,
        to: .signIn(
          SignInRequest(
            apiToken: apiToken.token,
            container: container,
            origin: boundOrigin(target, apiToken)
          ),
          isKept: form["keep"] != nil
        )
      )
    }
    do {
      let account = try await checkPassword(
        userName: form["user"] ?? "",
        password: form["password"] ?? "",
        from: SenderAddress(request.clientAddress)
      )
      let token = try await startSession(
        account: account,
        container: container,
        isKept: form["keep"] != nil
      )
      return handOver(token, apiToken, to: boundOrigin(target, apiToken), container: container)
    } catch let error as ErrorDictionary {
      page.message = wrongPasswordMessage(error)
      return page.response(status: error.serverErrorCode.httpStatus, nonce: nonce)
        .retrying(after: error)
    }
  }

  var nonce: String { effects.randomness.bytes(16).hexadecimal }

  /// The origin that the link was made for, if it is still one that the API token allows.
  private func boundOrigin(_ target: RequestTarget, _ apiToken: StoredAPIToken) -> String? {
    guard let text = target.query["request"],
      let bound = signer.open(text, as: SignInRequest.self, for: .signIn),
      bound.apiToken == apiToken.token, bound.container == target.query["container"],
      let origin = bound.origin, allows(origin, apiToken)
    else { return nil }
    return origin
  }

  /// Gives the token to the page that asked, or to the address the API token names.
  func handOver(
    _ token: String,
    _ apiToken: StoredAPIToken,
    to origin: String?,
    container: String
  ) -> WebServiceResponse {
    if let address = apiToken.redirectURL {
      let separator = address.contains("?") ? "&" : "?"
      let value = WebServicePath.escape(token)
      return WebServiceResponse(
        status: 303,
        headers: [
          "location": "\(address)\(separator)ckWebAuthToken=\(value)&ckSession=\(value)",
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
        message: "No page asked for the result, so none has it. You may close this window."
      ).response(nonce: nonce)
    }
    return AccountPage(
      title: "You are signed in",
      subject: container,
      message: "Let \(origin) use your data in this container?",
      handOver: AccountPage.HandOver(token: token, origin: origin)
    ).response(nonce: nonce)
  }

  /// Whether pages of an origin may use an API token: the origins it names or, where it names none, a
  /// page of this machine or of the server itself.
  func allows(_ origin: String, _ apiToken: StoredAPIToken) -> Bool {
    if !apiToken.allowedOrigins.isEmpty { return apiToken.allowedOrigins.contains(origin) }
    guard let host = URLComponents(string: origin)?.host else { return false }
    return ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host) || origin == baseURL
  }
}

extension WebServiceResponse {
  /// With the time after which to come back, where an error names one.
  func retrying(after error: ErrorDictionary) -> WebServiceResponse {
    guard let seconds = error.retryAfter else { return self }
    var response = self
    response.headers[WebServiceName.retryAfter] = String(Int(seconds.rounded(.up)))
    return response
  }
}

extension WebServiceRequest {
  /// The body as an HTML form writes it.
  var form: [String: String] {
    RequestTarget.form(String(decoding: body, as: UTF8.self), plusIsSpace: true)
  }
}
