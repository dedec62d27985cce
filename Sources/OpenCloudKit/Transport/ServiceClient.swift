import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// The client of one container's service: builds requests, holds the credentials, decodes replies.
package final class ServiceClient: Sendable {
  /// The service's address, the container and the app's credentials.
  package let configuration: ResolvedConfiguration
  package let transport: any CloudKitTransport
  package let effects: Effects
  /// Identifies this device to the service, so that it is not notified of its own changes.
  package let clientIdentifier: String
  private let retries: RetryPolicy
  private let credentials: Credentials
  private let reads: SharedReads
  /// The uploaded files of records that were not saved.
  let keptUploads: KeptUploads
  private let limits: CallLimits
  /// The account that all calls act for; without one, each call acts for the user signed in at its
  /// time.
  private let pin: AccountPin?
  /// Signs the requests of a server that has its own key.
  private let signer: ServerKeySigner?

  package init(
    configuration: ResolvedConfiguration,
    transport: any CloudKitTransport,
    effects: Effects,
    clientIdentifier: String,
    retries: RetryPolicy = .interactive
  ) {
    self.configuration = configuration
    self.transport = transport
    self.effects = effects
    self.clientIdentifier = clientIdentifier
    self.retries = retries
    credentials = Credentials(
      SignInTokens(
        webAuthToken: configuration.webAuthToken,
        refreshToken: configuration.refreshToken
      ),
      file: configuration.tokenFile
    )
    reads = SharedReads()
    keptUploads = KeptUploads()
    limits = .standard
    pin = nil
    // The configuration was validated, so its key can be parsed.
    signer = configuration.serverKey.flatMap { try? ServerKeySigner(keyID: $0.keyID, pem: $0.pem) }
  }

  private init(_ client: ServiceClient, limits: CallLimits, pin: AccountPin?) {
    configuration = client.configuration
    transport = client.transport
    effects = client.effects
    clientIdentifier = client.clientIdentifier
    retries = client.retries
    credentials = client.credentials
    reads = client.reads
    keptUploads = client.keptUploads
    signer = client.signer
    self.limits = limits
    self.pin = pin
  }

  /// A copy of this client with other limits.
  package func limited(to limits: CallLimits) -> ServiceClient {
    limits == self.limits ? self : ServiceClient(self, limits: limits, pin: pin)
  }

  /// This client with all its calls for one account: they fail where another one is signed in.
  package func pinned(to pin: AccountPin?) -> ServiceClient {
    guard let pin else { return self }
    return ServiceClient(self, limits: limits, pin: pin)
  }

  /// The account that is signed in now, or the one that this client is pinned to.
  package var account: AccountPin { pin ?? credentials.pin }

  /// Whether a pin's account is the one that is signed in.
  package func isCurrent(_ pin: AccountPin) -> Bool {
    (try? credentials.tokens(for: pin)) != nil
  }

  /// Whether the app itself signed the user out, and no user has signed in since.
  package var isSignedOut: Bool { credentials.isSignedOut }

  /// Notes the user whom the service confirmed for an account.
  func confirm(_ userRecordName: String, for account: AccountPin) {
    credentials.confirm(userRecordName, for: account.signIn)
  }

  /// Reads the token file again, for tokens that were missing or unreadable before.
  func readTokensAgain() { credentials.readAgain() }

  /// Whether two clients share their credentials.
  package func sharesCredentials(with other: ServiceClient) -> Bool {
    credentials === other.credentials
  }

  /// The token of the signed-in user; the service may renew it with any reply.
  package var webAuthToken: String? { credentials.current.webAuthToken }

  /// The tokens of the signed-in user; setting them signs a user in or out.
  package var tokens: SignInTokens {
    get { credentials.current }
    set { credentials.replace(newValue) }
  }

  // MARK: Calls

  /// Calls an endpoint with a JSON body and decodes the reply.
  ///
  /// A repeatable call is sent again after a transient failure; a call that is not repeatable is
  /// sent once, since its first attempt may have succeeded.
  package func call<Reply: Decodable>(
    _ endpoint: Endpoint,
    scope: CKDatabase.Scope?,
    body: (any Encodable & Sendable)? = nil,
    repeatable: Bool,
    zone: CKRecordZone.ID = .default,
    as reply: Reply.Type = Reply.self
  ) async throws(CKError) -> Reply {
    let bytes: Data
    do {
      bytes = try body.map { try WireCoding.encode($0) } ?? Data()
    } catch {
      throw CKError(.invalidArguments, "The request can't be written: \(error)", underlying: error)
    }
    guard repeatable else {
      return try await callOnce(endpoint, scope: scope, body: bytes, zone: zone)
    }
    // Only of a batch with a sequence number does the caller have to know.
    return try await repeating(marksRepeats: endpoint == .modifyRecords) {
      () async throws(CKError) -> Reply in
      try await self.callOnce(endpoint, scope: scope, body: bytes, zone: zone)
    }
  }

  /// Runs a repeatable body until it succeeds, or until the policy gives up.
  ///
  /// With `marksRepeats`, the error says whether an earlier attempt may have been executed.
  package func repeating<Output>(
    marksRepeats: Bool = false,
    _ body: () async throws(CKError) -> Output
  ) async throws(CKError) -> Output {
    var attempt = 1
    var mayBeExecuted = false
    let start = effects.clock.uptime
    while true {
      do {
        return try await body()
      } catch {
        // A retry can't help if the account is no longer signed in.
        _ = try credentials.tokens(for: pin)
        let jitter = effects.randomness.fraction()
        guard
          case .retry(let seconds) = retries.decision(
            afterAttempt: attempt,
            error: error,
            jitter: jitter
          ), effects.clock.uptime + seconds - start < limits.resource
        else { throw marksRepeats && mayBeExecuted ? error.ofRepeatedRequest() : error }
        attempt += 1
        // A request that was not sent was not executed; a proxy's reply leaves that open.
        mayBeExecuted = mayBeExecuted || error.code != .networkUnavailable
        do {
          try await effects.clock.sleep(seconds: seconds)
        } catch {
          throw CKError(transport: CancellationError())
        }
      }
    }
  }

  private func callOnce<Reply: Decodable>(
    _ endpoint: Endpoint,
    scope: CKDatabase.Scope?,
    body: Data,
    zone: CKRecordZone.ID
  ) async throws(CKError) -> Reply {
    var renewals = 0
    while true {
      let (tokens, signIn) = try credentials.tokens(for: pin)
      do {
        return try await call(endpoint, scope: scope, body: body, zone: zone, tokens, signIn)
      } catch {
        // A request that was refused for its token had no effect, so it can be sent again: first
        // with tokens that another process stored, then with renewed ones.
        guard error.code == .notAuthenticated, renewals < 2, try await renewTokens(tokens) else {
          throw error
        }
        renewals += 1
      }
    }
  }

  private func call<Reply: Decodable>(
    _ endpoint: Endpoint,
    scope: CKDatabase.Scope?,
    body: Data,
    zone: CKRecordZone.ID,
    _ tokens: SignInTokens,
    _ signIn: AccountPin.SignIn
  ) async throws(CKError) -> Reply {
    try checkQuiet()
    let token = tokens.webAuthToken
    let request = try request(endpoint, scope: scope, body: body, token: token)
    let response: WebServiceResponse
    if endpoint.isRead {
      response = try await reads.exchange(request, limits) { () async throws(CKError) in
        try await exchange(request)
      }
    } else {
      defer { invalidateSharedReads() }
      response = try await exchange(request)
    }
    if let renewed = response.headers[WebServiceName.webAuthTokenHeader], !renewed.isEmpty {
      credentials.adopt(renewed, replacing: token)
    }
    guard (200..<300).contains(response.status) else {
      let error = error(of: response, scope: scope, zone: zone)
      noteQuiet(error)
      if error.code == .accountTemporarilyUnavailable { credentials.refute(signIn) }
      throw error
    }
    do {
      return try WireCoding.decode(Reply.self, from: response.body)
    } catch {
      throw CKError(
        inconclusive: "The reply to \(endpoint.rawValue) can't be read: \(error)",
        underlying: error
      )
    }
  }

  /// The number of reads that wait for the reply to an equal one.
  package var waitingReads: Int { reads.waitingCount }

  /// Notes that data at the service changed, as far as this device knows: reads that begin now do
  /// not share replies with earlier ones.
  package func invalidateSharedReads() { reads.invalidate() }

  /// Replaces refused tokens by new ones, fetched with the refresh token; false if there is none,
  /// or if it is expired too.
  private func renewTokens(_ refused: SignInTokens) async throws(CKError) -> Bool {
    credentials.readAgain()
    let old = credentials.current
    // Another request may have been refused earlier, and may have renewed the tokens already.
    guard old.webAuthToken == refused.webAuthToken else { return old.webAuthToken != nil }
    guard let refreshToken = old.refreshToken else { return false }
    do {
      try await credentials.renewals.run(refreshToken) { () async throws(CKError) in
        // Another request may have renewed the tokens meanwhile.
        guard credentials.current == old else { return }
        let next = try await repeating { () async throws(CKError) in
          try await refreshed(refreshToken)
        }
        credentials.adopt(next, replacing: old)
      }
      return true
    } catch {
      guard error.code == .notAuthenticated else { throw error }
      // The refresh token is invalid, so it is not tried again. The file keeps it, since the
      // service may have refused the app's own token. An error without a server code is a proxy's
      // and says nothing about the token.
      if error.serverErrorCode != nil {
        credentials.adopt(
          SignInTokens(webAuthToken: old.webAuthToken),
          replacing: old,
          isKept: false
        )
      }
      return false
    }
  }

  /// Fails requests during a rate limit with the remaining delay, without sending them.
  private func checkQuiet() throws(CKError) {
    let left = credentials.quietUntil.withLock { $0 } - effects.clock.uptime
    guard left > 0 else { return }
    throw CKError(
      .requestRateLimited,
      "The service asked for fewer requests.",
      remedy: "Wait for the time that the error says.",
      userInfo: [CKErrorRetryAfterKey: left]
    )
  }

  private func noteQuiet(_ error: CKError) {
    guard error.code == .requestRateLimited, let seconds = error.retryAfterSeconds, seconds > 0
    else { return }
    let until = effects.clock.uptime + seconds
    credentials.quietUntil.withLock { $0 = max($0, until) }
  }

  /// Sends a request, and converts a failure of the transport into a CloudKit error.
  package func exchange(
    _ request: WebServiceRequest
  ) async throws(CKError) -> WebServiceResponse {
    do {
      // Without limits of the caller, only the transport's own limits apply.
      guard limits != .standard else { return try await transport.send(request) }
      return try await send(request, within: min(limits.request, limits.resource))
    } catch {
      throw CKError(transport: error)
    }
  }

  /// Opens a stream, and converts a failure of the transport into a CloudKit error.
  package func open(_ request: WebServiceRequest) async throws(CKError) -> OpenReply? {
    do {
      return try await transport.open(request)
    } catch {
      throw CKError(transport: error)
    }
  }

  /// Uploads a file, and converts a failure of the transport into a CloudKit error.
  package func upload(
    _ request: WebServiceRequest,
    from file: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws(CKError) -> WebServiceResponse {
    _ = try credentials.tokens(for: pin)
    do {
      return try await transport.upload(request, from: file, size: size, progress: progress)
    } catch {
      throw CKError(transport: error)
    }
  }

  /// Downloads a file, and converts a failure of the transport into a CloudKit error.
  package func download(
    _ request: WebServiceRequest,
    to file: URL,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws(CKError) -> WebServiceResponse {
    do {
      return try await transport.download(request, to: file, progress: progress)
    } catch {
      throw CKError(transport: error)
    }
  }

  private func send(
    _ request: WebServiceRequest,
    within seconds: Double
  ) async throws -> WebServiceResponse {
    let transport = self.transport
    let clock = effects.clock
    return try await withThrowingTaskGroup(of: WebServiceResponse.self) { group in
      group.addTask { try await transport.send(request) }
      group.addTask {
        try await clock.sleep(seconds: seconds)
        throw TransportError(wasSent: true, reason: "no reply came in \(seconds) seconds")
      }
      defer { group.cancelAll() }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }

  /// The delay that a reply asks for, in seconds; nil if it has no valid number.
  package static func retryAfter(_ response: WebServiceResponse) -> Double? {
    response.headers[WebServiceName.retryAfter].flatMap { Double($0) }
      .flatMap(RetryPolicy.bounded)
  }

  /// The error for a reply with an error status.
  package func error(
    of response: WebServiceResponse,
    scope: CKDatabase.Scope?,
    zone: CKRecordZone.ID
  ) -> CKError {
    let retryAfter = Self.retryAfter(response)
    guard let dictionary = try? WireCoding.decode(ErrorDictionary.self, from: response.body)
    else { return CKError(status: response.status, retryAfter: retryAfter) }
    return CKError(
      dictionary,
      mapping: WireMapping(scope: scope ?? .private, effects: effects),
      zone: zone,
      retryAfter: retryAfter,
      isOfRequest: true
    )
  }

  // MARK: Requests

  private func request(
    _ endpoint: Endpoint,
    scope: CKDatabase.Scope?,
    body: Data,
    token: String?
  ) throws(CKError) -> WebServiceRequest {
    let path = WebServicePath(
      container: configuration.containerIdentifier,
      environment: configuration.environment == .production ? .production : .development,
      database: scope?.wire,
      endpoint: endpoint
    )
    var items: [(name: String, value: String)] = []
    if signer == nil {
      items.append((WebServiceName.apiToken, configuration.apiToken))
      if let token { items.append((WebServiceName.webAuthToken, token)) }
    }
    items.append(("clientId", clientIdentifier))
    let text = path.text(items: items)
    var headers = [WebServiceName.capabilities: WebServiceName.capabilitiesValue]
    headers[WebServiceName.expectedUser] = pin?.userRecordName
    if !body.isEmpty { headers[WebServiceName.contentType] = "application/json" }
    if let signer {
      do {
        let signature = try signer.headers(path: text, body: body, date: effects.now)
        headers.merge(signature) { _, new in new }
      } catch {
        throw CKError(.internalError, "The request can't be signed.", underlying: error)
      }
    }
    return WebServiceRequest(
      method: body.isEmpty ? "GET" : "POST",
      path: text,
      headers: headers,
      body: body
    )
  }
}

extension CKDatabase.Scope {
  package var wire: DatabaseScope {
    switch self {
    case .public: .public
    case .private: .private
    case .shared: .shared
    }
  }
}
