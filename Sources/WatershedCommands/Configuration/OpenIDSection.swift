import CloudKitServer
import CloudKitServerHTTP

/// The part of a configuration about signing in at an OpenID Connect issuer.
struct OpenIDSection: Codable, Hashable, Sendable {
  /// As the issuer names itself, such as `https://login.example.org`.
  var issuer: String
  /// What the issuer calls this server; `publicURL` with `/sign-in/return` is the redirect address
  /// to register there.
  var clientID: String
  /// The client's secret; absent for a public client, which proves itself by PKCE alone.
  var clientSecret: String?
  /// What the button says after "Sign in with"; absent: the issuer's host.
  var name: String?
  /// What the issuer is asked for; absent: `openid`, `email` and `profile`.
  var scopes: [String]?
  /// An e-mail address that the issuer has verified opens the account that has it.
  ///
  /// Absent: false. With open registration it is refused.
  var linksByEmail: Bool?
  /// Who may make an account by signing in there: `closed`, `invitation` or `open`; absent: as
  /// `registration` says.
  var registration: RegistrationPolicy?

  var settings: OpenIDSettings {
    OpenIDSettings(
      issuer: issuer,
      clientID: clientID,
      clientSecret: clientSecret,
      name: name,
      scopes: scopes ?? ["openid", "email", "profile"],
      linksByEmail: linksByEmail ?? false,
      registration: registration
    )
  }

  func problems(registration: RegistrationPolicy) -> [String] {
    var found: [String] = []
    if !OpenIDSettings.isSafe(issuer) {
      found.append(
        "openID.issuer: \(issuer) is not an HTTPS address such as https://login.example.org"
      )
    }
    if clientID.isEmpty { found.append("openID.clientID: a client needs an ID") }
    if name?.isEmpty == true { found.append("openID.name: a button needs a name") }
    if clientSecret?.isEmpty == true {
      found.append("openID.clientSecret: the secret is empty; leave the key out instead")
    }
    if linksByEmail == true, registration == .open {
      found.append(
        "openID.linksByEmail: with open registration any user of the issuer can register with "
          + "another person's address, which would then sign that person in to this account"
      )
    }
    return found
  }
}
