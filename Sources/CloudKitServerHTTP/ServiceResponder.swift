import CloudKitServer
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import Synchronization

/// Converts HTTP requests to the service's, and its replies to HTTP.
struct ServiceResponder: Sendable {
  let configuration: CloudKitHTTPServer.Configuration
  let metrics: ServerMetrics
  let logger: Logger
  let landingPage: @Sendable () async -> LandingPage
  let handlers: CloudKitHTTPServer.Handlers
  /// Whether another listener serves administration and metrics.
  let withholdsAdministration: Bool
  /// The budget of request bodies in memory.
  let budget: BufferBudget
  /// The budget of replies that wait to be written.
  let replies: BufferBudget
  let unnamedProxy: UnnamedProxyNotice
  let date = HTTPDate()

  /// The bytes of a refused body that are read and discarded, so that the client reads the reply.
  var dropLimit: Int { max(configuration.bodyLimit, 1_048_576) }

  // MARK: Requests

  func incoming(_ head: HTTPRequestHead, _ peer: String?) -> IncomingRequest {
    var headers = headers(of: head)
    var path = head.uri.isEmpty ? "/" : head.uri
    if let target = head.addressedTarget {
      headers["host"] = target.host
      path = target.path
    }
    let client = configuration.trustedProxies.client(
      peer: peer,
      forwardedFor: headers["x-forwarded-for"]
    )
    unnamedProxy.look(peer: peer, forwardedFor: headers["x-forwarded-for"])
    let route = Route(path: path)
    let rules = route.rules
    let request = WebServiceRequest(
      // A resource that one response uses up, a notification or a link, is read by GET alone.
      method: head.method == .HEAD && !rules.isUsedUp ? "GET" : head.method.rawValue,
      path: path,
      headers: headers,
      clientAddress: client
    )
    return IncomingRequest(
      request: request,
      route: route,
      kind: kind(of: head, rules),
      bodyLimit: min(configuration.bodyLimit, handlers.bodyLimit(request)),
      uncheckedBytes: handlers.uncheckedBodyLimit(request),
      endsWithClient: rules.exchange == .poll || route.isRead,
      isHead: head.method == .HEAD,
      peer: peer
    )
  }

  private func kind(of head: HTTPRequestHead, _ rules: RouteRules) -> RouteRules.Exchange {
    switch rules.exchange {
    case .whole, .poll: rules.exchange
    case .transfer: handlers.transfer == nil ? .whole : .transfer
    case .events: head.method == .GET && handlers.openEvents != nil ? .events : .whole
    }
  }

  private func headers(of head: HTTPRequestHead) -> [String: String] {
    var headers: [String: String] = [:]
    headers.reserveCapacity(head.headers.count + 1)
    for field in head.headers {
      let name = field.name.lowercased()
      headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
    }
    if configuration.tls != nil { headers["x-forwarded-proto"] = "https" }
    return headers
  }

  // MARK: Replies of the service

  /// The reply to a complete request.
  func respond(to incoming: IncomingRequest) async -> WebServiceResponse {
    if withholdsAdministration, incoming.route.rules.isOfAdministration {
      return refused(incoming, .noHandler(incoming))
    }
    if incoming.request.method == "GET", let page = await ownPage(incoming) { return page }
    return await handlers.respond(incoming.request)
  }

  /// The refusal of a request whose body is large, from its head; nil where the body may come.
  func refusalBeforeBody(of incoming: IncomingRequest) async -> WebServiceResponse? {
    if withholdsAdministration, incoming.route.rules.isOfAdministration {
      return .noHandler(incoming)
    }
    return await handlers.refusalBeforeBody(incoming.request)
  }

  /// A file goes from the connection to the asset store and back, never whole in memory.
  func transfer(_ incoming: IncomingRequest, _ body: UploadStream) async -> StreamedResponse {
    if withholdsAdministration, incoming.route.rules.isOfAdministration {
      return StreamedResponse(refused(incoming, .noHandler(incoming)))
    }
    guard let transfer = handlers.transfer else {
      return StreamedResponse(await handlers.respond(incoming.request))
    }
    return await transfer(incoming.request) { sink in
      for try await piece in body.pieces {
        try await sink(Data(buffer: piece, byteTransferStrategy: .copy))
      }
    }
  }

