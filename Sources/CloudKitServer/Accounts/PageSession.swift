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

  static let ownPages = [ownPage, ownPageOfIssuer].map(\.rawValue)
}
