import CloudKitWebServices
import Foundation

/// The names under which the server answers: if a foreign name server resolves its own name to this
/// machine (DNS rebinding), pages under that name could otherwise read replies.
extension CloudKitService {
  /// Whether the request's host is this server: localhost, the base URL's host, an IP address, or a
  /// configured name.
  func isOwnHost(_ request: WebServiceRequest) -> Bool {
    guard let header = request.headers["host"] else { return true }
    guard let place = Self.place(of: "http://\(header)") else { return false }
    let host = place.host
    let name = host.trimmingCharacters(in: Self.brackets)
    let own = URLComponents(string: baseURL)?.host?.lowercased()
    // DNS rebinding works with names, not with IP addresses.
    return Self.isAddress(name) || name == "localhost" || host == own
      || configuration.allowedHosts.contains(name)
  }

  /// Whether pages for users answer under the request's host name: under the server's own names,
  /// and under any name if neither the base URL nor the configuration names the server, which then
  /// listens on this machine alone, or on every address.
  func isPageHost(_ request: WebServiceRequest) -> Bool {
    if isOwnHost(request) { return true }
    let own = (URLComponents(string: baseURL)?.host ?? "").lowercased()
      .trimmingCharacters(in: Self.brackets)
    return configuration.allowedHosts.isEmpty && (Self.isAddress(own) || own == "localhost")
  }

  /// The page that refuses a foreign host name; nil for a name of the server.
  package func hostRefusal(_ request: WebServiceRequest) -> WebServiceResponse? {
    isPageHost(request) ? nil : foreignHostPage(request)
  }

  /// The page for a request under a foreign host name.
  func foreignHostPage(_ request: WebServiceRequest) -> WebServiceResponse {
    AccountPage(
      title: "Not this server's name",
      message: "This page is not served under the name \(request.headers["host"] ?? ""). "
        + "The server's operator can add it to allowedHosts.",
      links: [(baseURL, baseURL)]
    ).response(status: 403, nonce: nonce)
  }

  /// Whether a page of another site sent a form: it could sign a user in to an account of the
  /// attacker, who then reads what the user writes there.
  ///
  /// Browsers send `Sec-Fetch-Site`; older ones, and those on plain http, send the page in
  /// `Origin`. That is `null` for a page that sends no referrer, which another site may have, and
  /// never for our own. Other programs send neither.
  func isForeignForm(_ request: WebServiceRequest) -> Bool {
    guard request.method == "POST" else { return false }
    if let site = request.headers["sec-fetch-site"]?.lowercased() {
      return site != "same-origin" && site != "none"
    }
    guard let origin = request.headers["origin"] else { return false }
    guard let page = Self.place(of: origin) else { return true }
    // A proxy may end TLS: the header has the host and the port that the browser asked, the scheme
    // is the page's.
    let scheme = origin.prefix(before: ":").lowercased()
    let own = [request.headers["host"].map { "\(scheme)://\($0)" }, baseURL]
    return !own.contains { $0.flatMap(Self.place) == page }
  }

  /// A host and a port.
  private struct Place: Equatable {
    var host: String
    var port: Int
  }

  /// The host and the port of an address that has no more than these; the port of the scheme if it
  /// has none.
  private static func place(of address: String) -> Place? {
    guard let parts = URLComponents(string: address), let host = parts.host?.lowercased(),
      parts.user == nil, parts.password == nil, parts.query == nil, parts.fragment == nil
    else { return nil }
    return Place(host: host, port: parts.port ?? (parts.scheme?.lowercased() == "https" ? 443 : 80))
  }

  /// The page for a form that another site sent.
  func foreignFormPage() -> WebServiceResponse {
    AccountPage(
      title: "Not sent from here",
      message: "Another site sent this form. Open the page itself, and try again."
    ).response(status: 403, nonce: nonce)
  }

  private static let brackets = CharacterSet(charactersIn: "[]")

  private static func isAddress(_ name: String) -> Bool {
    name.contains(":") || name.wholeMatch(of: /\d{1,3}(\.\d{1,3}){3}/) != nil
  }
}
