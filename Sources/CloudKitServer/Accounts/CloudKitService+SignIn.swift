import CloudKitWebServices
import Foundation

/// The sign-in page that a client opens after AUTHENTICATION_REQUIRED.
extension CloudKitService {
  func respondToSignIn(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    let isPost = request.method == "POST"
    guard isPost || request.method == "GET" else {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    let form =
      isPost
      ? RequestTarget.form(String(decoding: request.body, as: UTF8.self), plusIsSpace: true)
      : [:]
    let container = target.query["container"] ?? ""
    let known = try storage.read {
      try $0.apiToken(target.query[WebServiceName.apiToken] ?? "")
    }
    guard let apiToken = known, !container.isEmpty,
      apiToken.container == nil || apiToken.container == container
    else {
      return page(
        SignInPage(container: container, message: "This sign-in link is not valid."),
        status: 401
      )
    }
    var page = SignInPage(container: container, userName: form["user"] ?? "", hasForm: true)
    guard isPost else { return self.page(page) }
    do {
      let account = try await checkPassword(
        userName: form["user"] ?? "",
        password: form["password"] ?? ""
      )
      let token = try await startSession(
        account: account,
        container: container,
        isKept: form["keep"] != nil
      )
      return handOver(token, apiToken, origin: target.query["origin"], container: container)
    } catch let error as ErrorDictionary {
      page.message =
        error.serverErrorCode == .throttled
        ? "Too many attempts. Please wait a few minutes, then try again."
        : "The user name or the password is not right."
      var response = self.page(page, status: error.serverErrorCode.httpStatus)
      if let seconds = error.retryAfter {
        response.headers[WebServiceName.retryAfter] = String(Int(seconds.rounded(.up)))
      }
      return response
    }
  }

  private func page(_ page: SignInPage, status: Int = 200) -> WebServiceResponse {
    WebServiceResponse(
      status: status,
      headers: [
        WebServiceName.contentType: "text/html; charset=UTF-8",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
      ],
      body: Data(page.html.utf8)
    )
  }

  /// Gives the token to the page that asked, or to the address the API token names.
  private func handOver(
    _ token: String,
    _ apiToken: StoredAPIToken,
    origin: String?,
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
          WebServiceName.contentType: "text/plain; charset=UTF-8",
        ]
      )
    }
    let targets = origin.map { isAllowed($0, by: apiToken) ? [$0] : [] } ?? apiToken.allowedOrigins
    return page(
      SignInPage(
        container: container,
        message: targets.isEmpty
          ? "You are signed in, but the page that asked may not have the result."
          : "You are signed in. This window closes by itself.",
        handOver: SignInPage.HandOver(token: token, origins: targets)
      )
    )
  }

  /// Whether the token may be posted to a page: one of the API token's origins or, where it names
  /// none, a page of this machine or of the server itself.
  private func isAllowed(_ origin: String, by apiToken: StoredAPIToken) -> Bool {
    if !apiToken.allowedOrigins.isEmpty { return apiToken.allowedOrigins.contains(origin) }
    guard let host = URLComponents(string: origin)?.host else { return false }
    return ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host) || origin == baseURL
  }
}
