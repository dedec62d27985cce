import CloudKitWebServices
import Foundation

/// Under which names the server answers: one that somebody else's name server makes up for this
/// machine would let pages of theirs read what is shown here.
extension CloudKitService {
  /// Whether the request came under a name of this server: the machine itself, the address clients
  /// are told, an address in figures, or a name of the configuration.
  func isOwnHost(_ request: WebServiceRequest) -> Bool {
    guard let header = request.headers["host"] else { return true }
    guard let host = URLComponents(string: "http://\(header)")?.host?.lowercased() else {
      return false
    }
    let name = host.trimmingCharacters(in: Self.brackets)
    let own = URLComponents(string: baseURL)?.host?.lowercased()
    // A page cannot bind an address in figures to another machine, as it can a name of its own.
    return Self.isAddress(name) || name == "localhost" || host == own
      || configuration.allowedHosts.contains(name)
  }

  /// The same for pages that people open, but where nobody has said what the server is called any
  /// name will do: one that listens on this machine alone, or on every address.
  func isPageHost(_ request: WebServiceRequest) -> Bool {
    if isOwnHost(request) { return true }
    let own = (URLComponents(string: baseURL)?.host ?? "").lowercased()
      .trimmingCharacters(in: Self.brackets)
    return configuration.allowedHosts.isEmpty && (Self.isAddress(own) || own == "localhost")
  }

  /// The page that refuses a host name which is not the server's; nil where it is.
  package func hostRefusal(_ request: WebServiceRequest) -> WebServiceResponse? {
    isPageHost(request) ? nil : strangeHostPage(request)
  }

  /// What a page's visitor is told under a name that is not the server's.
  func strangeHostPage(_ request: WebServiceRequest) -> WebServiceResponse {
    AccountPage(
      title: "Not this server's name",
      message: "This page is not served under the name \(request.headers["host"] ?? ""). "
        + "Who runs the server can add it to allowedHosts.",
      links: [(baseURL, baseURL)]
    ).response(status: 403, nonce: nonce)
  }

  /// Whether a page of another site sent a form: it could sign a visitor in to an account that is not
  /// theirs, and keep what they write there.
  ///
  /// Browsers say it in `Sec-Fetch-Site`; older ones name the page in `Origin`, which is `null` for our
  /// own pages, since they send no referrer. Programs that are no browsers say neither.
  func isForeignForm(_ request: WebServiceRequest) -> Bool {
    guard request.method == "POST" else { return false }
    if let site = request.headers["sec-fetch-site"]?.lowercased() {
      return site != "same-origin" && site != "none"
    }
    guard let origin = request.headers["origin"], origin != "null" else { return false }
    guard let page = URLComponents(string: origin)?.host?.lowercased() else { return true }
    let own = [request.headers["host"].map { "http://\($0)" }, baseURL]
    return !own.contains { $0.flatMap { URLComponents(string: $0)?.host?.lowercased() } == page }
  }

  /// What a visitor is told whose form came from elsewhere.
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
