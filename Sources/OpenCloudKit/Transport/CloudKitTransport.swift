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
