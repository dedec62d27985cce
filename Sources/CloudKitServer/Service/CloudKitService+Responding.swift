import CloudKitWebServices
import Effects
import Foundation
import Logging

extension CloudKitService {
  /// Answers one request; every failure becomes an error dictionary.
  package func respond(to request: WebServiceRequest) async -> WebServiceResponse {
    let uuid = effects.uuid().uuidString.lowercased()
    let target = RequestTarget(request.path)
    let route = Route(target)
    let subject = RequestSubject()
    let start = effects.clock.uptime
    var refusal: ServerErrorCode?
    var response: WebServiceResponse
    do {
      response = try await RequestSubject.$current.withValue(subject) {
        try await answer(request, target, route)
      }
    } catch {
      let dictionary = failures.dictionary(of: error, uuid: uuid)
      refusal = dictionary.serverErrorCode
      response = failures.reply(dictionary, uuid: uuid)
      logRefusal(response, of: request, route, subject, uuid: uuid)
      if ErrorPage.isAskedFor(request, route) { response = ErrorPage.page(of: response, route) }
    }
    addCommonHeaders(to: &response, for: request, route, uuid: uuid)
    note(
      response,
      to: request,
      route,
      subject,
      refusal: refusal,
      seconds: effects.clock.uptime - start
    )
    return response
  }

  private func answer(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ route: Route
  ) async throws -> WebServiceResponse {
    if request.method == "OPTIONS" {
      return preflight(request)
    }
    let rules = route.rules
    guard !isClosed || rules.isAnsweredWhileStopping else {
      throw ErrorDictionary(.tryAgainLater, "the server is stopping", retryAfter: 1)
    }
    if rules.isPage, request.method != "GET", request.method != "POST" {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    if rules.isPage, !isPageHost(request) { return foreignHostPage(request) }
    if rules.isPage, isForeignForm(request) { return foreignFormPage() }
    try checkBody(of: request)
    if rules.isRatedByAddress { try rates.checkRate(ofSender: request) }
    switch route {
    case .api(let path, let endpoint):
      return try await respondToAPI(request, target, path, endpoint)
    case .section(let section): return try await answer(request, target, section)
    case .backupStream: return try await wholeTransfer(request)
    case .unknownEndpoint, .unknown: throw ErrorDictionary.noHandler
    }
  }

  private func answer(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ section: Route.Section
  ) async throws -> WebServiceResponse {
    switch section {
    case .signIn: return try await respondToSignIn(request, target)
    case .signUp: return try await respondToSignUp(request, target)
    case .resetPassword: return try await respondToPasswordReset(request, target)
    case .activate: return try await respondToActivation(request, target)
    case .forgotPassword: return try respondToForgottenPassword(request)
    case .verifyAddress: return try await respondToVerification(request, target)
    case .deleteAccount: return try await respondToDeletion(request)
    case .myAccount: return try await respondToOwnPage(request)
    case .account: return try await respondToAccount(request, target)
    case .admin: return try await respondToAdministrator(request, target)
    case .webcourier:
      try rates.checkRate(ofCapability: request)
      return try await rates.countingFailures(of: request) {
        try await devices.poll(request, target)
      }
    case .share: return try await respondToSharePage(request, target)
    case .accountData, .assets: return try await wholeTransfer(request)
    // A stream is opened at its connection; a request that arrives here could not be opened.
    case .events:
      guard request.method == "GET" || target.parts.count != 2 else {
        throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
      }
      return try await rates.countingFailures(of: request) { throw devices.refusalOfEvents(target) }
    // The HTTP adapter handles these: they need a process.
    case .landing, .health, .healthz, .metrics, .ready, .readyz: throw ErrorDictionary.noHandler
    }
  }

  /// A transfer for a caller without streams: both bodies are in memory.
  private func wholeTransfer(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    let body = request.body
    return try await respondToTransfer(request) { sink in
      if !body.isEmpty { try await sink(body) }
    }.collected()
  }

  /// The reply to a CORS preflight request.
  func preflight(_ request: WebServiceRequest) -> WebServiceResponse {
    WebServiceResponse(
      status: 204,
      headers: [
        "allow": "GET, POST, PUT, DELETE",
        "access-control-allow-methods": "GET, POST, PUT, DELETE, OPTIONS",
        "access-control-allow-headers": request.headers["access-control-request-headers"] ?? "*",
        "access-control-max-age": "600",
      ]
    )
  }

  /// Notes who was refused what, and from where.
  ///
  /// The reason is not logged: it may repeat names of records and users.
  func logRefusal(
    _ response: WebServiceResponse,
    of request: WebServiceRequest,
    _ route: Route,
    _ subject: RequestSubject? = nil,
    uuid: String
  ) {
    guard logger.logLevel <= .info else { return }
    var metadata: Logger.Metadata = [
      "requestID": "\(uuid)", "status": "\(response.status)", "endpoint": "\(route.rules.label)",
    ]
    if let user = subject?.user { metadata["user"] = "\(user)" }
    if let sender = SenderAddress(request.clientAddress) { metadata["client"] = "\(sender.shown)" }
    logger.info("the request was refused", metadata: metadata)
  }

  func addCommonHeaders(
    to response: inout WebServiceResponse,
    for request: WebServiceRequest,
    _ route: Route,
    uuid: String
  ) {
    if response.headers[WebServiceName.contentType] == nil, response.status != 204 {
      response.headers[WebServiceName.contentType] = "application/json; charset=UTF-8"
    }
    // Data, which no browser shows as a page of this server.
    if response.headers["content-disposition"] == nil,
      response.headers[WebServiceName.contentType]?.hasPrefix("application/json") == true
    {
      response.headers["content-disposition"] = "attachment; filename=\"api.json\""
    }
    // Browsers must not guess the content type.
    response.headers["x-content-type-options"] = "nosniff"
    response.headers[WebServiceName.requestUUID] = uuid
    response.headers["x-apple-cloudkit-version"] = "1.0"
    // Records and names of users must not be cached; a cacheable reply has its own header.
    if response.headers["cache-control"] == nil { response.headers["cache-control"] = "no-store" }
    if baseURL.hasPrefix("https:") {
      response.headers["strict-transport-security"] = HTMLPage.transportSecurity
    }
    if let origin = request.headers["origin"], mayRead(origin, request, route) {
      response.headers["access-control-allow-origin"] = origin
      response.headers["access-control-expose-headers"] =
        "X-Apple-Request-UUID, X-Apple-CloudKit-Web-Auth-Token, X-Responding-Instance, Via, "
        + "Retry-After, Content-Range"
    }
    if request.headers["origin"] != nil { response.headers["vary"] = "Origin" }
  }

  /// Whether scripts of a page with another origin may read a reply.
  private func mayRead(_ origin: String, _ request: WebServiceRequest, _ route: Route) -> Bool {
    switch route.rules.origins {
    case .any: return true
    case .none: return false
    case .ofToken:
      guard let text = RequestTarget(request.path).query[WebServiceName.apiToken],
        let token = try? apiTokens.token(text)
      else { return true }
      return APITokenAdmission.Origin.restricted(origin).refused(by: token) == nil
    }
  }
}
