import CloudKitWebServices
import Foundation

/// The documented endpoints.
extension CloudKitService {
  func respondToAPI(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ path: WebServicePath,
    _ endpoint: Endpoint
  ) async throws -> WebServiceResponse {
    if let coding = request.headers["content-encoding"], coding.lowercased() != "identity" {
      throw ErrorDictionary(
        .badRequest,
        "a body with the content encoding '\(coding.prefix(32))' cannot be read; send it as it is"
      )
    }
    let context = try await rates.countingFailures(of: request) {
      guard let signature = try KeySignature(request.headers) else {
        return try await authenticate(request, target, path)
      }
      return try serverKeys.authenticate(request, target, path, signedBy: signature)
    }
    guard let mark = context.caller.signature else {
      return try await answer(request, endpoint, path, context, target)
    }
    return try await serverKeys.answerOnce(mark) {
      try await answer(request, endpoint, path, context, target)
    }
  }

  private func answer(
    _ request: WebServiceRequest,
    _ endpoint: Endpoint,
    _ path: WebServicePath,
    _ context: RequestContext,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    var context = context
    context.site = SenderAddress(request.clientAddress)?.site
    context.readTime = ReadTime(seconds: limits.readTime)
    RequestSubject.current?.note(context)
    try rates.check(context, request)
    try context.checkUser(expected: request.headers[WebServiceName.expectedUser])
    let rules = endpoint.rules
    try rules.admit(context)
    guard request.method == "POST" || (request.method == "GET" && rules.allowsGet) else {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    guard path.database != nil || !rules.needsDatabase else {
      throw ErrorDictionary.noHandler
    }
    // A body that came without `refusalBeforeBody(of:)`, as from within the process.
    if context.principal == nil, request.body.count > limits.anonymousRequestSize {
      _ = try context.user()
    }
    let call = APICall(
      context: context,
      body: request.body,
      bounds: bodyBounds[endpoint],
      decoding: decoding
    )
    let body: Data
    do {
      body = try await answer(endpoint, call)
    } catch let error as ErrorDictionary {
      throw context.stripped(error)
    }
    var headers: [String: String] = [:]
    if context.caller.limitedUser != nil, let token = target.webAuthToken {
      // Not rotated: parallel requests and simple clients keep working with one token.
      headers[WebServiceName.webAuthTokenHeader] = token
    }
    return WebServiceResponse(status: 200, headers: headers, body: body)
  }

  /// Answers a request whose caller was authenticated by other means.
  func answer(_ endpoint: Endpoint, _ body: Data, _ context: RequestContext) async throws -> Data {
    try endpoint.rules.admit(context)
    RequestSubject.current?.note(context)
    return try await answer(
      endpoint,
      APICall(context: context, body: body, bounds: bodyBounds[endpoint], decoding: decoding)
    )
  }

  private func answer(_ endpoint: Endpoint, _ call: APICall) async throws -> Data {
    let context = call.context
    switch endpoint {
    case .modifyRecords:
      return try await records.modify(
        try await call.readLogged(),
        context,
        bodySize: call.body.count
      )
    case .lookupRecords: return try await records.lookup(try await call.readLogged(), context)
    case .queryRecords: return try await queries.query(try await call.readLogged(), context)
    case .changedRecords: return try await feeds.changedRecords(try await call.read(), context)
    case .zoneChanges: return try await feeds.zoneChanges(try await call.readLogged(), context)
    case .databaseChanges:
      return try await feeds.databaseChanges(try await call.readOrEmpty(), context)
    case .changedZones:
      return try await feeds.databaseChanges(try await call.readOrEmpty(), context, isOlder: true)
    case .listZones: return try await zones.list(context)
    case .lookupZones: return try await zones.lookup(try await call.read(), context)
    case .modifyZones: return try await zones.modify(try await call.readLogged(), context)
    case .listSubscriptions: return try await subscriptions.list(context)
    case .lookupSubscriptions: return try await subscriptions.lookup(try await call.read(), context)
    case .modifySubscriptions: return try await subscriptions.modify(try await call.read(), context)
    case .caller, .currentUser: return try await users.current(context)
    case .discoverUsers: return try await users.discover(try await call.readOrEmpty(), context)
    case .lookupUsersByEmail, .lookupUsersByID:
      return try await users.lookup(try await call.read(), context)
    case .lookupContacts: return try await users.lookupContacts(context)
    case .uploadAssets: return try await assets.uploadURLs(try await call.readLogged(), context)
    case .rereferenceAssets: return try await assets.rereference(try await call.read(), context)
    case .resolveShares: return try await sharing.resolve(try await call.read(), context)
    case .acceptShares: return try await sharing.accept(try await call.read(), context)
    case .requestAccess: return try await sharing.requestAccess(try await call.read(), context)
    case .createToken, .registerToken:
      return try await devices.register(try await call.read(), context)
    }
  }
}

/// A body and its sender.
private struct APICall {
  var context: RequestContext
  var body: Data
  var bounds: JSONBounds
  var decoding: BodyDecoding

  func read<Body: Decodable & Sendable>() async throws -> Body {
    try await decoding.decode(Body.self, from: body, within: bounds, for: context)
  }

  /// Reads a body whose names of types and zones are in the log of requests.
  func readLogged<Body: Decodable & LoggedBody & Sendable>() async throws -> Body {
    let value: Body = try await read()
    RequestSubject.current?.note(value)
    return value
  }

  /// For reads without parameters, which clients also send with an empty body or with GET.
  func readOrEmpty<Body: Decodable & Sendable>() async throws -> Body {
    try await decoding.decode(
      Body.self,
      from: body.isEmpty ? Data("{}".utf8) : body,
      within: bounds,
      for: context
    )
  }
}

extension RequestTarget {
  /// The user token; after a sign-out, CloudKit JS 1 sends the text `null`.
  var webAuthToken: String? {
    for name in [WebServiceName.webAuthToken, WebServiceName.session] {
      if let token = query[name], !token.isEmpty, token != "null" { return token }
    }
    return nil
  }
}
