import CloudKitWebServices
import Foundation

/// Sends requests to a service in this process, encoded as bytes, as a network would.
package struct InProcessTransport: CloudKitTransport {
  private let respond: @Sendable (WebServiceRequest) async -> WebServiceResponse

  /// Creates a transport that calls a service's function for each request.
  package init(respond: @escaping @Sendable (WebServiceRequest) async -> WebServiceResponse) {
    self.respond = respond
  }

  package func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    try Task.checkCancellation()
    var request = request
    request.path = Self.withoutOrigin(request.path)
    let response = await respond(request)
    try Task.checkCancellation()
    return response
  }

  /// The part of a URL after the origin.
  package static func withoutOrigin(_ path: String) -> String {
    guard let scheme = path.range(of: "://"), !path.hasPrefix("/") else { return path }
    guard let slash = path[scheme.upperBound...].firstIndex(of: "/") else { return "/" }
    return String(path[slash...])
  }
}
