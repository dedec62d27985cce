import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// Speaks to the service for one container: builds requests, keeps the credentials, reads replies.
package final class ServiceClient: Sendable {
  /// Where requests go and with which rights.
  package let configuration: ResolvedConfiguration
  package let transport: any CloudKitTransport
  package let effects: Effects
  /// Names this device to the service, so that it is not told of its own changes.
  package let clientIdentifier: String
  private let retries: RetryPolicy
  private let credentials: Credentials
  private let reads: SharedReads
  private let limits: CallLimits
  /// The account that all calls act for; without one each call acts for whoever is signed in then.
  private let pin: AccountPin?
  /// Signs requests, where a server acts as itself.
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
    limits = .standard
    pin = nil
    // The configuration was checked: its key can be read.
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
    signer = client.signer
    self.limits = limits
    self.pin = pin
  }

  /// This client under other limits.
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

  /// Whether the app itself signed the user out, and nobody has signed in since.
  package var isSignedOut: Bool { credentials.isSignedOut }

  /// Notes the user whom the service confirmed for an account.
  func confirm(_ userRecordName: String, for account: AccountPin) {
    credentials.confirm(userRecordName, for: account.signIn)
  }

  /// Looks into the token file for tokens that were not there, or not readable, before.
  func readTokensAgain() { credentials.readAgain() }

  /// Whether two clients are signed in together.
  package func sharesCredentials(with other: ServiceClient) -> Bool {
    credentials === other.credentials
  }

  /// The token of the person who is signed in; the service may renew it with any reply.
  package var webAuthToken: String? { credentials.current.webAuthToken }

  /// The tokens of the person who is signed in; setting them signs a person in or out.
  package var tokens: SignInTokens {
    get { credentials.current }
    set { credentials.replace(newValue) }
  }

  // MARK: Calls

  /// Calls a verb with a JSON body and reads the reply.
  ///
  /// A repeatable call is sent again after a transient failure; one that changes something is not,
  /// since its first try may have succeeded.
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
    return try await repeating { () async throws(CKError) -> Reply in
      try await self.callOnce(endpoint, scope: scope, body: bytes, zone: zone)
    }
  }

  /// Does something that may be done twice, again and again while the policy says so.
  package func repeating<Output>(
    _ body: () async throws(CKError) -> Output
  ) async throws(CKError) -> Output {
    var attempt = 1
    let start = effects.clock.uptime
    while true {
      do {
        return try await body()
      } catch {
        // No repetition helps a request whose account is no longer signed in.
        _ = try credentials.tokens(for: pin)
        let jitter = effects.randomness.fraction()
        guard
          case .retry(let seconds) = retries.decision(
            afterAttempt: attempt,
            error: error,
            jitter: jitter
          ), effects.clock.uptime + seconds - start < limits.resource
        else { throw error }
        attempt += 1
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
        // What was refused for its token was not done, so that anything may be sent again: with the
        // tokens that another process fetched, and if those are over too with new ones.
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
      defer { noteNews() }
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
        .internalError,
        "The reply to \(endpoint.rawValue) can't be read: \(error)",
        underlying: error
      )
    }
  }

  /// How many reads wait for the answer to an equal one.
  package var waitingReads: Int { reads.waitingCount }

  /// Something has changed at the service, as far as this device knows: a read that begins now waits
  /// for no answer to one that began before.
  package func noteNews() { reads.noteNews() }

  /// Fetches new tokens with the refresh token in place of the ones that were refused; false where
  /// there is none, or it is over too.
  private func renewTokens(_ refused: SignInTokens) async throws(CKError) -> Bool {
    credentials.readAgain()
    let old = credentials.current
    // Another request may have been refused, and have fetched new ones, before this one was.
    guard old.webAuthToken == refused.webAuthToken else { return old.webAuthToken != nil }
    guard let refreshToken = old.refreshToken else { return false }
    do {
      try await credentials.renewals.run(refreshToken) { () async throws(CKError) in
        // Another request may have been faster.
        guard credentials.current == old else { return }
        let next = try await repeating { () async throws(CKError) in
          try await refreshed(refreshToken)
        }
        credentials.adopt(next, replacing: old)
      }
      return true
    } catch {
      guard error.code == .notAuthenticated else { throw error }
      // It is over, and no repetition changes that; the file keeps it, since the service may have
      // refused the app's own token. What a proxy answers in the service's place says nothing.
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

  /// Keeps requests back that a service which was asked too much would refuse: all of them get the
  /// answer that one got, with the time that is left.
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

  /// Sends a request as it is, and turns a failure of the transport into an error of CloudKit.
  package func exchange(
    _ request: WebServiceRequest
  ) async throws(CKError) -> WebServiceResponse {
    do {
      // Without a limit of the caller's own the transport's holds.
      guard limits != .standard else { return try await transport.send(request) }
      return try await send(request, within: min(limits.request, limits.resource))
    } catch {
      throw CKError(transport: error)
    }
  }

  /// Opens a stream, and turns a failure of the transport into an error of CloudKit.
  package func open(_ request: WebServiceRequest) async throws(CKError) -> OpenReply? {
    do {
      return try await transport.open(request)
    } catch {
      throw CKError(transport: error)
    }
  }

  /// Sends a file, and turns a failure of the transport into an error of CloudKit.
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

  /// Fetches a file, and turns a failure of the transport into an error of CloudKit.
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

  /// The seconds that a reply asks to wait; nil where it does not name a number.
  package static func retryAfter(_ response: WebServiceResponse) -> Double? {
    response.headers[WebServiceName.retryAfter].flatMap { Double($0) }
      .flatMap(RetryPolicy.bounded)
  }

  /// The error that a reply with a failing status means.
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
      retryAfter: retryAfter
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
