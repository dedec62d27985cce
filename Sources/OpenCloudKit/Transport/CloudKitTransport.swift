import CloudKitWebServices
import Foundation

/// Sends requests to the service and returns replies: the one seam between CloudKit's API and the
/// network.
///
/// A request's path is either the part of a URL after the origin, or a whole URL that the service
/// issued: for uploads, downloads and notifications.
package protocol CloudKitTransport: Sendable {
  /// Sends a request and waits for the reply; a reply with an HTTP error status is returned too.
  func send(_ request: WebServiceRequest) async throws -> WebServiceResponse

  /// Sends a request whose body is a file of `size` bytes.
  ///
  /// `progress` receives the number of bytes sent so far.
  func upload(
    _ request: WebServiceRequest,
    from file: URL,
    size: Int64,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse

  /// Sends a request and writes the body of a successful reply to a file.
  ///
  /// A partial reply (status 206) is appended to the file; any other reply replaces its contents.
  /// `progress` receives the file's size so far.
  func download(
    _ request: WebServiceRequest,
    to file: URL,
    progress: @escaping @Sendable (Int64) -> Void
  ) async throws -> WebServiceResponse

  /// Opens a streamed reply; nil if the transport does not support streams.
  func open(_ request: WebServiceRequest) async throws -> OpenReply?
}

/// A reply whose body is read in chunks.
package struct OpenReply: Sendable {
  /// Status and headers, and the body of an error reply.
  package var response: WebServiceResponse
  /// Waits for the next chunk; nil at the end.
  ///
  /// Only one caller at a time may wait.
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
  /// A transport within a process does not stream.
  package func open(_ request: WebServiceRequest) async throws -> OpenReply? { nil }

  /// Sends a file as one body: for transports within a process.
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

  /// Writes one body to a file: for transports within a process.
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

/// The reason why a request got no reply.
package struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Whether the request may have reached the service.
  package var wasSent: Bool
  /// The error message of the network layer.
  package var reason: String

  package init(wasSent: Bool, reason: String) {
    self.wasSent = wasSent
    self.reason = reason
  }

  package var description: String { reason }
}
