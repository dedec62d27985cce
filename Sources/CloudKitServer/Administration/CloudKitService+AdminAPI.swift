import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// The admin API: for the command line and the dashboard.
///
/// It requires a bearer token in a header, which no browser sends by itself, and answers only under
/// the server's own names, so that no foreign page can use it.
extension CloudKitService {
  func respondToAdministrator(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    guard isOwnHost(request) else {
      throw ErrorDictionary(.accessDenied, "the admin API is not served under this host name")
    }
    guard target.parts.count == 4, target.parts[1] == "1", request.method == "POST" else {
      throw ErrorDictionary.noHandler
    }
    let endpoint = AdminEndpoint(noun: target.parts[2], verb: target.parts[3])
    var call = AdminCall(body: request.body, bounds: bodyBounds[nil], by: "")
    call.sender = SenderAddress(request.clientAddress)
    if endpoint == .session(.start) {
      try rates.checkRate(ofSender: request)
    } else {
      (call.by, call.isOperator) = try await rates.countingFailures(of: request) {
        try await administrator(request)
      }
    }
    // Only administrators receive an error that names the unknown call.
    guard let endpoint else {
      throw ErrorDictionary(
        .notFound,
        "the admin API has no \(target.parts[2])/\(target.parts[3])"
      )
    }
    let reply: AdminReply
    do {
      reply = try await administer(endpoint, call, request)
    } catch let error as AdministrationError {
      throw ErrorDictionary(.badRequest, error.description)
    }
    return WebServiceResponse(status: 200, headers: ["cache-control": "no-store"], body: reply.body)
  }

  /// Each noun's calls are in a file of their own.
  private func administer(
    _ endpoint: AdminEndpoint,
    _ call: AdminCall,
    _ request: WebServiceRequest
  ) async throws -> AdminReply {
    switch endpoint {
    case .assets(.check): return try call.reply(try await assets.check(), .unaudited(.reads))
    case .audit(.list): return try await listAudit(call)
    case .backup(.confirm): return try confirmBackup(call)
    case .backup(.create): return try await createBackup(call)
    // A route of its own, since its reply is streamed.
    case .backup(.stream): throw ErrorDictionary.noHandler
    case .containers(let verb): return try await administerContainers(verb, call)
    case .database(.request): return try await answerOperator(call)
    case .invitations(.create): return try await createInvitation(call)
    case .keys(let verb): return try await administerKeys(verb, call)
    case .requests(.list): return try listRequests(call)
    case .schema(let verb): return try await administerSchema(verb, call)
    case .server(let verb): return try await administerServer(verb, call)
    case .session(.start): return try await startAdminSession(call, request)
    case .tokens(let verb): return try await administerTokens(verb, call)
    case .usage(.list): return try await listUsage(call)
    case .users(let verb): return try await administerUsers(verb, call)
    }
  }

  // MARK: Authentication

  /// The administrator that the bearer token stands for; use renews a session.
  func administrator(
    _ request: WebServiceRequest
  ) async throws -> (name: String, isOperator: Bool) {
    let header = request.headers["authorization"] ?? ""
    guard header.lowercased().hasPrefix("bearer ") else {
      throw ErrorDictionary(.authenticationFailed, "the admin API takes a bearer token")
    }
    let token = String(header.dropFirst("bearer ".count)).trimmingCharacters(in: .whitespaces)
    if let own = administratorToken.withLock({ $0 }), !own.isEmpty,
      PasswordHash.isEqual(Data(TokenDigest.of(token).utf8), Data(TokenDigest.of(own).utf8))
    {
      return ("operator", true)
    }
    let session = try storage.read { try $0.session(digest: TokenDigest.of(token)) }
    guard let session, session.audience == .page(.administration),
      session.expires > now,
      let account = try storage.read({ try $0.account(id: session.account) })
    else {
      auditLog.logRefusal(of: SenderAddress(request.clientAddress))
      throw ErrorDictionary(.authenticationFailed, "unknown bearer token")
    }
    let state = try storage.read { try $0.state(of: account.id).0 }
    guard state.isAdministrator, !state.isDisabled else {
      throw ErrorDictionary(.accessDenied, "\(account.userName) is not an administrator")
    }
    guard try await sessions.renewed(session) != nil else {
      throw ErrorDictionary(.authenticationFailed, "unknown bearer token")
    }
    return (account.userName, false)
  }

  private func startAdminSession(
    _ call: AdminCall,
    _ request: WebServiceRequest
  ) async throws -> AdminReply {
    let signIn: AdminSignIn = try call.read()
    let account = try await passwords.check(
      userName: signIn.userName,
      password: signIn.password,
      code: signIn.code,
      from: SenderAddress(request.clientAddress)
    )
    guard try storage.read({ try $0.state(of: account.id).0.isAdministrator }) else {
      throw ErrorDictionary(.accessDenied, "\(account.userName) is not an administrator")
    }
    let token = effects.randomness.bytes(32).base64URL
    let session = StoredSession(
      digest: TokenDigest.of(token),
      container: PageSession.administration.rawValue,
      account: account.id,
      userRecordName: "",
      expires: now + Int64(limits.sessionLifetime * 1000),
      isKept: false
    )
    try await write { [storage] in
      try storage.read { snapshot in
        var batch = WriteBatch()
        try batch.expectOpen(account, snapshot)
        batch.sessions = [session]
        return (batch, ())
      }
    }
    let trace = auditLog.record(
      "admin.sign-in",
      by: account.userName,
      about: account.userName,
      from: SenderAddress(request.clientAddress)
    )
    return try call.reply(AdminSession(token: token), trace)
  }
}
