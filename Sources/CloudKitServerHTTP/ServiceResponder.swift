import CloudKitServer
import CloudKitWebServices
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOFoundationCompat
import ServiceLifecycle

/// Turns an HTTP request into a request of the service, and its answer back into HTTP.
struct ServiceResponder: HTTPResponder {
  typealias Context = ServiceContext

  let configuration: CloudKitHTTPServer.Configuration
  let metrics: ServerMetrics
  let logger: Logger
  let landingPage: @Sendable () async -> LandingPage
  let handlers: CloudKitHTTPServer.Handlers

  func respond(to request: Request, context: Context) async throws -> Response {
    let clock = ContinuousClock()
    let start = clock.now
    let client = configuration.trustedProxies.client(
      peer: context.peer,
      forwardedFor: request.headers[Self.forwardedFor]
    )
    metrics.began()
    let path = request.head.path ?? "/"
    let received = Counter()
    var response: Response
    do {
      response = try await answer(request, context, client, received)
    } catch {
      note(request, path, client, status: 499, since: start, bytesIn: received.value, nil)
      throw error
    }
    if request.method == .head {
      // Made anew: replacing the body would replace its length.
      response = Response(status: response.status, headers: response.headers)
    }
    note(
      request,
      path,
      client,
      status: response.status.code,
      since: start,
      bytesIn: received.value,
      response
    )
    return response
  }

  private static let forwardedFor = HTTPField.Name("x-forwarded-for") ?? .from

  private func note(
    _ request: Request,
    _ path: String,
    _ client: String?,
    status: Int,
    since start: ContinuousClock.Instant,
    bytesIn: Int,
    _ response: Response?
  ) {
    let duration = start.duration(to: .now)
    let seconds =
      Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    let bytesOut = response?.headers[.contentLength].flatMap { Int($0) } ?? 0
    metrics.ended(
      path: path,
      status: status,
      seconds: seconds,
      bytesIn: bytesIn,
      bytesOut: bytesOut
    )
    var metadata: Logger.Metadata = [
      "method": "\(request.method.rawValue)",
      "path": "\(RedactedPath.text(path))",
      "status": .stringConvertible(status),
      "milliseconds": .stringConvertible((seconds * 100_000).rounded() / 100),
      "bytesIn": .stringConvertible(bytesIn),
      "bytesOut": .stringConvertible(bytesOut),
    ]
    if let client { metadata["client"] = "\(client)" }
    if let name = HTTPField.Name(WebServiceName.requestUUID), let id = response?.headers[name] {
      metadata["requestID"] = "\(id)"
    }
    logger.log(level: status >= 500 ? .error : .info, "request", metadata: metadata)
  }

  private func answer(
    _ request: Request,
    _ context: Context,
    _ client: String?,
    _ received: Counter
  ) async throws -> Response {
    let path = request.head.path ?? "/"
    let isReading = request.method == .get || request.method == .head
    if isReading, let page = await ownPage(path.prefix { $0 != "?" }, request, context) {
      return makeResponse(StreamedResponse(page))
    }
    if CourierPath.matches(path) { return try await answerLongPoll(request, client) }
    if request.method == .get, CourierPath.isStream(path.prefix { $0 != "?" }),
      // What cannot be opened is told as any other refusal is.
      let stream = try? handlers.openEvents?(path, request.headers[.lastEventID])
    {
      return answer(stream, headers(of: request, client))
    }
    if CloudKitService.streams(path), let transfer = handlers.transfer {
      return try await answerTransfer(request, client, received, transfer)
    }
    let limit = configuration.bodyLimit
    switch try await RequestBodyReader(limit: limit).read(request) {
    case .tooLarge:
      return makeResponse(
        StreamedResponse(.bodyTooLarge(limit: limit, headers: headers(of: request, nil)))
      )
    case .whole(let body):
      received.add(body.count)
      return makeResponse(
        StreamedResponse(await handlers.respond(serviceRequest(request, client, body: body)))
      )
    }
  }

  // MARK: Pages of the adapter

