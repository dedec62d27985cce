import Foundation

/// The reply to one request.
package struct WebServiceResponse: Hashable, Sendable {
  /// The HTTP status.
  package var status: Int
  /// The headers by lower-case name.
  package var headers: [String: String]
  package var body: Data

  package init(
    status: Int,
    headers: [String: String] = [:],
    body: Data = Data()
  ) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
