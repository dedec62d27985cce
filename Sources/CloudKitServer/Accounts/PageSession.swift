/// The container in sessions of the server's own pages; no real container has such a name.
///
/// The values are stored.
enum PageSession: String, CaseIterable {
  case administration = "/admin"
  /// The account page.
  case ownPage = "/account"
  /// The account page, for a user that an OpenID issuer has just authenticated.
  case ownPageOfIssuer = "/account-of-issuer"
  /// A share's page.
  case share = "/share"

  /// Whether the page is that of the user's own account.
  var isOwnPage: Bool {
    switch self {
    case .ownPage, .ownPageOfIssuer: true
    case .administration, .share: false
    }
  }
}

/// The audience of a session: an app's container, or one of the server's own pages.
enum SessionAudience: Hashable, Sendable {
  case app(container: String)
  /// Nil for a page of another version, whose sessions are valid for nothing here.
  case page(PageSession?)

  /// Reads the stored form: names of pages begin with a slash, which no container's name contains.
  init(_ container: String) {
    self =
      container.hasPrefix("/")
      ? .page(PageSession(rawValue: container)) : .app(container: container)
  }

  /// Whether a session opens the calls and the page of the user's own account.
  var opensOwnAccount: Bool {
    switch self {
    case .app: true
    case .page(let page): page?.isOwnPage == true
    }
  }

  /// Whether a session is listed to its user as a sign-in that they may end.
  var isListed: Bool {
    switch self {
    case .app, .page(.administration): true
    case .page: false
    }
  }
}

extension StoredSession {
  var audience: SessionAudience { SessionAudience(container) }
}
