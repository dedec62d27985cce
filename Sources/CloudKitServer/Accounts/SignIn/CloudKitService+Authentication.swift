import CloudKitWebServices
import Crypto
import Foundation

extension CloudKitService {
  /// Verifies the API token, then the user.
  func authenticate(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ path: WebServicePath
  ) async throws -> RequestContext {
    let visit = try sharing.visit(target, path)
    let sent = target.query[WebServiceName.apiToken] ?? ""
    guard let text = sent.isEmpty ? visit?.apiToken : sent else {
      throw ErrorDictionary(.authenticationFailed, "no auth method found")
    }
    let known = try sessions.cache.apiToken(text, now: now) { try apiTokens.token(text) }
    guard let apiToken = known else {
      throw ErrorDictionary(.authenticationFailed, "unknown API token")
    }
    let origin = request.headers["origin"]
    let admission = APITokenAdmission(
      container: .requested(path.container),
      environment: .requested(path.environment),
      origin: .restricted(origin)
    )
    do throws(APITokenRefusal) {
      try admission.check(apiToken)
    } catch {
      throw ErrorDictionary(.authenticationFailed, error.reply)
    }
    guard NameRules.isContainerName(path.container, limits) else {
      throw ErrorDictionary(.badRequest, "invalid container")
    }
    let principal =
      try await target.webAuthToken.asyncMap {
        try await self.sessions.principal(token: $0, container: path.container)
      } ?? nil
    // A user token is for one container; without a user any container name could be invented.
    if principal != nil { try await openContainer(path.container) }
    let caller: Caller
    if let principal {
      caller = .user(principal, apiToken: text)
    } else {
      let signIn = SignInRequest(apiToken: text, container: path.container, origin: origin)
      let url = try signInURL(signIn)
      caller =
        visit.map { .visitor($0, apiToken: text, signInURL: url) }
        ?? .anonymous(apiToken: text, signInURL: url)
    }
    return RequestContext(
      container: path.container,
      environment: path.environment,
      scope: path.database ?? .public,
      caller: caller,
      isExtended: request.headers[WebServiceName.capabilities] == WebServiceName.capabilitiesValue,
      wantsExactDates: request.headers[WebServiceName.capabilities]
        == WebServiceName.exactDatesValue,
      clientID: target.query["clientId"].flatMap(limits.deviceName),
      wantsSyncToken: target.query[WebServiceName.currentSyncToken]?.lowercased() == "true"
    )
  }

  /// Registers a container when a user accesses it for the first time; one that was deleted meanwhile stays so.
  private func openContainer(_ container: String) async throws {
    guard !sessions.cache.knows(container: container) else { return }
    try await write {
      var batch = WriteBatch()
      batch.container = container
      batch.requiredContainer = container
      return (batch, ())
    }
    sessions.cache.note(container: container)
  }
}

extension APITokenRefusal {
  /// The reason that a data request is answered with.
  fileprivate var reply: String {
    switch self {
    case .container, .environment: "unknown API token"
    case .origin(let origin): "the API token is not for pages of \(origin)"
    }
  }
}

extension Optional {
  func asyncMap<Result>(
    _ transform: (Wrapped) async throws -> Result
  ) async rethrows -> Result? {
    guard let self else { return nil }
    return try await transform(self)
  }
}
