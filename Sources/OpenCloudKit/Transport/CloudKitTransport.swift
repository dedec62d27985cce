import CloudKitWebServices
import Foundation

/// Carries requests to the service and replies back: the one seam between CloudKit's API and the
/// network.
///
/// A request's path is either the part of a URL after the origin, or a whole URL that the service
/// handed out: for uploads, downloads and notifications.
package protocol CloudKitTransport: Sendable {
  /// Sends a request and waits for the reply; an HTTP status that means failure is a reply too.
  func send(_ request: WebServiceRequest) async throws -> WebServiceResponse

  /// Sends a request whose body is a file of so many bytes.
  ///
  /// `progress` is told how many bytes were sent so far.
  func upload(
    _ request: WebServiceRequest,
    from file: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse

  /// Sends a request and writes the body of a good reply to a file.
  ///
  /// A reply of a part (status 206) goes on after what the file has; another one begins it anew.
  /// `progress` is told how many bytes the file has so far.
  func download(
    _ request: WebServiceRequest,
    to file: URL,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse

  /// Opens a reply that goes on while the connection lasts; nothing where there is no such thing.
  func open(_ request: WebServiceRequest) async throws -> OpenReply?
}

/// A reply whose body comes piece by piece.
package struct OpenReply: Sendable {
  /// Status and headers; the body too, where the status means failure.
  package var response: WebServiceResponse
  /// Waits for the next piece; nothing at the end.
  ///
  /// One caller at a time.
  package var next: @Sendable () async throws -> Data?

  package init(
    response: WebServiceResponse,
    next: @escaping @Sendable () async throws -> Data?
  ) {
    self.response = response
    self.next = next
  }
}

extension CloudKitTransport {
  /// Replies within a process come whole.
  package func open(_ request: WebServiceRequest) async throws -> OpenReply? { nil }

  /// Sends a file as one body: for transports that carry bytes within a process.
  package func upload(
    _ request: WebServiceRequest,
    from file: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse {
    var request = request
    request.body = Data()
    for try await piece in FileChunks(of: file, size: size) { request.body.append(piece) }
    let response = try await send(request)
    progress(size)
    return response
  }

  /// Writes one body to a file: for transports that carry bytes within a process.
  package func download(
    _ request: WebServiceRequest,
    to file: URL,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse {
    var response = try await send(request)
    guard (200..<300).contains(response.status) else { return response }
    var sink = try FileSink(file, appending: response.status == 206)
    try sink.write(response.body)
    try sink.close()
    progress(sink.count)
    response.body = Data()
    return response
  }
}

/// Why no reply came.
package struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Whether the service may have seen the request.
  package var wasSent: Bool
  /// What the layer below said.
  package var reason: String

  package init(wasSent: Bool, reason: String) {
    self.wasSent = wasSent
    self.reason = reason
  }

  package var description: String { reason }
}
