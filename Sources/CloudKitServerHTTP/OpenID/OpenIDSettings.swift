import CloudKitServer
import CloudKitWebServices
import Foundation

/// The OpenID Connect issuer at which users can sign in, and this server's client there.
package struct OpenIDSettings: Hashable, Sendable {
  /// The issuer's own name in its tokens, such as `https://login.example.org`.
  package var issuer: String
  package var clientID: String
  /// Nil for a public client, which authenticates with PKCE alone.
  package var clientSecret: String?
  /// The name on the sign-in button, after "Sign in with".
  package var name: String
  package var scopes: [String]
  package var linksByEmail: Bool
  package var registration: RegistrationPolicy?

  package init(
    issuer: String,
    clientID: String,
    clientSecret: String? = nil,
    name: String? = nil,
    scopes: [String] = ["openid", "email", "profile"],
    linksByEmail: Bool = false,
    registration: RegistrationPolicy? = nil
  ) {
    self.issuer = issuer
    self.clientID = clientID
    self.clientSecret = clientSecret
    self.name = name ?? URLComponents(string: issuer)?.host ?? issuer
    self.scopes = scopes.contains("openid") ? scopes : ["openid"] + scopes
    self.linksByEmail = linksByEmail
    self.registration = registration
  }

  /// Whether tokens may be sent to a URL: HTTPS, or this machine.
  package static func isSafe(_ text: String) -> Bool {
    guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty,
      parts.user == nil, parts.fragment == nil
    else { return false }
    return parts.scheme == "https"
      || parts.scheme == "http" && LoopbackHost.contains(host)
  }
}