  private func ownPage(
    _ path: Substring,
    _ request: Request,
    _ context: Context
  ) async -> WebServiceResponse? {
    switch path {
    case "/": return await landingPage().response
    case "/health", "/healthz": return .json(200, #"{"status":"ok"}"#)
    case "/ready":
      return await handlers.isReady()
        ? .json(200, #"{"status":"ready"}"#) : .json(503, #"{"status":"not ready"}"#)
    case "/metrics":
      // The figures tell how much the server is used: they are for this machine and for whoever
      // the configuration shows them to.
      guard configuration.showsMetrics || Self.isLoopback(context.peer) else { return nil }
      return WebServiceResponse(
        status: 200,
        headers: [
          "content-type": "text/plain; version=0.0.4; charset=utf-8",
          "cache-control": "no-store",
        ],
        body: Data((metrics.text + handlers.metrics()).utf8)
      )
    default: return nil
    }
  }

  private static func isLoopback(_ peer: String?) -> Bool {
    peer == "127.0.0.1" || peer == "::1"
  }

  // MARK: Bodies that do not come or go in one piece

  /// A file goes from the connection to the asset store and back, never whole in memory.
  private func answerTransfer(
    _ request: Request,
    _ client: String?,
    _ received: Counter,
    _ transfer: CloudKitHTTPServer.Transfer
  ) async throws -> Response {
    let asked = serviceRequest(request, client, body: Data())
    let body = request.body
    let drained = Counter()
    let reply = await transfer(asked) { sink in
      drained.add(1)
      for try await part in body {
        received.add(part.readableBytes)
        try await sink(Data(buffer: part, byteTransferStrategy: .copy))
      }
    }
    var response = makeResponse(reply)
    if drained.value == 0, request.method != .get, request.method != .head {
      // A refusal that did not look at the body: let it in and drop it, up to the limit, so that
      // the client reads the answer.
      if try await !RequestBodyReader(limit: configuration.bodyLimit).drop(request) {
        response.headers[.connection] = "close"
      }
    }
    return response
  }

  /// A long poll ends when the server stops or the client has gone: a notification handed to a
  /// connection that nobody reads would be lost.
  private func answerLongPoll(_ request: Request, _ client: String?) async throws -> Response {
    let asked = serviceRequest(request, client, body: Data())
    let response: WebServiceResponse = try await request.body
      .consumeWithCancellationOnInboundClose { _ in
        await cancelWhenGracefulShutdown { await handlers.respond(asked) }
      }
    var answer = makeResponse(StreamedResponse(response))
    // Watching the connection has used up its reading side.
    answer.headers[.connection] = "close"
    return answer
  }

  /// A stream lasts until the listener goes or the server stops; between events it costs nothing.
  private func answer(_ stream: EventStream, _ headers: [String: String]) -> Response {
    var fields = HTTPFields()
    fields[.contentType] = "text/event-stream"
    fields[.cacheControl] = "no-store"
    // Proxies that gather an answer before they pass it on would gather this one for ever.
    if let name = HTTPField.Name("X-Accel-Buffering") { fields[name] = "no" }
    fields[.accessControlAllowOrigin] = headers["origin"] ?? "*"
    return Response(
      status: .ok,
      headers: fields,
      body: ResponseBody { [stream] writer in
        var stream = stream
        while let bytes = await stream.next() {
          try await writer.write(ByteBuffer(data: bytes))
        }
        try await writer.finish(nil)
      }
    )
  }

  // MARK: Between HTTP and the service

  private func serviceRequest(
    _ request: Request,
    _ client: String?,
    body: Data
  ) -> WebServiceRequest {
    WebServiceRequest(
      method: request.method == .head ? "GET" : request.method.rawValue,
      path: request.head.path ?? "/",
      headers: headers(of: request, client),
      body: body,
      clientAddress: client
    )
  }

  private func headers(of request: Request, _ client: String?) -> [String: String] {
    var headers: [String: String] = [:]
    for field in request.headers {
      let name = field.name.canonicalName
      headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
    }
    // HTTPTypes keeps the host apart from the other fields.
    if let authority = request.head.authority { headers["host"] = authority }
    if configuration.tls != nil { headers["x-forwarded-proto"] = "https" }
    return headers
  }

  private func makeResponse(_ response: StreamedResponse) -> Response {
    var fields = HTTPFields()
    for (name, value) in response.headers.sorted(by: { $0.key < $1.key }) {
      guard name != "content-length", let name = HTTPField.Name(name) else { continue }
      fields[name] = value
    }
    let body: ResponseBody
    switch response.body {
    case .whole(let data):
      fields[.contentLength] = String(data.count)
      body = ResponseBody(chunksOf: data)
    case .stream(let length, let read):
      fields[.contentLength] = String(length)
      body = ResponseBody(length: length, read: read)
    }
    return Response(
      status: HTTPResponse.Status(code: response.status),
      headers: fields,
      body: body
    )
  }
}

extension HTTPField.Name {
  fileprivate static var lastEventID: HTTPField.Name {
    // Every letter of it is one that names may have.
    HTTPField.Name("Last-Event-ID") ?? .ifMatch
  }
}

extension WebServiceResponse {
  fileprivate static func json(_ status: Int, _ body: String) -> WebServiceResponse {
    WebServiceResponse(
      status: status,
      headers: ["content-type": "application/json; charset=UTF-8", "cache-control": "no-store"],
      body: Data(body.utf8)
    )
  }
}
