import CloudKitServer
import CloudKitWebServices
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOFoundationCompat
import ServiceLifecycle

/// Turns an HTTP request into a request of the service, and its answer back into HTTP.
struct ServiceResponder: HTTPResponder {
  typealias Context = BasicRequestContext

  let bodyLimit: Int
  let isSecure: Bool
  let landingPage: @Sendable () async -> LandingPage
  let openEvents: CloudKitHTTPServer.OpenEvents?
  let respond: CloudKitHTTPServer.Respond

  func respond(to request: Request, context: Context) async throws -> Response {
    let isHead = request.method == .head
    let path = request.head.path ?? "/"
    let response: WebServiceResponse
    switch (request.method, path.prefix { $0 != "?" }) {
    case (.get, "/healthz"), (.head, "/healthz"):
      response = WebServiceResponse(
        status: 200,
        headers: ["content-type": "application/json; charset=UTF-8", "cache-control": "no-store"],
        body: Data(#"{"status":"ok"}"#.utf8)
      )
    case (.get, "/"), (.head, "/"):
      response = await landingPage().response
    case (_, let path) where CourierPath.matches(path):
      return try await answerLongPoll(request)
    case (.get, let name) where CourierPath.isStream(name):
      // What cannot be opened is told as any other refusal is.
      if let stream = try? openEvents?(path, request.headers[.lastEventID]) {
        return answer(stream, headers(of: request))
      }
      response = await respond(serviceRequest(request, body: Data()))
    default:
      switch try await RequestBodyReader(limit: bodyLimit).read(request) {
      case .tooLarge:
        response = .bodyTooLarge(limit: bodyLimit, headers: headers(of: request))
      case .whole(let body):
        response = await respond(serviceRequest(request, body: body))
      }
    }
    return makeResponse(response, isHead: isHead)
  }

  /// A long poll ends when the server stops or the client has gone: a notification handed to a
  /// connection that nobody reads would be lost.
  private func answerLongPoll(_ request: Request) async throws -> Response {
    let asked = serviceRequest(request, body: Data())
    let response: WebServiceResponse = try await request.body
      .consumeWithCancellationOnInboundClose { _ in
        await cancelWhenGracefulShutdown { await respond(asked) }
      }
    var answer = makeResponse(response, isHead: request.method == .head)
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

  private func serviceRequest(_ request: Request, body: Data) -> WebServiceRequest {
    WebServiceRequest(
      method: request.method == .head ? "GET" : request.method.rawValue,
      path: request.head.path ?? "/",
      headers: headers(of: request),
      body: body
    )
  }

  private func headers(of request: Request) -> [String: String] {
    var headers: [String: String] = [:]
    for field in request.headers {
      let name = field.name.canonicalName
      headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
    }
    // HTTPTypes keeps the host apart from the other fields.
    if let authority = request.head.authority { headers["host"] = authority }
    if isSecure { headers["x-forwarded-proto"] = "https" }
    return headers
  }

  private func makeResponse(_ response: WebServiceResponse, isHead: Bool) -> Response {
    var fields = HTTPFields()
    for (name, value) in response.headers.sorted(by: { $0.key < $1.key }) {
      guard name != "content-length", let name = HTTPField.Name(name) else { continue }
      fields[name] = value
    }
    fields[.contentLength] = String(response.body.count)
    return Response(
      status: HTTPResponse.Status(code: response.status),
      headers: fields,
      body: isHead ? ResponseBody() : ResponseBody(chunksOf: response.body)
    )
  }
}

extension HTTPField.Name {
  fileprivate static var lastEventID: HTTPField.Name {
    // Every letter of it is one that names may have.
    HTTPField.Name("Last-Event-ID") ?? .ifMatch
  }
}

extension ResponseBody {
  /// Bytes handed to the socket at once: large assets must not be copied whole a second time.
  private static let chunkSize = 262_144

  init(chunksOf data: Data) {
    guard data.count > Self.chunkSize else {
      self = data.isEmpty ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(data: data))
      return
    }
    self.init(contentLength: data.count) { writer in
      var start = data.startIndex
      while start < data.endIndex {
        let end = data.index(start, offsetBy: Self.chunkSize, limitedBy: data.endIndex)
        let chunk = data[start..<(end ?? data.endIndex)]
        try await writer.write(ByteBuffer(data: chunk))
        start = chunk.endIndex
      }
      try await writer.finish(nil)
    }
  }
}
