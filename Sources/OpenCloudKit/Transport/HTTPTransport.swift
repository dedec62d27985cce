import AsyncHTTPClient
import CloudKitWebServices
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOPosix

/// Sends requests over HTTP.
///
/// All containers of a process share one HTTP client and its connections. The client lives as long
/// as the process, so deallocating a container does not interrupt its requests.
package struct HTTPTransport: CloudKitTransport {
  /// The service's address without a trailing slash.
  private let origin: String

  /// The longest wait for a connection.
  private static let connectTimeout: TimeAmount = .seconds(10)
  /// The longest idle time of a connection; a long poll is idle for up to a minute.
  private static let silenceTimeout: TimeAmount = .seconds(70)
  /// The longest duration of one exchange, except transfers of files.
  private static let exchangeTimeout: TimeAmount = .minutes(10)
  /// The longest duration of a file transfer: a gigabyte on a very slow connection.
  private static let fileTimeout: TimeAmount = .hours(24)
  /// The longest duration of an event stream, before it is opened again.
  private static let streamTimeout: TimeAmount = .hours(24)
  /// The largest accepted reply: a page of 200 records of a megabyte fits; files are streamed.
  private static let largestReply = 256 << 20
  /// Each device holds one connection for notifications; the others are for its calls and
  /// transfers.
  private static let connectionsPerHost = 64

  private static let client = makeClient(HTTPClient.Configuration())
  /// For a server on this machine, reached at an address that its certificate does not name.
  private static let localClient = makeClient(
    HTTPClient.Configuration(certificateVerification: .none)
  )

  private static func makeClient(_ template: HTTPClient.Configuration) -> HTTPClient {
    var configuration = template
    configuration.timeout = .init(connect: connectTimeout, read: silenceTimeout)
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connectionsPerHost
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.decompression = .enabled(limit: .size(largestReply))
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  private let isLocal: Bool

  /// Creates a transport for the service's address.
  ///
  /// `isLocal` says that the address is one of this machine, and that the caller knows it to be the
  /// server's: its certificate is not verified, since it names the server's public host.
  package init(baseURL: URL, isLocal: Bool = false) {
    self.isLocal = isLocal
    var origin = baseURL.absoluteString
    while origin.hasSuffix("/") { origin.removeLast() }
    self.origin = origin
  }

  package func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    var outgoing = outgoing(request)
    if !request.body.isEmpty || request.method == "POST" || request.method == "PUT" {
      outgoing.body = .bytes(ByteBuffer(data: request.body))
    }
    do {
      let reply = try await client(for: request).execute(outgoing, timeout: Self.exchangeTimeout)
      let body = try await reply.body.collect(upTo: Self.largestReply)
      return Self.response(reply, body: Data(buffer: body))
    } catch {
      throw Self.failure(error)
    }
  }

  package func upload(
    _ request: WebServiceRequest,
    from file: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse {
    var outgoing = outgoing(request)
    let pieces = FileChunks(of: file, size: size, progress: progress)
    outgoing.body = .stream(pieces.map { ByteBuffer(data: $0) }, length: .known(size))
    do {
      let reply = try await client(for: request).execute(outgoing, timeout: Self.fileTimeout)
      let body = try await reply.body.collect(upTo: Self.largestReply)
      return Self.response(reply, body: Data(buffer: body))
    } catch {
      throw Self.failure(error)
    }
  }

  package func download(
    _ request: WebServiceRequest,
    to file: URL,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse {
    do {
      let reply = try await client(for: request).execute(
        outgoing(request),
        timeout: Self.fileTimeout
      )
      guard (200..<300).contains(Int(reply.status.code)) else {
        let body = try await reply.body.collect(upTo: Self.largestReply)
        return Self.response(reply, body: Data(buffer: body))
      }
      var sink = try FileSink(file, appending: reply.status == .partialContent)
      for try await piece in reply.body {
        try sink.write(Data(buffer: piece))
        progress(sink.count)
      }
      try sink.close()
      return Self.response(reply, body: Data())
    } catch {
      throw Self.failure(error)
    }
  }

  package func open(_ request: WebServiceRequest) async throws -> OpenReply? {
    do {
      let reply = try await client(for: request).execute(
        outgoing(request),
        timeout: Self.streamTimeout
      )
      guard reply.status == .ok else {
        let body = try await reply.body.collect(upTo: Self.largestReply)
        return OpenReply(response: Self.response(reply, body: Data(buffer: body))) { nil }
      }
      let reader = BodyReader(reply.body)
      return OpenReply(response: Self.response(reply, body: Data())) {
        do {
          return try await reader.next()
        } catch {
          throw Self.failure(error)
        }
      }
    } catch {
      throw Self.failure(error)
    }
  }

  /// Reads a response body at the pace of its consumer.
  private actor BodyReader {
    private var pieces: HTTPClientResponse.Body.AsyncIterator

    init(_ body: HTTPClientResponse.Body) {
      pieces = body.makeAsyncIterator()
    }

    func next() async throws -> Data? {
      var pieces = self.pieces
      defer { self.pieces = pieces }
      return try await pieces.next(isolation: self).map { Data(buffer: $0) }
    }
  }

  /// The HTTP client for a request; a URL that the service issued does not count as local.
  private func client(for request: WebServiceRequest) -> HTTPClient {
    isLocal && request.path.hasPrefix("/") ? Self.localClient : Self.client
  }

  private func outgoing(_ request: WebServiceRequest) -> HTTPClientRequest {
    var outgoing = HTTPClientRequest(url: url(of: request))
    outgoing.method = .init(rawValue: request.method)
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      outgoing.headers.add(name: name, value: value)
    }
    return outgoing
  }

  private static func response(_ reply: HTTPClientResponse, body: Data) -> WebServiceResponse {
    var headers: [String: String] = [:]
    for (name, value) in reply.headers { headers[name.lowercased()] = value }
    return WebServiceResponse(status: Int(reply.status.code), headers: headers, body: body)
  }

  private func url(of request: WebServiceRequest) -> String {
    request.path.hasPrefix("/") ? origin + request.path : request.path
  }

  /// Says whether the request may have reached the service, which decides whether it may be
  /// repeated.
  private static func failure(_ error: any Error) -> any Error {
    switch error {
    case is CancellationError, is CKError:
      return error
    case let error as HTTPClientError where error == .cancelled:
      return CancellationError()
    case let error as HTTPClientError where error == .connectTimeout:
      return TransportError(wasSent: false, reason: "the connection took too long")
    case let error as HTTPClientError where error == .invalidURL || error == .emptyHost:
      return TransportError(wasSent: false, reason: "the service's URL is malformed")
    case let error as NIOConnectionError:
      return TransportError(
        wasSent: false,
        reason: "no connection to \(error.host):\(error.port)"
      )
    case let error as IOError where error.errnoCode == ECONNREFUSED:
      return TransportError(wasSent: false, reason: "the connection was refused")
    default:
      return TransportError(wasSent: true, reason: "\(error)")
    }
  }
}
