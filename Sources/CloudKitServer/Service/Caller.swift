import CloudKitWebServices

/// The sender of a request, by its credentials.
enum Caller: Sendable {
  /// A request without a user. The URL is that of the sign-in page.
  case anonymous(apiToken: String?, signInURL: String)
  /// A request without a user that has the token of a public share.
  case visitor(PublicVisit, apiToken: String, signInURL: String)
  /// A signed-in user, with the app's token; a request of the server's own pages has none.
  case user(Principal, apiToken: String?)
  /// A program that signs with a server-to-server key, as the key's user.
  case serverKey(Principal, SignatureMark)
  /// The operator's token in a call of the administration, as the operator's user of the container.
  case administration(Principal)
  /// The server itself, which works for the owner of a database: no limit of a user applies.
  case server(Principal)

  /// The user in whose name the request reads and writes.
  var principal: Principal? {
    switch self {
    case .anonymous, .visitor: nil
    case .user(let principal, _), .serverKey(let principal, _), .administration(let principal),
      .server(let principal):
      principal
    }
  }

  /// The user whose limits apply to the request.
  ///
  /// The operator, and a program with a server-to-server key, which is the operator's, have none.
  var limitedUser: Principal? {
    if case .user(let principal, _) = self { principal } else { nil }
  }

  /// The visit of a caller without a user to a public share.
  var visit: PublicVisit? {
    if case .visitor(let visit, _, _) = self { visit } else { nil }
  }

  /// The token of the app.
  var apiToken: String? {
    switch self {
    case .anonymous(let token, _), .user(_, let token): token
    case .visitor(_, let token, _): token
    case .serverKey, .administration, .server: nil
    }
  }

  /// Identifies a signed request, which is executed once.
  var signature: SignatureMark? {
    if case .serverKey(_, let mark) = self { mark } else { nil }
  }

  /// The URL of the sign-in page, for a caller without a user.
  var signInURL: String? {
    switch self {
    case .anonymous(_, let url), .visitor(_, _, let url): url
    case .user, .serverKey, .administration, .server: nil
    }
  }
}

/// A signed-in user in one container.
struct Principal: Hashable, Sendable {
  var account: String
  var userRecordName: String
  /// The digest of the user token; nil with other credentials.
  var session: String?
  /// The device's grant to which the user token belongs; nil for a page's.
  var grant: String?
}
