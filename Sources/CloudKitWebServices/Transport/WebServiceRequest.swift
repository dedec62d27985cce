import Foundation

/// One request to the service, either over HTTP or within the process.
package struct WebServiceRequest: Hashable, Sendable {
  /// `GET`, `POST`, `PUT` or `OPTIONS`.
  package var method: String
  /// Percent-encoded path and query exactly as sent; a signature covers these bytes.
  package var path: String
  /// The headers by lower-case name.
  package var headers: [String: String]
  package var body: Data
  /// The client's address, for limits and logs; nil within the process.
  package var clientAddress: String?

  package init(
    method: String,
    path: String,
    headers: [String: String] = [:],
    body: Data = Data(),
    clientAddress: String? = nil
  ) {
    self.method = method
    self.path = path
    self.headers = headers
    self.body = body
    self.clientAddress = clientAddress
  }
}
