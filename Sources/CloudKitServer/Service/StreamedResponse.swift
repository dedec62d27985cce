import CloudKitWebServices
import Foundation
import Synchronization

/// A reply whose body may be streamed.
package struct StreamedResponse: Sendable {
  package enum Body: Sendable {
    case whole(Data)
    /// The length in bytes, or nil if it is unknown until the end; the closure writes to its sink.
    case stream(
      Int64?,
      @Sendable (_ sink: @escaping @Sendable (Data) async throws -> Void) async throws -> Void
    )
  }

  package var status: Int
  /// The headers by lower-case name.
  package var headers: [String: String]
  package var body: Body

  package init(_ response: WebServiceResponse) {
    status = response.status
    headers = response.headers
    body = .whole(response.body)
  }

  package init(status: Int, headers: [String: String], body: Body) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Whether the length of the body is unknown until its end.
  package var isUnbounded: Bool {
    if case .stream(nil, _) = body { true } else { false }
  }

  /// The reply with its whole body in memory, for callers without a stream.
  func collected() async throws -> WebServiceResponse {
    var response = WebServiceResponse(status: status, headers: headers)
    switch body {
    case .whole(let data): response.body = data
    case .stream(_, let read):
      let box = DataBox()
      try await read { box.append($0) }
      response.body = box.data
    }
    return response
  }
}

/// Collects the pieces of a stream.
private final class DataBox: Sendable {
  private let content = Mutex(Data())

  var data: Data { content.withLock { $0 } }

  func append(_ more: Data) { content.withLock { $0.append(more) } }
}

/// Passes the pieces of a request's body to its sink.
package typealias BodySource =
  @Sendable (_ sink: @escaping @Sendable (Data) async throws -> Void) async throws -> Void
