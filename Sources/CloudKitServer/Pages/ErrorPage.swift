import CloudKitWebServices

/// An error as HTML for a browser, in place of the web services' error dictionary.
package enum ErrorPage {
  /// Whether the reply is HTML: a browser asked for a page, at an address outside the web services.
  package static func isAskedFor(_ request: WebServiceRequest, _ route: Route) -> Bool {
    (route.rules.isPage || route == .unknown || request.method == "GET" && hint(route) != nil)
      && request.headers["accept"]?.lowercased().contains("text/html") == true
  }

  /// The page that probably was meant by an address of calls, as HTML; nil if there is none.
  private static func hint(_ route: Route) -> String? {
    switch route {
    case .section(.account):
      "<p>Your account is at <a href=\"/\(Route.Section.myAccount.rawValue)\">my account</a>.</p>\n"
    case .section(.admin):
      "<p>A server is administered with the command <code>watershed</code>.</p>\n"
    default: nil
    }
  }

  /// The page of a refusal, with its status and the time after which to come back.
  package static func page(of refusal: WebServiceResponse, _ route: Route) -> WebServiceResponse {
    let (heading, text) =
      switch refusal.status {
      case 404: ("There is no such page", "The address may be incomplete, or the page is gone.")
      case 413: ("This is too large", "It exceeds the server's limit. Please go back.")
      case 429: ("Too many requests", "Please wait a little, then try again.")
      case 503: ("The server is busy", "Please try again in a little while.")
      default: ("This did not work", "Please go back, and try again.")
      }
    var page = CardPage.page(heading: heading, CardPage.message(text) + (hint(route) ?? ""))
      .response(status: refusal.status)
    for name in [WebServiceName.retryAfter, WebServiceName.requestUUID] {
      page.headers[name] = refusal.headers[name]
    }
    return page
  }
}
