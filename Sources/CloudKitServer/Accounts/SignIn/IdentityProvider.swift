/// A service that authenticates users, so that they sign in here without a password of this server.
///
/// The conformer implements its pages, keys and network; this module maps users to accounts.
package protocol IdentityProvider: Sendable {
  /// The name on the sign-in button, after "Sign in with".
  var name: String { get }
  /// Who may create an account by signing in there; nil: the server's own policy.
  var registration: RegistrationPolicy? { get }
  /// Whether an e-mail address that the service has verified selects the account that has it.
  var linksByEmail: Bool { get }

  /// The URL of the page on which a user signs in, for one attempt.
  func signInAddress(_ challenge: IdentityChallenge, state: String) async throws -> String

  /// The user who returned with a code; throws `IdentityFailure` if they are not authenticated.
  func identity(code: String, _ challenge: IdentityChallenge) async throws -> ExternalIdentity
}

/// The values that bind a reply of the other service to its attempt.
package struct IdentityChallenge: Codable, Hashable, Sendable {
  /// Returned inside the signed reply.
  package var nonce: String
  /// Kept here until the code is exchanged; the other service has its digest.
  package var verifier: String
  /// The URL to which the browser returns.
  package var redirectURL: String
  /// When the user was required to authenticate again, in milliseconds since 1970; nil if an
  /// existing session is enough.
  package var requiresAuthenticationSince: Int64?

  package init(
    nonce: String,
    verifier: String,
    redirectURL: String,
    requiresAuthenticationSince: Int64? = nil
  ) {
    self.nonce = nonce
    self.verifier = verifier
    self.redirectURL = redirectURL
    self.requiresAuthenticationSince = requiresAuthenticationSince
  }
}

/// A user of another service.
package struct ExternalIdentity: Hashable, Sendable {
  package var issuer: String
  /// The issuer never assigns it to another user.
  package var subject: String
  /// The address, if the issuer reports that it has verified it.
  package var emailAddress: String?
  package var userName: String?
  package var givenName: String?
  package var familyName: String?

  package init(
    issuer: String,
    subject: String,
    emailAddress: String? = nil,
    userName: String? = nil,
    givenName: String? = nil,
    familyName: String? = nil
  ) {
    self.issuer = issuer
    self.subject = subject
    self.emailAddress = emailAddress
    self.userName = userName
    self.givenName = givenName
    self.familyName = familyName
  }

  /// The key of the entry that links an account to this user.
  var key: DirectoryEntry.Key {
    // Two lines: neither part has a line break, so no two users have the same text.
    DirectoryEntry.Key(.identity, TokenDigest.of("\(issuer)\n\(subject)"))
  }
}

/// Why an authentication of the other service was not accepted.
package struct IdentityFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// It could not be reached, or does not match the configuration.
    case unavailable
    /// It refused, or its reply is invalid.
    case refused
  }

  package var kind: Kind
  /// For the log; it has no code and no token.
  package var description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
