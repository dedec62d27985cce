import CloudKitServer
import CloudKitServerHTTP

/// The part of a configuration about signing in at an OpenID Connect issuer.
struct OpenIDSection: Codable, Hashable, Sendable {
  /// As the issuer names itself, such as `https://login.example.org`.
  var issuer: String
  /// What the issuer calls this server; it must know the address `…/sign-in/return` of it.
  var clientID: String
  var clientSecret: String?
  /// What the button says after "Sign in with"; absent: the issuer's host.
  var name: String?
  var scopes: [String]?
  /// An address that the issuer has verified opens the account that has it.
  var linksByEmail: Bool?
  /// Who may make an account by signing in there; absent: who may here.
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
      found.append("openID.clientSecret: a secret is not empty; leave the key out instead")
    }
    if linksByEmail == true, registration == .open {
      found.append(
        "openID.linksByEmail: with open registration anybody can make an account with somebody "
          + "else's address, and that person would be led into it"
      )
    }
    return found
  }
}
