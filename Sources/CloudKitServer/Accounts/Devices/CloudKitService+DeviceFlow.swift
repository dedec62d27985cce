import CloudKitWebServices
import Effects
import Foundation

/// Sign-in of programs in a terminal: the device authorization grant of RFC 8628.
///
/// The client's ID is an API token and the scope a container. A program requests a code, shows it,
/// and polls while its user types the code on the page `/activate`.
extension CloudKitService {
  static let deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
  private static let refreshGrant = "refresh_token"

  /// `POST /account/device`: a code for the program and one for the user.
  func beginDeviceAuthorization(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    let form = request.form
    let container = form["scope"] ?? ""
    let apiToken = try apiTokens.token(form["client_id"] ?? "")
    let admission = APITokenAdmission(
      container: .requested(container),
      environment: .both,
      origin: .ofProgram
    )
    guard let apiToken, admission.admits(apiToken) else {
      return try refusal("invalid_client", "the client_id is no API token of the server")
    }
    guard NameRules.isContainerName(container, limits) else {
      return try refusal("invalid_scope", "the scope is the identifier of a container")
    }
    if let seconds = attemptPause(request) {
      return try refusal("slow_down", "too many codes from this address", retryAfter: seconds)
    }
    let secret = effects.randomness.bytes(32).base64URL
    let userCode = DeviceAuthorization.userCode { effects.randomness.next() }
    let authorization = DeviceAuthorization(
      secret: TokenDigest.of(secret),
      apiToken: apiToken.digest,
      container: container,
      device: PersonName.device(form["device_name"], limit: limits.nameLength),
      interval: DeviceAuthorization.firstInterval
    )
    let entry = DirectoryEntry(
      DeviceAuthorization.key(userCode),
      expires: now + Int64(DeviceAuthorization.lifetime * 1000),
      body: try WireCoding.encode(authorization)
    )
    try await write {
      var batch = WriteBatch()
      // A code that another program waits with is not replaced; a collision happens once in ten
      // billion.
      batch.expectedEntries[entry.key] = .some(nil)
      batch.savedEntries = [entry]
      return (batch, ())
    }
    let shown = DeviceAuthorization.shown(userCode)
    let page = baseURL + Route.Section.activate.path
    return try oauthReply(
      DeviceCodeReply(
        device_code: "\(userCode).\(secret)",
        user_code: shown,
        verification_uri: page,
        verification_uri_complete: "\(page)?user_code=\(shown)",
        expires_in: Int(DeviceAuthorization.lifetime),
        interval: Int(DeviceAuthorization.firstInterval)
      )
    )
  }

  /// `POST /account/token`: the tokens, once the user has allowed the program; or the next ones.
  func respondToTokenRequest(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    let form = request.form
    switch form["grant_type"] {
    case Self.refreshGrant:
      do {
        return try reply(
          try await sessions.refresh(
            form["refresh_token"] ?? "",
            from: SenderAddress(request.clientAddress)
          )
        )
      } catch let error as ErrorDictionary where error.serverErrorCode == .authenticationFailed {
        return try refusal("invalid_grant", error.reason ?? "")
      }
    case Self.deviceGrant:
      return try await respondToDeviceToken(form, from: SenderAddress(request.clientAddress))
    default:
      return try refusal("unsupported_grant_type", "give a device code or a refresh token")
    }
  }

  private func respondToDeviceToken(
    _ form: [String: String],
    from sender: SenderAddress?
  ) async throws -> WebServiceResponse {
    let halves = (form["device_code"] ?? "").split(ascii: ".", maxSplits: 1).map(String.init)
    guard halves.count == 2 else { return try refusal("invalid_grant", "unknown device code") }
    let key = DeviceAuthorization.key(halves[0])
    let digest = TokenDigest.of(halves[1])
    let client = TokenDigest.of(form["client_id"] ?? "")
    let now = now
    typealias Outcome = (authorization: DeviceAuthorization, verdict: DeviceAuthorization.Verdict)
    let outcome: Outcome? = try await write { [storage] () -> (WriteBatch?, Outcome?) in
      guard let entry = try storage.read({ try $0.entry(key) }), (entry.expires ?? 0) > now else {
        return (nil, nil)
      }
      var authorization = try WireCoding.decode(DeviceAuthorization.self, from: entry.body)
      guard authorization.secret == digest, authorization.apiToken == client else {
        return (nil, nil)
      }
      let verdict = authorization.ask(now: now)
      var batch = WriteBatch()
      batch.expectedEntries[key] = .some(entry.revision)
      switch verdict {
      case .pending, .slowDown:
        var next = entry
        next.revision += 1
        next.body = try WireCoding.encode(authorization)
        batch.savedEntries = [next]
      case .allowed, .denied:
        // A code gets one successful reply.
        batch.removedEntries = [key]
      }
      return (batch, (authorization, verdict))
    }
    switch outcome?.verdict {
    case nil: return try refusal("expired_token", "the code has expired; request another one")
    case .pending:
      return try refusal("authorization_pending", "the user has not entered the code yet")
    case .slowDown: return try refusal("slow_down", "poll less often")
    case .denied: return try refusal("access_denied", "the user denied access")
    case .allowed(let id):
      guard let authorization = outcome?.authorization,
        let account = try storage.read({ try $0.account(id: id) }),
        try !storage.read({ try $0.state(of: account.id).0.isDisabled })
      else { return try refusal("access_denied", "the account no longer exists") }
      let credentials = try await sessions.startGrant(
        account: account,
        container: authorization.container,
        device: authorization.device
      )
      auditLog.record(
        "sign-in.device",
        by: account.userName,
        about: account.userName,
        detail: authorization.container,
        from: sender,
        device: authorization.device
      )
      return try reply(credentials)
    }
  }

  private func reply(_ credentials: DeviceCredentials) throws -> WebServiceResponse {
    try oauthReply(
      TokenReply(
        access_token: credentials.webAuthToken,
        token_type: "ckWebAuthToken",
        expires_in: max(0, Int((credentials.expires - now) / 1000)),
        refresh_token: credentials.refreshToken,
        user_record_name: credentials.userRecordName
      )
    )
  }

  // MARK: OAuth's formats

  private struct DeviceCodeReply: Encodable {
    var device_code: String
    var user_code: String
    var verification_uri: String
    var verification_uri_complete: String
    var expires_in: Int
    var interval: Int
  }

  private struct TokenReply: Encodable {
    var access_token: String
    /// It is sent in the query, so it is no bearer token.
    var token_type: String
    var expires_in: Int
    var refresh_token: String
    var user_record_name: String
  }

  private func oauthReply(
    _ value: some Encodable,
    status: Int = 200
  ) throws -> WebServiceResponse {
    WebServiceResponse(
      status: status,
      headers: ["cache-control": "no-store"],
      body: try WireCoding.encode(value)
    )
  }

  private func refusal(
    _ error: String,
    _ description: String,
    retryAfter: Double? = nil
  ) throws -> WebServiceResponse {
    let status =
      switch error {
      case "invalid_client": 401
      case "slow_down" where retryAfter != nil: 429
      default: 400
      }
    var response = try oauthReply(
      ["error": error, "error_description": description],
      status: status
    )
    if let retryAfter {
      response.headers[WebServiceName.retryAfter] = String(Int(retryAfter.rounded(.up)))
    }
    return response
  }

  /// Seconds that an address without a user has to wait, or nil.
  private func attemptPause(_ request: WebServiceRequest) -> Double? {
    do {
      try rates.checkAnonymous(request)
      return nil
    } catch {
      return (error as? ErrorDictionary)?.retryAfter ?? 60
    }
  }
}