  /// The requested event stream; nil if it cannot be opened.
  func openEvents(_ incoming: IncomingRequest) -> EventStream? {
    try? handlers.openEvents?(incoming.request.path, incoming.request.headers["last-event-id"])
  }

  func tooLarge(_ incoming: IncomingRequest) -> StreamedResponse {
    StreamedResponse(refused(incoming, .bodyTooLarge(incoming)))
  }

  /// The reply to a request whose head is refused.
  func badHead(_ incoming: IncomingRequest, _ reason: String) -> StreamedResponse {
    StreamedResponse(refused(incoming, .badHead(incoming, reason)))
  }

  /// The reply if the memory budget of bodies or of replies is used up.
  func noRoom(_ incoming: IncomingRequest) -> StreamedResponse {
    StreamedResponse(refused(incoming, .noRoom(incoming)))
  }

  /// A refusal of the adapter itself, as a page where a person reads it.
  private func refused(
    _ incoming: IncomingRequest,
    _ refusal: WebServiceResponse
  ) -> WebServiceResponse {
    ErrorPage.isAskedFor(incoming.request, incoming.route)
      ? ErrorPage.page(of: refusal, incoming.route) : refusal
  }

  // MARK: Pages of the adapter

  private func ownPage(_ incoming: IncomingRequest) async -> WebServiceResponse? {
    guard case .section(let section) = incoming.route else { return nil }
    switch section {
    case .landing:
      if let refusal = handlers.hostRefusal(incoming.request) { return refusal }
      // Names of containers, and links with a token in them, are only for the developer on this
      // machine.
      return (isLocal(incoming) ? await landingPage() : .forEveryone).response
    case .health, .healthz: return .json(200, #"{"status":"ok"}"#)
    case .ready, .readyz:
      return await handlers.isReady()
        ? .json(200, #"{"status":"ready"}"#) : .json(503, #"{"status":"not ready"}"#)
    case .metrics:
      // The figures show how much the server is used: they are for programs on this machine, unless
      // the configuration shows them to all.
      guard configuration.showsMetrics || isLocal(incoming) else { return nil }
      return WebServiceResponse(
        status: 200,
        headers: [
          "content-type": "text/plain; version=0.0.4; charset=utf-8",
          "cache-control": "no-store",
          "x-content-type-options": "nosniff",
        ],
        body: Data(
          (metrics.text + ProcessMetrics.text(configuration) + handlers.metrics()).utf8
        )
      )
    default: return nil
    }
  }

  /// Whether a program on this machine sent the request for itself.
  ///
  /// The peer address alone is not enough: a proxy on this machine is a loopback peer too, and not
  /// every proxy adds a header. A page whose host name resolves to 127.0.0.1 (DNS rebinding) is
  /// refused by that name.
  private func isLocal(_ incoming: IncomingRequest) -> Bool {
    guard !configuration.hasPublicAddress, let peer = incoming.peer,
      !configuration.trustedProxies.contains(peer)
    else { return false }
    let headers = incoming.request.headers
    let isForwarded = Self.forwardingHeaders.contains { headers[$0] != nil }
    let host = SenderAddress.withoutPort(headers["host"] ?? "127.0.0.1")
    return !isForwarded && LoopbackHost.containsAddress(peer)
      && LoopbackHost.containsAddress(incoming.request.clientAddress)
      && LoopbackHost.contains(host)
  }

  private static let forwardingHeaders = ["x-forwarded-for", "forwarded", "x-real-ip", "via"]

  // MARK: Heads

  /// The head of a reply; `isLast` if the connection ends with it.
  func head(
    of response: StreamedResponse,
    _ exchange: Exchange,
    isLast: Bool
  ) -> HTTPResponseHead {
    var fields = HTTPHeaders()
    fields.reserveCapacity(response.headers.count + 3)
    for (name, value) in response.headers.sorted(by: { $0.key < $1.key })
    where name != "content-length" {
      fields.add(name: name, value: Self.oneLine(value))
    }
    // Without a length the body is sent in chunks (RFC 9112, 7.1), or ends with the connection.
    let length: Int64? =
      switch response.body {
      case .whole(let data): Int64(data.count)
      case .stream(let length, _): length
      }
    if let length { fields.add(name: "content-length", value: String(length)) }
    return head(response.status, fields, exchange, isLast: isLast)
  }

  /// The head of an event stream.
  func eventsHead(_ exchange: Exchange) -> HTTPResponseHead {
    let fields: HTTPHeaders = [
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      // Proxies that buffer replies would buffer this one forever.
      "x-accel-buffering": "no",
      "access-control-allow-origin": Self.oneLine(
        exchange.incoming.request.headers["origin"] ?? "*"
      ),
    ]
    return head(200, fields, exchange, isLast: true)
  }

  private func head(
    _ status: Int,
    _ fields: HTTPHeaders,
    _ exchange: Exchange,
    isLast: Bool
  ) -> HTTPResponseHead {
    var fields = fields
    fields.add(name: "date", value: date.now)
    if !fields.contains(name: Self.transportSecurity),
      configuration.tls != nil || handlers.asksForHTTPS()
    {
      fields.add(name: Self.transportSecurity, value: HTMLPage.transportSecurity)
    }
    if isLast {
      fields.add(name: "connection", value: "close")
    } else if exchange.version == .http1_0 {
      fields.add(name: "connection", value: "keep-alive")
    }
    return HTTPResponseHead(
      version: exchange.version,
      status: HTTPResponseStatus(statusCode: status),
      headers: fields
    )
  }

  private static let transportSecurity = "strict-transport-security"

  /// A header value without line breaks, which cannot begin another header even if it repeats part
  /// of a request.
  private static func oneLine(_ value: String) -> String {
    func isControl(_ byte: UInt8) -> Bool { (byte < 0x20 && byte != 0x09) || byte == 0x7F }
    guard value.utf8.contains(where: isControl) else { return value }
    return String(decoding: value.utf8.map { isControl($0) ? 0x20 : $0 }, as: UTF8.self)
  }

  // MARK: Metrics and log

  func began() { metrics.began() }

  /// Logs and counts, once, how an exchange ended.
  func note(_ exchange: Exchange, status: Int, headers: HTTPHeaders = [:]) {
    guard !exchange.isNoted else { return }
    exchange.isNoted = true
    let path = exchange.incoming.request.path
    let duration = exchange.start.duration(to: .now)
    let seconds =
      Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    let bytesOut = headers.first(name: "content-length").flatMap { Int($0) } ?? 0
    metrics.ended(
      endpoint: exchange.incoming.route.rules.label,
      status: status,
      seconds: seconds,
      bytesIn: exchange.received,
      bytesOut: bytesOut
    )
    let level: Logger.Level = status >= 500 ? .error : .info
    guard logger.logLevel <= level else { return }
    var metadata: Logger.Metadata = [
      "method": "\(exchange.incoming.isHead ? "HEAD" : exchange.incoming.request.method)",
      "path": "\(RedactedPath.text(path))",
      "status": .stringConvertible(status),
      "milliseconds": .stringConvertible((seconds * 100_000).rounded() / 100),
      "bytesIn": .stringConvertible(exchange.received),
      "bytesOut": .stringConvertible(bytesOut),
    ]
    if let client = exchange.incoming.request.clientAddress { metadata["client"] = "\(client)" }
    if let id = headers.first(name: WebServiceName.requestUUID) { metadata["requestID"] = "\(id)" }
    logger.log(level: level, "request", metadata: metadata)
  }
}

extension WebServiceResponse {
  fileprivate static func json(_ status: Int, _ body: String) -> WebServiceResponse {
    WebServiceResponse(
      status: status,
      headers: [
        "content-type": "application/json; charset=UTF-8", "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      ],
      body: Data(body.utf8)
    )
  }
}
