/// Calls that are authenticated by a password, a code or a refresh token: `POST /account/{verb}`.
///
/// `OwnAccountCall` has those that use a user token.
package enum AccountVerb: String, CaseIterable, Sendable {
  /// A program requests a code that its user types on a page.
  case device
  /// OAuth's token endpoint: device codes and refresh tokens.
  case token
  case signIn = "sign-in"
  case refresh
  case signOut = "sign-out"
  case delete
}
